"""The search space, counted and listed: f^4, f^5, f^6, ... up to equivalence (Sec. IV-B, IV-C)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations, product
from typing import TYPE_CHECKING

from autosf.algebra.burnside import Constraint, class_counts
from autosf.algebra.constraints import covers, satisfies_c1, satisfies_c2
from autosf.algebra.invariance import Group, canonical, canonical_cells, leading
from autosf.algebra.structure import PARTS, Structure, from_cells
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Cells = tuple[int, ...]
LISTED_BLOCKS = 7  # 8 blocks have millions of classes: counted, not listed


@dataclass(frozen=True, slots=True)
class Count:
    """Classes with a number of blocks, and those among them that satisfy C1 (None where only counted)."""

    blocks: int
    classes: int
    c1_classes: int | None


def space(
    blocks: int, group: Group = "paper", constraint: Constraint = "cover", reachable: bool = False
) -> Count:
    """Size of the search space at this number of blocks: listed where that is possible, counted elsewhere."""
    if not 1 <= blocks <= PARTS * PARTS:
        raise UserError(f"blocks: expected a number from 1 to {PARTS * PARTS}, found {blocks}")
    if blocks > LISTED_BLOCKS and reachable:
        raise UserError(
            f"blocks: expected at most {LISTED_BLOCKS} with --reachable, found {blocks};"
            " beyond that the classes are too many to list"
        )
    if blocks > LISTED_BLOCKS:
        return Count(blocks, class_counts(group, constraint)[blocks], None)
    listed = (reachable_classes if reachable else classes)(blocks, group, constraint)
    return Count(blocks, len(listed), sum(map(satisfies_c1, listed)))


@cache
def five_f4(parts: int = PARTS) -> tuple[Structure, ...]:
    """The classes with as few blocks as parts, one per cycle type: five f^4 for K = 4 (Sec. IV-B)."""
    found: dict[Structure, Structure] = {}
    for columns in permutations(range(parts)):
        rows = tuple(
            tuple(i + 1 if j == column else 0 for j in range(parts)) for i, column in enumerate(columns)
        )
        structure = Structure(rows)
        found.setdefault(canonical(structure), structure)
    return tuple(found.values())


def classes(blocks: int, group: Group = "paper", constraint: Constraint = "cover") -> list[Structure]:
    """One structure for each class with that many blocks, sorted."""
    return representatives(candidates(blocks), group, constraint)


def reachable_classes(
    blocks: int, group: Group = "paper", constraint: Constraint = "cover"
) -> list[Structure]:
    """The classes that Alg. 2 can reach: those that grow from one of the five f^4. Sorted."""
    return representatives(grown(blocks), group, constraint)


def representatives(found: Iterable[Cells], group: Group, constraint: Constraint) -> list[Structure]:
    """Canonical forms of the cells that satisfy the constraint, without repeats."""
    forms = {canonical_cells(cells, PARTS, group) for cells in found}
    return sorted(structure for form in forms if admitted(structure := from_cells(form), group, constraint))


def admitted(structure: Structure, group: Group, constraint: Constraint) -> bool:
    """Whether the structure satisfies the constraint, in the reading that the group keeps."""
    if constraint == "cover":
        return covers(structure)
    return satisfies_c2(structure, up_to_sign=group == "extended")


def candidates(blocks: int, parts: int = PARTS) -> Iterator[Cells]:
    """Structures of which every covering class has at least one: a support from each class of supports, labels
    and signs in order of first appearance."""
    for places in supports(blocks, parts):
        for labels in labellings(blocks, parts):
            firsts = {labels.index(label) for label in set(labels)}
            for signs in product(*((1,) if place in firsts else (1, -1) for place in range(blocks))):
                cells = [0] * (parts * parts)
                for place, label, sign in zip(places, labels, signs, strict=True):
                    cells[place] = sign * label
                yield tuple(cells)


def supports(blocks: int, parts: int = PARTS) -> Iterator[tuple[int, ...]]:
    """Sets of cells without an empty row or column, one per class under entity orders."""
    for places in combinations(range(parts * parts), blocks):
        rows, columns = {place // parts for place in places}, {place % parts for place in places}
        if len(rows) == len(columns) == parts:
            support = tuple(place in places for place in range(parts * parts))
            if leading(support, parts)[0](support) == support:
                yield places


def labellings(blocks: int, parts: int = PARTS) -> Iterator[tuple[int, ...]]:
    """All ways to give the cells labels so that all are used, named in order of first appearance."""

    def extended(start: tuple[int, ...], highest: int) -> Iterator[tuple[int, ...]]:
        if len(start) == blocks:
            yield start
            return
        for label in range(1, min(highest + 1, parts) + 1):
            now = max(highest, label)
            if parts - now <= blocks - len(start) - 1:
                yield from extended((*start, label), now)

    yield from extended((), 0)


def grown(blocks: int, parts: int = PARTS) -> Iterator[Cells]:
    """Every f^4 with every choice of further signed cells."""
    values = [sign * label for label in range(1, parts + 1) for sign in (1, -1)]
    for start in five_f4(parts):
        free = [place for place, cell in enumerate(start.cells) if not cell]
        for places in combinations(free, blocks - parts) if blocks >= parts else ():
            for added in product(values, repeat=len(places)):
                cells = list(start.cells)
                for place, cell in zip(places, added, strict=True):
                    cells[place] = cell
                yield tuple(cells)
