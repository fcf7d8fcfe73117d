"""What the graph says of one entity: its triples by relation and direction, found by two sorted columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph

MOST_TRIPLES = 20_000  # of one entity that are looked at


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """All triples of a graph [n, 3], and their places sorted by head and by tail."""

    triples: NDArray[np.int32]
    by_head: NDArray[np.int64]
    by_tail: NDArray[np.int64]
    uses: NDArray[np.int64]  # of each entity


@dataclass(frozen=True, slots=True)
class Side:
    """The neighbours by one relation: tails where the entity is the head, or heads where it is the tail."""

    relation: int
    outwards: bool
    count: int
    entities: tuple[int, ...]  # some of them, the busiest first


def neighbourhood(graph: KnowledgeGraph, uses: NDArray[np.int64]) -> Neighbourhood:
    triples = np.concatenate([part for _, part in graph.splits()])
    by_head, by_tail = (np.argsort(triples[:, column], kind="stable") for column in (0, 2))
    return Neighbourhood(triples, by_head, by_tail, uses)


def sides_of(known: Neighbourhood, entity: int, limit: int) -> list[Side]:
    """The entity's neighbours by relation and direction, those with the most first; `limit` of each."""
    found = []
    for outwards, order, own, other in ((True, known.by_head, 0, 2), (False, known.by_tail, 2, 0)):
        column = known.triples[:, own]
        first, last = np.searchsorted(column, (entity, entity + 1), sorter=order)
        triples = known.triples[order[first:last][:MOST_TRIPLES]]
        for relation in np.unique(triples[:, 1]):
            others = np.unique(triples[triples[:, 1] == relation, other])
            order_of_use = np.lexsort((others, -known.uses[others]))
            some = tuple(others[order_of_use][:limit].tolist())
            found.append(Side(int(relation), outwards, len(others), some))
    return sorted(found, key=lambda side: (-side.count, side.relation, not side.outwards))
