"""Structures as numbers for a predictor: the paper's SRFs, its one-hot rival, and a finer invariant vector."""

from __future__ import annotations

from collections import Counter
from functools import cache, lru_cache
from math import copysign
from operator import mul
from typing import TYPE_CHECKING

from autosf.algebra.constraints import (
    SKEW_SYMMETRIC,
    SYMMETRIC,
    inverting_names,
    permanent,
    solved,
    transversals,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from autosf.algebra.structure import Structure

Partition = tuple[int, ...]  # sizes of the groups of equal absolute value, largest first
Lines = tuple[tuple[int, ...], ...]  # rows or columns of a structure
Matrix = tuple[tuple[int, ...], ...]


def srf(structure: Structure) -> tuple[int, ...]:
    """Symmetry-related features (Appendix, Alg. 3): for S1, S2, ... a pair (can be symmetric, can be skew).

    22 for K = 4. A case asks for some number of non-zero values in groups of equal absolute value. All r that
    make g symmetric are known at once (`constraints.solved`): its free variables have fixed sizes, and a case
    holds if choosing and merging some of them gives its groups. No assignment is ever tried.
    """
    cells, parts = structure.cells, structure.parts
    pairs = [attainable(solved(cells, parts, sign)) for sign in (SYMMETRIC, SKEW_SYMMETRIC)]
    return tuple(bit for case in zip(*pairs, strict=True) for bit in case)


def sizes(values: tuple[int, ...]) -> Partition:
    """How many relation parts hang on each free variable, largest first."""
    return tuple(sorted(Counter(abs(v) for v in values if v).values(), reverse=True))


@cache
def cases(parts: int) -> tuple[Partition, ...]:
    """S1, S2, ... in the paper's order: (1,1,1,1), (2,2), (2,1,1), (3,1), (4), (1,1,1), ... for K = 4."""
    ordered = []
    for nonzero in range(parts, 0, -1):
        ordered += sorted(partitions(nonzero, nonzero), key=lambda groups: (groups[0], len(groups), groups))
    return tuple(ordered)


def partitions(total: int, largest: int) -> Iterator[Partition]:
    """All ways to write `total` as a sum of positive numbers up to `largest`, largest first."""
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


@lru_cache(maxsize=4096)
def attainable(values: tuple[int, ...]) -> tuple[int, ...]:
    """For each case, 1 if its groups arise by dropping and merging free variables of the values."""
    reached: set[Partition] = {()}
    for size in sizes(values):
        grown = set(reached)
        for groups in reached:
            grown.add(descending(*groups, size))
            grown |= {
                descending(*groups[:place], group + size, *groups[place + 1 :])
                for place, group in enumerate(groups)
            }
        reached = grown
    return tuple(int(case in reached) for case in cases(len(values)))


def descending(*groups: int) -> Partition:
    return tuple(sorted(groups, reverse=True))


def one_hot(structure: Structure) -> tuple[int, ...]:
    """The ablation's encoding (Fig. 8), 96 numbers for K = 4: per cell, which relation part, and which sign.

    The paper gives only the size; K one-hot labels and two signs for each of the K * K cells is our reading.
    """
    parts = range(1, structure.parts + 1)
    return tuple(
        bit
        for cell in structure.cells
        for bit in (*(int(abs(cell) == k) for k in parts), int(cell > 0), int(cell < 0))
    )


def invariants(structure: Structure) -> tuple[float, ...]:
    """A finer vector, constant on each class of the extended group; `invariant_names` tells the entries.

    Each entry is a count or a trace that no permutation, renaming or sign flip can change: counts of cells and
    of mirrored pairs (a flip changes both signs of a pair alike), sorted degrees, and moments of Gram matrices
    (conjugated by signed permutations, so their traces stay). Traces are exact integers before their roots.
    """
    rows, parts = structure.rows, structure.parts
    columns = tuple(zip(*rows, strict=True))
    diagonal = [abs(rows[i][i]) for i in range(parts) if rows[i][i]]
    pairs = Counter(pair_kind(rows[i][j], rows[j][i]) for i in range(parts) for j in range(i))
    use = Counter(abs(cell) for cell in structure.cells if cell)
    solutions, f4, related = solved_invariants(structure)
    return (
        float(structure.blocks),
        *solutions,
        float(len(diagonal)),
        float(len(set(diagonal))),
        *(float(pairs[kind]) for kind in PAIR_KINDS),
        *f4,
        *sorted((float(use[label]) for label in range(1, parts + 1)), reverse=True),
        *degrees(rows),
        *degrees(columns),
        *moments(gram(rows, rows)),
        *moments(gram(columns, columns)),
        *moments(gram(rows, columns)),
        *related,
    )


@lru_cache(maxsize=1 << 16)
def solved_invariants(structure: Structure) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Those that take more than counting: how g(r) can be symmetric, skew, inverted; the f^4 inside, the SRFs."""
    free = [solved(structure.cells, structure.parts, sign) for sign in (SYMMETRIC, SKEW_SYMMETRIC)]
    dimensions = [float(len(set(map(abs, values)) - {0})) for values in free]
    parts = [float(sum(map(bool, values))) for values in free]
    f4 = float(permanent(structure)), float(transversals(structure))
    return (*dimensions, *parts, *inversion(structure)), f4, tuple(map(float, srf(structure)))


def inversion(structure: Structure) -> tuple[float, float, float]:
    """How many relation parts keep, exchange and turn their names in an inverse; zeros where there is none."""
    names = inverting_names(structure)
    if names is None:
        return 0.0, 0.0, 0.0
    kept = sum(name == part for part, name in enumerate(names, 1))
    turned = sum(name == -part for part, name in enumerate(names, 1))
    return float(kept), float(len(names) - kept - turned), float(turned)


PAIR_KINDS = ("symmetric", "opposite", "mixed", "one-sided")


def pair_kind(one: int, other: int) -> str:
    """How cell (i, j) relates to cell (j, i)."""
    if not one and not other:
        return "empty"
    if not one or not other:
        return "one-sided"
    if abs(one) != abs(other):
        return "mixed"
    return "symmetric" if one == other else "opposite"


@cache
def invariant_names(parts: int) -> tuple[str, ...]:
    """What each entry of `invariants` is."""
    numbered = range(1, parts + 1)
    return (
        "blocks",
        "symmetric dimension",
        "skew dimension",
        "symmetric parts",
        "skew parts",
        *(f"parts {how} by inversion" for how in ("kept", "exchanged", "turned")),
        "diagonal cells",
        "diagonal labels",
        *(f"{kind} pairs" for kind in PAIR_KINDS),
        "permanent",
        "transversals",
        *(f"use of label {k}" for k in numbered),
        *(f"row degree {k}" for k in numbered),
        *(f"column degree {k}" for k in numbered),
        *(f"{which} moment {p}" for which in ("head", "tail", "mirror") for p in POWERS),
        *(f"S{k}{kind}" for k in range(1, len(cases(parts)) + 1) for kind in (" symmetric", " skew")),
    )


def degrees(lines: Lines) -> tuple[float, ...]:
    """Non-zero cells per line, largest first."""
    return tuple(sorted((float(sum(map(bool, line))) for line in lines), reverse=True))


def gram(ones: Lines, others: Lines) -> Matrix:
    """Inner products of lines of the unfolded tensor T[i, k, j]: signs where label and place agree.

    Rows with rows and columns with columns give the head's and the tail's unfolding; rows with columns give
    the sum over k of M_k M_k, where g(r) = sum of r_k M_k: how the structure meets its own transpose.
    """
    return tuple(tuple(agreement(one, other) for other in others) for one in ones)


def agreement(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Places with the same signed label less those with opposite ones."""
    return sum((a == b) - (a == -b) for a, b in zip(one, other, strict=True) if a)


POWERS = (1, 2, 3, 4)


def moments(matrix: Matrix) -> tuple[float, ...]:
    """Signed p-th roots of the traces of the powers 1 to 4: norms of the spectrum, all in units of blocks."""
    power, traces = matrix, []
    for _ in POWERS:
        traces.append(sum(power[i][i] for i in range(len(matrix))))
        power = product(power, matrix)
    return tuple(copysign(abs(trace) ** (1 / p), trace) for p, trace in zip(POWERS, traces, strict=True))


def product(one: Matrix, other: Matrix) -> Matrix:
    columns = tuple(zip(*other, strict=True))
    return tuple(tuple(sum(map(mul, row, column)) for column in columns) for row in one)


ENCODERS: dict[str, Callable[[Structure], tuple[float, ...]]] = {
    "srf": srf,
    "one-hot": one_hot,
    "invariants": invariants,
}
