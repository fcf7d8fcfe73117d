"""What lies in a folder: which files are the splits, which name the ids, and by which library's habit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.errors import UserError, did_you_mean, quoted, shown
from autosf.graph.rdf import FORMATS
from autosf.graph.roles import SPLIT_OF_WORD, SPLIT_WORDS

if TYPE_CHECKING:
    from pathlib import Path

TEXT = ("", "txt", "tsv", "csv")
JSON_LINES = ("jsonl", "ndjson")
PLAIN = (*TEXT, "parquet", *JSON_LINES, *FORMATS)


@dataclass(frozen=True, slots=True)
class LabelFile:
    """How files that name ids are written: which field is the id, and whether a count line comes first."""

    entities: str
    relations: str
    id_place: int
    counted: bool = False


@dataclass(frozen=True, slots=True)
class Habit:
    """A library's way with a folder: what is added to a split's name, the extensions, the label files."""

    suffix: str = ""
    extensions: tuple[str, ...] = PLAIN
    labels: LabelFile | None = None


HABITS = {  # in the order in which a folder is tried
    "dict": Habit(labels=LabelFile("entities.dict", "relations.dict", id_place=0), extensions=TEXT),
    "plain": Habit(),
    "openke": Habit("2id", ("txt",), LabelFile("entity2id.txt", "relation2id.txt", id_place=1, counted=True)),
    "libkge": Habit("", ("del",), LabelFile("entity_ids.del", "relation_ids.del", id_place=0)),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a graph in a folder."""

    habit: str
    splits: dict[str, Path]
    entities: Path | None = None
    relations: Path | None = None


def layout_of(folder: Path, wanted: str | None = None) -> Layout:
    """The layout of a folder: the one that is `wanted`, or the first for which all files are there."""
    if wanted is not None and wanted not in HABITS:
        known = ", ".join(HABITS)
        raise UserError(f"unknown layout {quoted(wanted)}{did_you_mean(wanted, HABITS)} (known: {known})")
    files = _files(folder)
    for name in [wanted] if wanted is not None else HABITS:
        splits = _splits(folder, files, HABITS[name])
        labels = _label_files(files, HABITS[name].labels)
        if "train" in splits and (HABITS[name].labels is None or len(labels) == 2):
            return Layout(name, splits, *labels)
        if splits and wanted is not None:
            _refuse_incomplete(folder, name, splits, labels)
    raise UserError(_nothing_found(folder, files, wanted))


def extension(path: Path) -> str:
    """The extension without its dot, in lower case, `.gz` not counted."""
    _, _, last = path.name.casefold().removesuffix(".gz").rpartition(".")
    return last if "." in path.name.removesuffix(".gz") else ""


def _files(folder: Path) -> dict[str, Path]:
    """The folder's files by name in lower case, those of hidden names left out."""
    try:
        paths = [path for path in sorted(folder.iterdir()) if path.name[0] != "." and path.is_file()]
    except OSError as error:
        raise UserError(f"{shown(folder)}: cannot be read: {error.strerror or error}") from None
    return {path.name.casefold(): path for path in paths}


def _splits(folder: Path, files: dict[str, Path], habit: Habit) -> dict[str, Path]:
    """The file of each split that is there; two files for one split are the user's to sort out."""
    found: dict[str, Path] = {}
    for word, split in SPLIT_OF_WORD.items():
        for ending in habit.extensions:
            for packed in ("", ".gz"):
                path = files.get(f"{word}{habit.suffix}{'.' if ending else ''}{ending}{packed}")
                if path is None:
                    continue
                if split in found:
                    both = f"{quoted(found[split].name)} and {quoted(path.name)}"
                    raise UserError(
                        f"{shown(folder)}: expected one file for {split}, found {both}; remove one"
                    )
                found[split] = path
    return found


def _label_files(files: dict[str, Path], labels: LabelFile | None) -> list[Path]:
    if labels is None:
        return []
    wanted = [(name, f"{name}.gz") for name in (labels.entities, labels.relations)]
    found = [next((files[name] for name in names if name in files), None) for names in wanted]
    return [path for path in found if path is not None]


def _refuse_incomplete(folder: Path, name: str, splits: dict[str, Path], labels: list[Path]) -> None:
    """Tell what keeps a folder from having the layout that the user named."""
    habit = HABITS[name]
    needed = [f"train{habit.suffix}.{habit.extensions[0]}".rstrip(".")]
    needed += [habit.labels.entities, habit.labels.relations] if habit.labels else []
    found = ", ".join(quoted(path.name) for path in [*splits.values(), *labels])
    raise UserError(f"{shown(folder)}: the layout {name} needs {', '.join(needed)}; found {found}")


def _nothing_found(folder: Path, files: dict[str, Path], wanted: str | None) -> str:
    """Why a folder is no graph: what was expected, what is there instead, and where to look."""
    expected = f"expected train, valid and test{f' in the layout {wanted}' if wanted else ''}"
    held_out = [name for name in files if name.startswith(SPLIT_WORDS["valid"] + SPLIT_WORDS["test"])]
    if held_out:
        found = ", ".join(map(quoted, held_out[:4]))
        return f"{shown(folder)}: no train split; {expected}, found only {found}"
    inside = [path.name for path in sorted(folder.iterdir()) if path.is_dir() and _holds_train(path)]
    if inside:
        return f"{shown(folder)}: no triples here; did you mean its folder {quoted(inside[0])}?"
    found = ", ".join(map(quoted, list(files)[:4])) if files else "no files"
    endings = ".txt, .tsv, .csv, .parquet, .jsonl or none"
    return f"{shown(folder)}: no triples here; {expected} as {endings}, found {found}"


def _holds_train(folder: Path) -> bool:
    try:
        return any(name.startswith("train") for name in _files(folder))
    except UserError:  # it cannot be looked into, so it is no advice
        return False
