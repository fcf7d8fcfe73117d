"""Structures that are the same function after an orthogonal turn of the entity parts.

Heads and tails are turned alike, so that rows and columns are mixed; the relation's matrix stays a matrix of free
parts where its cells are, up to sign, as many different combinations of the old parts as there were parts: so
[[r1, r2], [r2, r1]] is diag(r1 + r2, r1 - r2). Two such structures express the same, but are not trained alike:
regularisers and adaptive steps see the numbers as they lie.
"""

from __future__ import annotations

from functools import cache
from math import sqrt
from typing import TYPE_CHECKING

from autosf.algebra.structure import PARTS, Structure, from_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

    Matrix = tuple[tuple[float, ...], ...]

DIGITS = (
    9  # to which combinations of parts are compared: they are sums of a few quarters and halves of roots of 2
)


def turned(structure: Structure) -> Iterator[Structure]:
    """What the structure of 4 parts is after each of the turns, where it is a structure again."""
    for turn in turns():
        cells = turned_cells(structure, turn)
        combinations = list(dict.fromkeys(unsigned(cell) for cell in cells if any(cell)))
        if len(combinations) == len({abs(cell) for cell in structure.cells if cell}):
            names = {cell: part for part, cell in enumerate(combinations, 1)}
            yield from_cells(
                tuple(
                    0 if not any(cell) else names[unsigned(cell)] * (1 if cell == unsigned(cell) else -1)
                    for cell in cells
                )
            )


def turned_cells(structure: Structure, turn: Matrix) -> list[tuple[float, ...]]:
    """The matrix between two turns: each cell as a combination of the relation parts."""
    parts = range(structure.parts)
    found = []
    for row in parts:
        for column in parts:
            cell = [0.0] * structure.parts
            for i in parts:
                for k in parts:
                    term = structure.rows[i][k]
                    if term:
                        cell[abs(term) - 1] += (1 if term > 0 else -1) * turn[row][i] * turn[column][k]
            found.append(tuple(round(value, DIGITS) + 0.0 for value in cell))
    return found


def unsigned(cell: tuple[float, ...]) -> tuple[float, ...]:
    """The cell or its negative: the one whose first number is positive."""
    first = next((value for value in cell if value), 0.0)
    return cell if first >= 0 else tuple(0.0 - value for value in cell)


@cache
def turns() -> tuple[Matrix, ...]:
    """Orthogonal matrices of equal numbers up to sign within pairs of parts, or within all four.

    Others differ from these by orders and signs of parts alone.
    """
    half = 1 / sqrt(2)
    pairs = [(i, j) for i in range(PARTS) for j in range(i + 1, PARTS)]
    disjoint = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]
    found = []
    for chosen in [*((pair,) for pair in pairs), *disjoint]:
        rows = [[float(i == k) for k in range(PARTS)] for i in range(PARTS)]
        for i, j in chosen:
            rows[i][i], rows[i][j], rows[j][i], rows[j][j] = half, half, half, -half
        found.append(rows)
    signs = ((1, 1, 1, 1), (1, -1, 1, -1), (1, 1, -1, -1), (1, -1, -1, 1))
    for first in (
        1,
        -1,
    ):  # of the two kinds one has an even number of minus signs in each row, the other an odd
        found.append([[0.5 * first * row[0], *(0.5 * sign for sign in row[1:])] for row in signs])
    return tuple(tuple(map(tuple, rows)) for rows in found)
