"""A scoring function's structure: the K x K substitute matrix g of Definition 2 (Sec. III-B).

One notation everywhere: the rows as JSON. Cell (i, j) = s*k stands for the term s * <h_i, r_k, t_j>, and 0
for the zero block. Parts are numbered from 1, as in the paper.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from autosf.errors import UserError, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PARTS = 4  # the paper's K

Rows = tuple[tuple[int, ...], ...]
Cells = tuple[int, ...]  # in reading order


@dataclass(frozen=True, slots=True, order=True)
class Term:
    """One signed product sign * <h_head, r_relation, t_tail>; parts counted from 1."""

    sign: int
    head: int
    relation: int
    tail: int

    def __str__(self) -> str:
        return f"{'+' if self.sign > 0 else '-'} <h{self.head}, r{self.relation}, t{self.tail}>"


@dataclass(frozen=True, slots=True, order=True)
class Structure:
    """Rows of the substitute matrix; square, of even size, cells from -K to K."""

    rows: Rows

    def __post_init__(self) -> None:
        refuse_malformed(self.rows)

    def __str__(self) -> str:
        return to_json(self)

    def _repr_html_(self) -> str:
        from autosf.algebra.notebook import grid

        return grid(self)

    @property
    def parts(self) -> int:
        """K, the number of parts an embedding is cut into."""
        return len(self.rows)

    @property
    def blocks(self) -> int:
        """b, the number of non-zero cells."""
        return sum(map(bool, self.cells))

    @property
    def cells(self) -> tuple[int, ...]:
        """The cells in reading order."""
        return tuple(chain.from_iterable(self.rows))

    def terms(self) -> tuple[Term, ...]:
        """The non-zero cells as terms, in reading order."""
        return tuple(
            Term(1 if cell > 0 else -1, i, abs(cell), j)
            for i, row in enumerate(self.rows, 1)
            for j, cell in enumerate(row, 1)
            if cell
        )


def from_cells(cells: Sequence[int]) -> Structure:
    """Structure from its cells in reading order."""
    parts = round(len(cells) ** 0.5)
    return Structure(tuple(tuple(cells[start : start + parts]) for start in range(0, len(cells), parts)))


def from_terms(terms: Iterable[Term], parts: int = PARTS) -> Structure:
    """Structure with exactly these terms; two in one cell are refused."""
    rows = [[0] * parts for _ in range(parts)]
    for term in terms:
        for role, part in (("head", term.head), ("relation", term.relation), ("tail", term.tail)):
            if not 1 <= part <= parts:
                raise UserError(f"term {term}: expected a {role} part from 1 to {parts}, found {part}")
        if rows[term.head - 1][term.tail - 1]:
            raise UserError(f"row {term.head}, column {term.tail}: expected one term in this cell, found two")
        rows[term.head - 1][term.tail - 1] = term.sign * term.relation
    return Structure(tuple(map(tuple, rows)))


def from_published(numbers: Sequence[int]) -> Structure:
    """Structure from a list of the released code: a, b, c, d for h_1 r_1 t_a + h_2 r_2 t_b + ..., counted
    from 0, then quadruples relation, head, tail, sign."""
    if len(numbers) < PARTS or len(numbers) % 4:
        raise UserError(
            f"published list: expected {PARTS} numbers and then groups of four, found {len(numbers)} numbers"
        )
    if not all(0 <= tail < PARTS for tail in numbers[:PARTS]):
        raise UserError(f"published list: expected its first numbers from 0 to 3, found {numbers[:PARTS]}")
    terms = [Term(1, part, part, tail + 1) for part, tail in enumerate(numbers[:PARTS], 1)]
    for start in range(PARTS, len(numbers), 4):
        relation, head, tail, sign = numbers[start : start + 4]
        if sign not in (1, -1):
            raise UserError(f"published list, number {start + 4}: expected a sign 1 or -1, found {sign}")
        terms.append(Term(sign, head + 1, relation + 1, tail + 1))
    return from_terms(terms)


def to_json(structure: Structure) -> str:
    """The one notation, without spaces."""
    return json.dumps(structure.rows, separators=(",", ":"))


def from_json(text: str) -> Structure:
    """Structure from its JSON rows; a mistake is answered with the cell it is in."""
    return from_rows(decoded(text))


def from_rows(rows: object) -> Structure:
    """Structure from rows as JSON decodes them."""
    if not isinstance(rows, list | tuple):
        raise UserError(f"structure: expected rows such as [[1,0],[0,2]], found {quoted(rows)}")
    if rows and not any(isinstance(row, list | tuple) for row in rows):
        raise UserError(
            "structure: expected a list of rows such as [[1,0],[0,2]], found a flat list"
            " (the released code's lists are read with --published)"
        )
    for i, row in enumerate(rows, 1):
        if not isinstance(row, list | tuple):
            raise UserError(f"structure, row {i}: expected a list of cells, found {quoted(row)}")
    return Structure(tuple(map(tuple, rows)))


def split(structure: Structure, factor: int) -> Structure:
    """The same scoring function with every part cut into `factor` smaller ones: K becomes factor * K.

    Sub-part m of part i gets the number i + m * K, the paper's layout of ComplEx (Sec. III-B).
    """
    size = structure.parts
    terms = [
        Term(term.sign, term.head + m * size, term.relation + m * size, term.tail + m * size)
        for term in structure.terms()
        for m in range(factor)
    ]
    return from_terms(terms, parts=factor * size)


def decoded(text: str) -> object:
    """JSON value of a user's text, or one clear line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "not readable")
        place = f" at character {error.pos + 1}" if isinstance(error, json.JSONDecodeError) else ""
        raise UserError(f"structure: expected JSON rows, found {quoted(text)} ({reason}{place})") from None


def refuse_malformed(rows: Rows) -> None:
    """Raise a UserError that names the row or cell unless the rows are square, even and in range."""
    size = len(rows)
    if is_well_formed(rows, size):
        return
    if size < 2 or size % 2:
        raise UserError(f"structure: expected an even number of rows from 2, found {size}")
    for i, row in enumerate(rows, 1):
        if len(row) != size:
            raise UserError(f"structure, row {i}: expected {size} cells, found {len(row)}")
        for j, cell in enumerate(row, 1):
            if type(cell) is not int or not -size <= cell <= size:
                raise UserError(
                    f"structure, row {i}, column {j}: expected an integer from -{size} to {size},"
                    f" found {quoted(json_like(cell))}"
                )


def is_well_formed(rows: Rows, size: int) -> bool:
    """What `refuse_malformed` looks for, without saying where: the search makes structures by the thousand."""
    cells = tuple(chain.from_iterable(rows))
    return (
        size > 0
        and size % 2 == 0
        and set(map(len, rows)) == {size}
        and set(map(type, cells)) == {int}
        and -size <= min(cells)
        and max(cells) <= size
    )


def json_like(cell: object) -> str:
    """A cell as the user wrote it, cut short."""
    try:
        return json.dumps(cell)[:80]
    except (TypeError, ValueError, RecursionError):
        return type(cell).__name__
