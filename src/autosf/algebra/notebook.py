"""What objects show of themselves in a notebook: small pieces of HTML, every text escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from autosf.algebra.structure import Structure

# Okabe and Ito's colours, told apart with any colour vision; one per relation part, then from the start again.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#8C6D31", "#7F7F7F")
CELL = "width:2.4em;height:2.4em;padding:0;text-align:center;border:1px solid #8888;"
STRIPES = "repeating-linear-gradient(45deg,#fff6 0 2px,transparent 2px 6px)"  # say "minus" without colour


def grid(structure: Structure) -> str:
    """The matrix g as a table: a coloured cell for each term, striped where it is subtracted."""
    rows = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in structure.rows)
    return f'<table title="{escape(str(structure))}" style="border-collapse:collapse;margin:0">{rows}</table>'


def cell(value: int) -> str:
    """One cell of the grid."""
    if not value:
        return f'<td style="{CELL}"></td>'
    colour, sign = COLOURS[(abs(value) - 1) % len(COLOURS)], "\N{MINUS SIGN}" if value < 0 else ""
    stripes = f"background-image:{STRIPES};" if value < 0 else ""
    style = f"{CELL}background-color:{colour};{stripes}color:#fff;font-weight:bold;text-shadow:0 0 2px #000"
    return f'<td style="{style}">{sign}r{abs(value)}</td>'


def facts(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """A title over names and values."""
    rows = "".join(
        f'<tr><td style="text-align:left;opacity:.7">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in pairs
    )
    return f"<div><b>{escape(title)}</b><table>{rows}</table></div>"


def beside(*pieces: str) -> str:
    """Pieces of HTML side by side."""
    return f'<div style="display:flex;gap:1.5em;align-items:center;flex-wrap:wrap">{"".join(pieces)}</div>'
