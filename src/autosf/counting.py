"""Counts in words, for every layer's messages."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """A number with its noun, which has a regular plural: 1 triple, 2 triples."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def are(count: int) -> str:
    """`is` for one, `are` for any other count."""
    return "is" if count == 1 else "are"


def have(count: int) -> str:
    """`has` for one, `have` for any other count."""
    return "has" if count == 1 else "have"
