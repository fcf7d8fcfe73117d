"""Structures that are the same scoring function (Sec. IV-A2), and one representative for each class.

The paper's group permutes entity parts (head and tail alike), permutes relation parts and flips the signs of
relation parts: 24 * 24 * 16 = 9,216 images for K = 4. The extended group also flips signs of entity parts,
which changes row i and column i together; this is exact for training too, as Adagrad, L2, N3, the unit ball
and a sign-symmetric start all commute with it. Transposition (swapping head and tail) stays apart: it is exact
only for a loss on both sides over triples closed under reversal.
"""

from __future__ import annotations

from functools import cache, lru_cache
from itertools import permutations, product
from operator import itemgetter
from typing import TYPE_CHECKING, Literal

from autosf.algebra.labelling import best_order
from autosf.algebra.structure import Cells, Structure, from_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Group = Literal["paper", "extended"]
LISTED_PARTS = 6  # up to this size all entity orders are listed: 720; above, they are searched


def permuted(structure: Structure, order: Sequence[int]) -> Structure:
    """Entity parts in another order, for head and tail alike (Fig. 2d): place i takes part `order[i]`."""
    return Structure(tuple(tuple(structure.rows[i - 1][j - 1] for j in order) for i in order))


def renamed(structure: Structure, names: Sequence[int]) -> Structure:
    """Relation part k becomes `names[k]`; a negative name also flips its sign (Fig. 2e, 2f)."""
    return from_cells(renamed_cells(structure.cells, names))


def renamed_cells(cells: Sequence[int], names: Sequence[int]) -> list[int]:
    """`renamed` on cells in reading order, for loops over many candidates."""
    signed = (0, *names, *(-name for name in reversed(names)))  # also for negative cells, from its end
    return [signed[cell] for cell in cells]


def entity_flipped(structure: Structure, signs: Sequence[int]) -> Structure:
    """Entity parts times `signs`: cell (i, j) changes by signs[i] * signs[j]. The extended group only."""
    return Structure(
        tuple(
            tuple(s * t * cell for t, cell in zip(signs, row, strict=True))
            for s, row in zip(signs, structure.rows, strict=True)
        )
    )


def transposed(structure: Structure) -> Structure:
    """Head and tail exchanged: the structure of every relation's reverse."""
    return Structure(tuple(zip(*structure.rows, strict=True)))


def images(structure: Structure, group: Group = "paper") -> Iterator[Structure]:
    """Every image under the group, one for each of its elements, with repeats: the plain definition.

    9,216 for the paper's group and K = 4; eight times as many distinct sign patterns for the extended one.
    """
    parts = range(1, structure.parts + 1)
    flips = list(product((1, -1), repeat=structure.parts - 1)) if group == "extended" else [()]
    for order in permutations(parts):
        for flip in flips:
            turned = permuted(structure, order)
            turned = entity_flipped(turned, (1, *flip)) if flip else turned
            for names in permutations(parts):
                for signs in product((1, -1), repeat=structure.parts):
                    yield renamed(turned, [s * k for s, k in zip(signs, names, strict=True)])


def equivalents(structure: Structure, group: Group = "paper") -> frozenset[Structure]:
    """All structures that are the same scoring function; K = 4 at most in practice, the set grows as K!^2."""
    return frozenset(images(structure, group))


def are_equivalent(one: Structure, other: Structure, group: Group = "paper") -> bool:
    """Whether the two are the same scoring function under the group."""
    return one.parts == other.parts and canonical(one, group) == canonical(other, group)


@lru_cache(maxsize=1 << 14)  # leaderboards and keys ask again for those of every record
def canonical(structure: Structure, group: Group = "paper") -> Structure:
    """The class's representative: equal for two structures if and only if they are equivalent.

    Only entity orders are listed, and of these only the ones that bring the non-zero cells furthest forward;
    names and signs follow by order of first appearance. `benchmarks/algebra.py` measures the gain over `images`.
    """
    return from_cells(canonical_cells(structure.cells, structure.parts, group))


def canonical_cells(cells: Cells, parts: int, group: Group = "paper") -> Cells:
    """`canonical` on cells in reading order, for loops over many candidates."""
    if parts > LISTED_PARTS:
        form = named_in_order if group == "paper" else named_and_signed
        return best_order(cells, parts, lambda image: form(image, parts))
    picks = leading(tuple(map(bool, cells)), parts)
    if group == "paper":
        return max(named_in_order(pick(cells), parts) for pick in picks)
    return best_signed(cells, parts, picks)


def best_signed(cells: Cells, parts: int, picks: Iterable[Callable[[Cells], Cells]]) -> Cells:
    """The largest image by the extended group. No sign makes a cell larger, so that few orders need be signed."""
    unsigned = tuple(map(abs, cells))
    by_labels: dict[Cells, list[Callable[[Cells], Cells]]] = {}
    for pick in picks:
        by_labels.setdefault(labelled_in_order(pick(unsigned)), []).append(pick)
    best: Cells = ()
    for labels in sorted(by_labels, reverse=True):
        for pick in by_labels[labels]:
            if labels <= best:
                return best
            best = max(best, signed(labels, pick(cells), parts))
    return best


@lru_cache(maxsize=1 << 16)
def leading(support: tuple[bool, ...], parts: int) -> tuple[Callable[[Cells], Cells], ...]:
    """The entity orders that give the largest support in reading order."""
    supports = [pick(support) for pick in orders(parts)]
    best = max(supports)
    return tuple(pick for pick, image in zip(orders(parts), supports, strict=True) if image == best)


@cache
def orders(parts: int) -> tuple[Callable[[Cells], Cells], ...]:
    """All entity permutations, each as a function on cells in reading order."""
    return tuple(
        itemgetter(*(i * parts + j for i in order for j in order)) for order in permutations(range(parts))
    )


def named_in_order(cells: Cells, parts: int) -> Cells:
    """Relation parts named 1, 2, ... and made positive in order of first appearance."""
    names = [0] * (2 * parts + 1)  # of -1, ..., -parts from its end
    used = 0
    for cell in cells:
        if cell and not names[cell]:
            used += 1
            names[cell], names[-cell] = used, -used
    return tuple([names[cell] for cell in cells])


def labelled_in_order(unsigned: Cells) -> Cells:
    """Relation parts named 1, 2, ... in order of first appearance, signs left aside."""
    names = {0: 0}
    return tuple([names.setdefault(cell, len(names)) for cell in unsigned])


def named_and_signed(cells: Cells, parts: int) -> Cells:
    """Relation parts named in order, entity and relation signs chosen so that the earliest cells are positive."""
    return signed(labelled_in_order(tuple(map(abs, cells))), cells, parts)


def signed(labels: Cells, cells: Cells, parts: int) -> Cells:
    """The labels of the cells with the signs that are left once the earliest cells are made positive."""
    result = list(labels)
    negative = sum([1 << place for place, cell in enumerate(cells) if cell < 0])
    for place, deciders in sign_rule(labels, parts):
        if (negative & deciders).bit_count() % 2:
            result[place] = -result[place]
    return tuple(result)


@lru_cache(maxsize=1 << 16)
def sign_rule(labels: Cells, parts: int) -> tuple[tuple[int, int], ...]:
    """Cells whose sign cannot be chosen, each with the cells whose signs multiply to it, as bits.

    The sign of cell (i, j) with label k changes with e_i * e_j * r_k. Over GF(2) that is a vector; going
    through the cells in reading order, one independent of those before can be made positive, and a dependent
    one keeps the product of the signs along its dependency.
    """
    basis: dict[int, tuple[int, int]] = {}  # lowest bit -> (vector, set of places it was combined from)
    rule = []
    for place, label in enumerate(labels):
        if not label:
            continue
        vector = (1 << place // parts) ^ (1 << place % parts) ^ (1 << (parts + label))
        used = 1 << place
        while vector and (lowest := vector & -vector) in basis:
            vector, used = vector ^ basis[lowest][0], used ^ basis[lowest][1]
        if vector:
            basis[vector & -vector] = (vector, used)
        else:
            rule.append((place, used))
    return tuple(rule)
