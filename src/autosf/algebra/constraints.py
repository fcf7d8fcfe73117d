"""What a good structure must satisfy: C1, expressiveness, and C2, no waste (Sec. IV-A1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from operator import neg
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from autosf.algebra.structure import Cells, Structure

SYMMETRIC, SKEW_SYMMETRIC = 1, -1


@dataclass(frozen=True, slots=True)
class Assignment:
    """Every r that makes g(r) symmetric (or skew-symmetric), at once.

    values[k-1] = v stands for r_k = sign(v) * x_|v| with x_1, x_2, ... free, and 0 for r_k = 0.
    (1, 2, -1, -2) reads r3 = -r1, r4 = -r2.
    """

    values: tuple[int, ...]
    possible: bool  # whether some such r gives g(r) other than zero

    def __str__(self) -> str:
        if not self.possible:
            return "never"
        first = {abs(v): k for k, v in reversed(list(enumerate(self.values, 1)))}
        told = [
            f"r{k} = {'-' if v * self.values[first[abs(v)] - 1] < 0 else ''}r{first[abs(v)]}"
            if v
            else f"r{k} = 0"
            for k, v in enumerate(self.values, 1)
            if not v or first[abs(v)] != k
        ]
        return ", ".join(told) or "always"

    def vector(self, free: Sequence[float]) -> tuple[float, ...]:
        """One r of the family, a number per part: x_1, x_2, ... taken from `free`."""
        return tuple((1 if v > 0 else -1) * free[abs(v) - 1] if v else 0.0 for v in self.values)


def symmetric(structure: Structure) -> Assignment:
    """Every r with g(r)^T = g(r)."""
    return assignment(structure, SYMMETRIC)


def skew_symmetric(structure: Structure) -> Assignment:
    """Every r with g(r)^T = -g(r)."""
    return assignment(structure, SKEW_SYMMETRIC)


def satisfies_c1(structure: Structure) -> bool:
    """C1: g can be symmetric for some r and skew-symmetric for another, so that f is expressive (Prop. 1)."""
    return symmetric(structure).possible and skew_symmetric(structure).possible


def relation_kinds(structure: Structure) -> tuple[str, ...]:
    """Which of the common relations of Table II the structure can model."""
    able = {
        "symmetric": symmetric(structure).possible,
        "anti-symmetric": skew_symmetric(structure).possible,
        "asymmetric": any(structure.cells[i] != structure.cells[j] for i, j in mirrored(structure.parts)),
        "inverse": can_be_inverse(structure),
    }
    return tuple(kind for kind, can in able.items() if can)


def can_be_inverse(structure: Structure) -> bool:
    """Whether g(r)^T = g(r') for some pair of different g(r), g(r')."""
    cells, parts = structure.cells, structure.parts
    second = [cell + parts if cell > 0 else cell - parts if cell < 0 else 0 for cell in cells]  # r' after r
    equations = [(cells[i], second[j]) for m, n in mirrored(parts) for i, j in ((m, n), (n, m))]
    values = solution(equations, 2 * parts)
    used = {abs(cell) for cell in cells} - {0}
    return any(values[k - 1] != values[k + parts - 1] for k in used)


@lru_cache(maxsize=1 << 12)
def inverting_names(structure: Structure) -> tuple[int, ...] | None:
    """The names that transpose g: with r'_k = sign(n) * r_|n| for the k-th name n, g(r)^T = g(r') for every r.

    Then every relation has an exact inverse; None where renaming does not transpose the structure. DistMult has
    (1, 2, 3, 4), ComplEx (1, 2, -3, -4), SimplE (3, 4, 1, 2). An unused part keeps its name.
    """
    cells, names = structure.cells, dict[int, int]()
    for i, j in mirrored(structure.parts):
        for one, other in ((cells[i], cells[j]), (cells[j], cells[i])):
            if one < 0:
                one, other = -one, -other
            if bool(one) != bool(other) or (one and names.setdefault(one, other) != other):
                return None
    return tuple(names.get(part, part) for part in range(1, structure.parts + 1))


def assignment(structure: Structure, sign: int) -> Assignment:
    """The general solution of g(r)^T = sign * g(r)."""
    values = solved(structure.cells, structure.parts, sign)
    numbers: dict[int, int] = {0: 0}
    for value in values:
        if value not in numbers:
            new = (len(numbers) + 1) // 2
            numbers[value], numbers[-value] = new, -new
    used = {abs(cell) for cell in structure.cells} - {0}
    return Assignment(tuple(numbers[v] for v in values), any(values[k - 1] for k in used))


@lru_cache(maxsize=1 << 12)
def solved(cells: tuple[int, ...], parts: int, sign: int) -> tuple[int, ...]:
    """Values of r_1..r_K for which g(r)^T = sign * g(r)."""
    return solution([(cells[i], sign * cells[j]) for i, j in mirrored(parts)], parts)


def solution(equations: Iterable[tuple[int, int]], variables: int) -> tuple[int, ...]:
    """Values that make every pair of signed variables equal (0 is zero): signed names of free ones, or 0."""
    value = [*range(variables + 1), *range(-variables, 0)]  # value[x] also for negative x
    for one, other in equations:
        a, b = value[one], value[other]
        if a == b:
            continue
        gone = abs(b) or abs(a)
        by = 0 if not a or not b or a == -b else a if b > 0 else -a  # a = -b or a = 0: the variable vanishes
        value = [by if v == gone else -by if v == -gone else v for v in value]
    return tuple(value[1 : variables + 1])


@lru_cache(maxsize=32)
def mirrored(parts: int) -> tuple[tuple[int, int], ...]:
    """Places of cell (i, j) and cell (j, i) in reading order, i <= j."""
    return tuple((i * parts + j, j * parts + i) for i in range(parts) for j in range(i, parts))


def c2_reasons(structure: Structure, up_to_sign: bool = False) -> list[str]:
    """Why C2 fails, in words; empty when it holds.

    `up_to_sign` also refuses rows or columns that are each other's negative. Under the extended group, which
    flips signs of rows and columns, this is the reading that does not depend on the representative.
    """
    rows, columns = structure.rows, tuple(zip(*structure.rows, strict=True))
    used = {abs(cell) for cell in structure.cells}
    reasons = [f"r{part} is not used" for part in range(1, structure.parts + 1) if part not in used]
    for kind, lines in (("row", rows), ("column", columns)):
        reasons += [f"{kind} {place} is zero" for place, line in enumerate(lines, 1) if not any(line)]
        for (i, one), (j, other) in combinations(enumerate(lines, 1), 2):
            if not any(one):
                continue
            if one == other:
                reasons.append(f"{kind}s {i} and {j} are equal")
            elif up_to_sign and all(a == -b for a, b in zip(one, other, strict=True)):
                reasons.append(f"{kind}s {i} and {j} are opposite")
    return reasons


def satisfies_c2(structure: Structure, up_to_sign: bool = False) -> bool:
    """C2: no zero rows or columns, no repeated ones, all relation parts used. `c2_reasons` without the words."""
    return cells_satisfy_c2(structure.cells, structure.parts, up_to_sign)


def cells_satisfy_c2(cells: Cells, parts: int, up_to_sign: bool = False) -> bool:
    """`satisfies_c2` on cells in reading order, for loops over many candidates."""
    return cells_cover(cells, parts) and all(
        len(set(lines)) == parts  # mostly they differ without their signs already
        or len({max(line, negative(line)) if up_to_sign else line for line in with_signs}) == parts
        for lines, with_signs in zip(
            rows_and_columns(tuple(map(abs, cells)), parts), rows_and_columns(cells, parts), strict=True
        )
    )


def negative(line: Cells) -> Cells:
    return tuple(map(neg, line))


def covers(structure: Structure) -> bool:
    """The part of C2 that every group keeps: all relation parts used, no zero row or column."""
    return cells_cover(structure.cells, structure.parts)


def cells_cover(cells: Cells, parts: int) -> bool:
    """`covers` on cells in reading order."""
    used = set(map(abs, cells))
    used.discard(0)
    return len(used) == parts and all(all(map(any, lines)) for lines in rows_and_columns(cells, parts))


def rows_and_columns(cells: Cells, parts: int) -> tuple[list[Cells], list[Cells]]:
    rows = [cells[start : start + parts] for start in range(0, parts * parts, parts)]
    return rows, [cells[start::parts] for start in range(parts)]


def is_reachable(structure: Structure) -> bool:
    """Whether Alg. 2 can build it: it grows from an f^4, so K cells lie in distinct rows, columns and parts."""
    choices = columns_and_labels(structure)

    def grows(row: int, taken: int) -> bool:
        return row == len(choices) or any(
            grows(row + 1, taken | chosen) for chosen in choices[row] if not taken & chosen
        )

    return grows(0, 0)


def transversals(structure: Structure) -> int:
    """How many ways to choose K cells in distinct rows, columns and relation parts: the f^4 it contains."""
    return ways_to_choose(columns_and_labels(structure))


def columns_and_labels(structure: Structure) -> list[list[int]]:
    """For each row, what each of its blocks takes: a column and a relation part, as bits."""
    return [
        [1 << column | 1 << structure.parts + abs(cell) for column, cell in enumerate(row) if cell]
        for row in structure.rows
    ]


def permanent(structure: Structure) -> int:
    """How many ways to choose K non-zero cells in distinct rows and columns."""
    return ways_to_choose([1 << column for column, cell in enumerate(row) if cell] for row in structure.rows)


def ways_to_choose(rows: Iterable[list[int]]) -> int:
    """In how many ways one set of each row can be chosen, the sets given as bits, so that no two overlap."""
    ways = {0: 1}  # what is taken -> in how many ways
    for row in rows:
        grown: dict[int, int] = {}
        for taken, count in ways.items():
            for chosen in row:
                if not taken & chosen:
                    grown[taken | chosen] = grown.get(taken | chosen, 0) + count
        ways = grown
    return sum(ways.values())
