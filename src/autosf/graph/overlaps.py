"""How many triples two relations share, in the same direction and reversed: the base of patterns and leakage.

All relations over one unordered pair of entities lie side by side after one sort; only pairs with at least
two facts (or a loop) are looked at further, so the work is one sort plus the sum of squares of the facts
per pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.graph.keys import LARGEST_KEY, pair_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

ROWS_AT_ONCE = 4_000_000  # bounds memory where one pair of entities has thousands of relations


@dataclass(frozen=True, slots=True)
class Overlaps:
    """`count` triples (h, relation, t) have (h, other, t) or, where `reversed`, (t, other, h). [m] each

    Combinations that never occur are left out, and so is every relation with itself in the same direction.
    """

    relation: NDArray[np.int64]
    other: NDArray[np.int64]
    reversed: NDArray[np.bool_]
    count: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts sorted by unordered pair; `start` and `size` say where a fact's pair begins, how many it has."""

    relation: NDArray[np.int64]
    backward: NDArray[np.bool_]
    loop: NDArray[np.bool_]
    start: NDArray[np.int64]
    size: NDArray[np.int64]


def relation_overlaps(triples: NDArray[np.int32], *, entities: int, relations: int) -> Overlaps:
    """Overlaps of all pairs of relations in `triples`, which must be distinct."""
    facts = _facts_of_shared_pairs(triples, entities, relations)
    codes, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for left, right in _facts_side_by_side(facts):
        code, count = np.unique(_codes(facts, left, right, relations), return_counts=True)
        codes.append(code)
        counts.append(count)
    code, place = np.unique(np.concatenate(codes), return_inverse=True)
    count = np.zeros(len(code), np.int64)
    np.add.at(count, place, np.concatenate(counts))
    pair, is_reversed = np.divmod(code, 2)
    return Overlaps(pair // relations, pair % relations, is_reversed.astype(bool), count)


def _facts_of_shared_pairs(triples: NDArray[np.int32], entities: int, relations: int) -> _Facts:
    """The facts whose pair of entities has another fact in either direction, or is a loop.

    All others are left out as early as can be: on large graphs these are few, and passes over all cost most.
    """
    head, relation, tail = triples[:, 0], triples[:, 1], triples[:, 2]
    keys = pair_keys(np.minimum(head, tail), np.maximum(head, tail), entities)
    names = None
    if entities * entities * relations * 2 > LARGEST_KEY:
        names, keys = np.unique(keys, return_inverse=True)
    keys *= 2 * relations
    keys += 2 * relation.astype(np.int64)
    keys += head > tail
    keys.sort()
    pair = keys // max(2 * relations, 1)
    again = pair[1:] == pair[:-1]
    kept = np.zeros(len(pair), dtype=bool)
    kept[1:] |= again
    kept[:-1] |= again
    if (head == tail).any():
        kept |= _is_loop(pair, names, entities)
    pair, token = pair[kept], keys[kept] % max(2 * relations, 1)
    return _grouped(pair, token, _is_loop(pair, names, entities))


def _is_loop(pair: NDArray[np.int64], names: NDArray[np.int64] | None, entities: int) -> NDArray[np.bool_]:
    low, high = np.divmod(pair if names is None else names[pair], max(entities, 1))
    return np.asarray(low == high)


def _grouped(pair: NDArray[np.int64], token: NDArray[np.int64], loop: NDArray[np.bool_]) -> _Facts:
    """Facts sorted by pair, with their pair's start and size; a token is a relation and a direction."""
    start = np.flatnonzero(np.diff(pair, prepend=-1))
    size = np.diff(start, append=len(pair))
    return _Facts(
        relation=token >> 1,
        backward=(token & 1).astype(bool),
        loop=loop,
        start=np.repeat(start, size),
        size=np.repeat(size, size),
    )


def _facts_side_by_side(facts: _Facts) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Places of all ordered couples of facts about one pair of entities, a bounded number at a time."""
    reached = np.cumsum(facts.size)
    begin = 0
    while begin < len(reached):
        done = reached[begin - 1] if begin else 0
        end = max(int(np.searchsorted(reached, done + ROWS_AT_ONCE, side="right")), begin + 1)
        size = facts.size[begin:end]
        left = np.repeat(np.arange(begin, end), size)
        within = np.arange(len(left)) - np.repeat(np.cumsum(size) - size, size)
        yield left, facts.start[left] + within
        begin = end


def _codes(
    facts: _Facts, left: NDArray[np.int64], right: NDArray[np.int64], relations: int
) -> NDArray[np.int64]:
    """(relation, other, reversed) of each couple as one integer; a loop counts both ways."""
    pair = (facts.relation[left] * relations + facts.relation[right]) * 2
    turned = facts.backward[left] != facts.backward[right]
    loop = facts.loop[left]
    same = ~turned & (facts.relation[left] != facts.relation[right])
    return np.concatenate([pair[same], pair[turned | loop] + 1])
