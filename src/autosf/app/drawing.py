"""A structure as people see it: a coloured grid in the terminal, and the paper's drawing (Fig. 1, 5) as SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from autosf.algebra.structure import Structure

# Okabe and Ito's colours, told apart with any colour vision; one per relation part, then from the start again.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6D31", "#7F7F7F")


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


def as_svg(structure: Structure, title: str = "", cell: int = 40) -> str:
    """The matrix g as a stand-alone SVG: filled squares, negative ones hatched, readable in light and dark."""
    size = structure.parts * cell
    name = escape(title or f"structure {structure}")
    squares = "".join(
        square(value, column * cell, row * cell, cell)
        for row, line in enumerate(structure.rows)
        for column, value in enumerate(line)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="-1 -1 {size + 2} {size + 2}"'
        f' width="{size + 2}" height="{size + 2}" font-family="sans-serif" font-size="{cell * 0.4:g}"'
        f' text-anchor="middle"><title>{name}</title>{HATCH}{squares}</svg>\n'
    )


# White stripes over the colour say "minus" without relying on the colour alone.
HATCH = (
    '<defs><pattern id="minus" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect width="2" height="6" fill="#fff" fill-opacity=".45"/></pattern></defs>'
)


def square(value: int, x: int, y: int, cell: int) -> str:
    """One cell of the drawing."""
    frame = f'x="{x}" y="{y}" width="{cell}" height="{cell}"'
    if not value:
        return f'<rect {frame} fill="none" stroke="#888" stroke-opacity=".5"/>'
    stripes = f'<rect {frame} fill="url(#minus)"/>' if value < 0 else ""
    sign = "\N{MINUS SIGN}" if value < 0 else ""
    return (
        f'<rect {frame} fill="{colour(abs(value))}" stroke="#888" stroke-opacity=".5"/>{stripes}'
        f'<text x="{x + cell / 2:g}" y="{y + cell * 0.64:g}" fill="#fff" font-weight="bold" stroke="#000"'
        f' stroke-opacity=".35" stroke-width=".6" paint-order="stroke">{sign}r{abs(value)}</text>'
    )
