"""Negative triples for Alg. 1, step 5: which side to corrupt, and by which entities.

A true triple may come up as a negative by accident, as it does in the methods cited: there are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.graph.known_answers import known_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True, slots=True, eq=False)
class Negatives:
    """For each triple whether its tail (else its head) is replaced, and by what. [n] and [n, m]"""

    tails: NDArray[np.bool_]
    candidates: NDArray[np.int64]


def uniform(triples: NDArray[np.int32], entities: int, negatives: int, rng: np.random.Generator) -> Negatives:
    """Either side with equal chance, any entity with equal chance (Bordes et al., 2013)."""
    tails = rng.random(len(triples)) < 0.5
    return Negatives(tails, rng.integers(0, entities, (len(triples), negatives)))


def bernoulli(
    triples: NDArray[np.int32],
    entities: int,
    negatives: int,
    rng: np.random.Generator,
    tail_chance: NDArray[np.float64],
) -> Negatives:
    """The side less likely to make a true triple by accident (Wang et al., 2014), by relation."""
    tails = rng.random(len(triples)) < tail_chance[triples[:, 1]]
    return Negatives(tails, rng.integers(0, entities, (len(triples), negatives)))


def tail_chances(graph: KnowledgeGraph) -> NDArray[np.float64]:
    """For each relation, the chance to replace the tail: heads per tail over both. [R]

    A relation with many tails a head gets its head replaced more often.
    """
    relations = len(graph.relations)
    known = known_answers(graph, ["train"])
    triples = np.bincount(graph.train[:, 1], minlength=relations)
    tail_rows = np.bincount(known.tails.queries().relations, minlength=relations)
    head_rows = np.bincount(known.heads.queries().relations, minlength=relations)
    tails_per_head = triples / np.maximum(tail_rows, 1)
    heads_per_tail = triples / np.maximum(head_rows, 1)
    return heads_per_tail / np.maximum(tails_per_head + heads_per_tail, 1e-12)


class Cache:
    """NSCaching (Zhang et al., 2019), which the paper cites: each query keeps entities that score high.

    Owns the caches of the tail queries and head queries met in training, `kept` by whether they ask for the
    tail. A batch renews those of its queries, then draws its negatives from them: of the cached ones and as many
    random ones, some are kept by chance in proportion to the exponential of their scores.
    """

    def __init__(self, graph: KnowledgeGraph, size: int, rng: np.random.Generator) -> None:
        known = known_answers(graph, ["train"])
        self._sides = {True: known.tails, False: known.heads}
        self._entities, self._size = len(graph.entities), size
        self.kept = {
            side: rng.integers(0, self._entities, (len(answers.keys), size), dtype=np.int32)
            for side, answers in self._sides.items()
        }

    def rows(self, triples: NDArray[np.int32], side: bool) -> NDArray[np.int64]:
        """The cache's row of each triple's query on one side."""
        entity = triples[:, 0 if side else 2].astype(np.int64)
        keys = triples[:, 1].astype(np.int64) * self._sides[side].width + entity
        return np.searchsorted(self._sides[side].keys, keys)

    def draw(self, triples: NDArray[np.int32], negatives: int, rng: np.random.Generator) -> Negatives:
        """Either side with equal chance, entities of its cache with equal chance."""
        tails = rng.random(len(triples)) < 0.5
        candidates = np.empty((len(triples), negatives), dtype=np.int64)
        for side in (True, False):
            here = np.flatnonzero(tails == side)
            rows = self.rows(triples[here], side)
            places = rng.integers(0, self._size, (len(here), negatives))
            candidates[here] = self.kept[side][rows[:, None], places]
        return Negatives(tails, candidates)

    def renew(
        self,
        triples: NDArray[np.int32],
        score: Callable[[NDArray[np.int32], bool, NDArray[np.int64]], NDArray[np.float32]],
        rng: np.random.Generator,
    ) -> None:
        """Let high-scoring entities stay: Gumbel noise on the scores samples without replacement."""
        for side in (True, False):
            rows, first = np.unique(self.rows(triples, side), return_index=True)
            fresh = rng.integers(0, self._entities, (len(rows), self._size))
            pool = np.concatenate([self.kept[side][rows].astype(np.int64), fresh], axis=1)
            noisy = score(triples[first], side, pool) + rng.gumbel(size=pool.shape)
            best = np.argpartition(-noisy, self._size - 1, axis=1)[:, : self._size]
            self.kept[side][rows] = np.take_along_axis(pool, best, axis=1)
