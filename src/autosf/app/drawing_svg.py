"""A structure as the paper draws it (Fig. 1, 5), as SVG: a coloured square for each term of the matrix g.

A plus is a full square, a minus a pale one with a frame, so that no sign hangs on colour alone.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from autosf.app.drawing import COLOURS

if TYPE_CHECKING:
    from autosf.algebra.structure import Structure

CELL = 40
MINUS = "\N{MINUS SIGN}"


def structure_svg(structure: Structure, title: str = "") -> str:
    """The drawing for a page, coloured by its stylesheet; `charts.standalone` makes a file of it."""
    size = structure.parts * CELL
    squares = "".join(
        square(value, column * CELL, row * CELL)
        for row, line in enumerate(structure.rows)
        for column, value in enumerate(line)
    )
    name = escape(title or f"structure {structure}")
    return (
        f'<svg class="structure" role="img" aria-label="{name}" viewBox="-2 -2 {size + 4} {size + 4}"'
        f' width="{size + 4}" height="{size + 4}" font-size="{CELL * 0.4:g}">'
        f"<title>{name}</title>{squares}</svg>"
    )


def square(value: int, x: int, y: int) -> str:
    """One cell of the drawing: the empty one is a thin frame."""
    empty = f'<rect class="cell" x="{x}" y="{y}" width="{CELL}" height="{CELL}"/>'
    if not value:
        return empty
    part, sign = (abs(value) - 1) % len(COLOURS) + 1, "plus" if value > 0 else "minus"
    label = f"{MINUS if value < 0 else ''}r{abs(value)}"
    inner = f'x="{x + 3}" y="{y + 3}" width="{CELL - 6}" height="{CELL - 6}" rx="3"'
    return (
        f'{empty}<rect class="part-{part} {sign}" {inner}/>'
        f'<text class="{sign}-label" x="{x + CELL / 2:g}" y="{y + CELL * 0.64:g}">{label}</text>'
    )
