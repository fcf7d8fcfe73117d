"""Relation patterns by the paper's rule (Sec. V-A) and the usual categories 1-1, 1-N, N-1, N-N.

The rule is read literally: with n_r distinct triples of relation r in train, r is symmetric if more than
0.9 n_r of them have (t, r, h); anti-symmetric if none has and at least 0.1 n_r entities are both head and
tail of r; inverse if another relation r' has (t, r', h) for at least 0.9 n_r; else general. The first that
holds counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.graph.keys import in_both, pair_keys, sorted_distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.graph.overlaps import Overlaps

PATTERNS = ("symmetric", "anti_symmetric", "inverse", "general")
CATEGORIES = ("1-1", "1-N", "N-1", "N-N")
NOBODY = -1


@dataclass(frozen=True, slots=True)
class RelationCounts:
    """Of each relation: distinct triples, heads, tails, entities that are both. [relations] each"""

    triples: NDArray[np.int64]
    heads: NDArray[np.int64]
    tails: NDArray[np.int64]
    both: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Patterns:
    """Of each relation: its pattern's place in PATTERNS, its inverse's id or NOBODY. [relations] each"""

    pattern: NDArray[np.int64]
    partner: NDArray[np.int64]

    def totals(self) -> dict[str, int]:
        """How many relations follow each pattern."""
        counts = np.bincount(self.pattern, minlength=len(PATTERNS))
        return {name: int(count) for name, count in zip(PATTERNS, counts, strict=True)}


def relation_counts(triples: NDArray[np.int32], *, entities: int, relations: int) -> RelationCounts:
    """Counts of each relation over distinct triples."""
    heads = sorted_distinct(pair_keys(triples[:, 1], triples[:, 0], entities))
    tails = sorted_distinct(pair_keys(triples[:, 1], triples[:, 2], entities))

    def by_relation(keys: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.bincount(keys // max(entities, 1), minlength=relations)

    return RelationCounts(
        triples=np.bincount(triples[:, 1], minlength=relations),
        heads=by_relation(heads),
        tails=by_relation(tails),
        both=by_relation(in_both(heads, tails)),
    )


def relation_patterns(counts: RelationCounts, overlaps: Overlaps) -> Patterns:
    """Pattern and partner of each relation. A relation without triples shows nothing: it is general.

    Shares are compared in whole numbers (10 * count against 9 * n_r), so that no rounding decides.
    """
    total = counts.triples
    mirrored = np.zeros(len(total), np.int64)
    own = overlaps.reversed & (overlaps.relation == overlaps.other)
    mirrored[overlaps.relation[own]] = overlaps.count[own]
    partner = _inverse_partners(total, overlaps)
    rules = [
        10 * mirrored > 9 * total,
        (mirrored == 0) & (10 * counts.both >= total) & (total > 0),
        partner != NOBODY,
    ]
    pattern = np.select(rules, [0, 1, 2], default=3)
    return Patterns(pattern, np.where(pattern == PATTERNS.index("inverse"), partner, NOBODY))


def _inverse_partners(total: NDArray[np.int64], overlaps: Overlaps) -> NDArray[np.int64]:
    """The other relation that reverses most of a relation's triples, if at least 0.9 of them; else NOBODY."""
    holds = (
        overlaps.reversed
        & (overlaps.relation != overlaps.other)
        & (10 * overlaps.count >= 9 * total[overlaps.relation])
    )
    relation, other, count = overlaps.relation[holds], overlaps.other[holds], overlaps.count[holds]
    best_last = np.lexsort((-other, count, relation))
    partner = np.full(len(total), NOBODY, np.int64)
    partner[relation[best_last]] = other[best_last]  # the last of equal places is written last
    return partner


def relation_categories(counts: RelationCounts) -> list[str]:
    """Category of each relation: a side is N where it has at least 1.5 entities for one on the other side."""
    many_tails = 2 * counts.triples >= 3 * np.maximum(counts.heads, 1)
    many_heads = 2 * counts.triples >= 3 * np.maximum(counts.tails, 1)
    return [CATEGORIES[place] for place in 2 * many_heads + many_tails]
