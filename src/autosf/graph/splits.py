"""The names of the splits, apart from what is heavy: a shell's TAB needs no more."""

SPLITS = ("train", "valid", "test")
