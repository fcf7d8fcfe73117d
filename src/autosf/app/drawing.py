"""A structure as people see it in the terminal: a coloured grid, and its formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from autosf.algebra.notebook import COLOURS as COLOURS

if TYPE_CHECKING:
    from autosf.algebra.structure import Structure


def colour(part: int) -> str:
    """The colour of a relation part."""
    return COLOURS[(part - 1) % len(COLOURS)]


def as_text(structure: Structure) -> Text:
    """The matrix g with one row a line: relation parts in their colours, negative ones underlined."""
    width = 2 + len(str(structure.parts))
    text = Text(no_wrap=True)
    for place, row in enumerate(structure.rows):
        text.append("\n" if place else "")
        for cell in row:
            label = f"{'-' if cell < 0 else ''}r{abs(cell)}" if cell else "."
            style = f"bold {colour(abs(cell))}{' underline' if cell < 0 else ''}" if cell else "dim"
            text.append(" " * (width + 1 - len(label)))
            text.append(label, style=style)
    return text


def formula(structure: Structure) -> str:
    """The scoring function written out: `<h1, r1, t1> - <h1, r2, t2> + ...`."""
    return " ".join(map(str, structure.terms())).removeprefix("+ ") or "0"
