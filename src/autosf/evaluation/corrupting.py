"""False triples made from true ones, where a graph has no `valid_neg` and `test_neg` of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.graph.keys import pair_keys, sorted_distinct
from autosf.graph.known_answers import known_answers
from autosf.graph.negatives import LabelledTriples, Negatives

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.known_answers import KnownAnswers

ROUNDS = 16  # draws of a replacement, before the few that are left are listed


def made_negatives(
    graph: KnowledgeGraph, rng: np.random.Generator, known: KnownAnswers | None = None
) -> Negatives:
    """The triples of valid and test, each split with one false triple for each true one (see `corrupted`)."""
    known = known_answers(graph) if known is None else known
    valid, test = (with_negatives(graph, split, known, rng) for split in (graph.valid, graph.test))
    return Negatives(valid=valid, test=test)


def corrupted(
    graph: KnowledgeGraph, triples: NDArray[np.int32], known: KnownAnswers, rng: np.random.Generator
) -> NDArray[np.int32]:
    """For each triple one that is not known, with another head or tail. [m, 3]

    By a fair coin the head or the tail is replaced, uniformly by an entity that train shows in this place of
    this relation. Where all of those make true triples the other side is tried, then any entity; where
    that fails, too, the triple gets no false one, and m is below n.
    """
    pools = {side: _seen_in_place(graph, side) for side in (0, 2)}
    made = triples.copy()
    sides = np.where(rng.random(len(triples)) < 0.5, 0, 2)
    waiting = np.arange(len(triples))
    for _ in range(ROUNDS):
        made[waiting, sides[waiting]] = _drawn(pools, triples[waiting, 1], sides[waiting], rng)
        waiting = waiting[known.hold(made[waiting]) | _is_kept(made, triples, waiting)]
        if not len(waiting):
            return made
    is_made = np.ones(len(made), dtype=bool)
    for place in waiting.tolist():
        is_made[place] = _replaced(made, triples, place, int(sides[place]), pools, known, rng)
    return made[is_made]


@dataclass(frozen=True, slots=True, eq=False)
class _Pool:
    """Entities by relation: those of relation r are entities[offsets[r]:offsets[r + 1]]; `count` in all."""

    entities: NDArray[np.int32]
    offsets: NDArray[np.int64]
    count: int

    def of(self, relation: int) -> NDArray[np.int32]:
        return self.entities[self.offsets[relation] : self.offsets[relation + 1]]


def _seen_in_place(graph: KnowledgeGraph, side: int) -> _Pool:
    """The entities that train shows as head (side 0) or tail (side 2) of each relation."""
    width = max(len(graph.entities), 1)
    keys = sorted_distinct(pair_keys(graph.train[:, 1], graph.train[:, side], width))
    relations, entities = np.divmod(keys, width)
    sizes = np.bincount(relations, minlength=len(graph.relations))
    return _Pool(entities.astype(np.int32), np.append(0, np.cumsum(sizes)), len(graph.entities))


def _drawn(
    pools: dict[int, _Pool], relations: NDArray[np.int32], sides: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """An entity for each (relation, side), uniform over its pool, over all where the pool is empty. [n]"""
    drawn = np.empty(len(relations), dtype=np.int64)
    for side, pool in pools.items():
        here = np.flatnonzero(sides == side)
        starts, ends = pool.offsets[relations[here]], pool.offsets[relations[here] + 1]
        filled = starts < ends
        drawn[here[~filled]] = rng.integers(max(pool.count, 1), size=np.count_nonzero(~filled))
        drawn[here[filled]] = pool.entities[rng.integers(starts[filled], ends[filled])]
    return drawn


def _is_kept(
    made: NDArray[np.int32], triples: NDArray[np.int32], places: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which triples came out unchanged; one that is not among the known ones would otherwise pass."""
    kept: NDArray[np.bool_] = (made[places] == triples[places]).all(axis=1)
    return kept


def _replaced(
    made: NDArray[np.int32],
    triples: NDArray[np.int32],
    place: int,
    side: int,
    pools: dict[int, _Pool],
    known: KnownAnswers,
    rng: np.random.Generator,
) -> bool:
    """Write a false triple at `place` of `made`, of all there are; whether there is one."""
    head, relation, tail = (int(part) for part in triples[place])
    true = {0: known.heads_of(relation, tail), 2: known.tails_of(head, relation)}
    own = {0: head, 2: tail}
    for where, everyone in ((side, False), (2 - side, False), (side, True), (2 - side, True)):
        pool = np.arange(pools[where].count) if everyone else pools[where].of(relation)
        is_false = np.ones(pools[where].count, dtype=bool)
        is_false[true[where]] = is_false[own[where]] = False
        left = pool[is_false[pool]]
        if len(left):
            made[place] = triples[place]
            made[place, where] = rng.choice(left)
            return True
    return False


def with_negatives(
    graph: KnowledgeGraph, triples: NDArray[np.int32], known: KnownAnswers, rng: np.random.Generator
) -> LabelledTriples:
    """The triples, all true, with a false one for each (see `corrupted`)."""
    false = corrupted(graph, triples, known, rng)
    both = np.concatenate([triples, false])
    is_true = np.arange(len(both)) < len(triples)
    both.flags.writeable = is_true.flags.writeable = False
    return LabelledTriples(both, is_true)
