"""Ranks in a few numbers: over all triples, by group, and how sure the mean reciprocal rank is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.algebra.notebook import facts
from autosf.errors import UserError, did_you_mean, quoted
from autosf.graph.keys import distinct
from autosf.graph.overlaps import relation_overlaps
from autosf.graph.patterns import (
    CATEGORIES,
    PATTERNS,
    relation_categories,
    relation_counts,
    relation_patterns,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from autosf.evaluation.ranking import Ranks
    from autosf.graph.knowledge_graph import KnowledgeGraph

SAMPLED_AT_ONCE = 1 << 21  # places drawn at a time by the bootstrap


@dataclass(frozen=True, slots=True)
class Metrics:
    """Means over ranks. `count` is of triples; of a triple's two sides each has the same weight.

    mrr and hits lie in [0, 1], 1 is best. The adjusted mean rank index is 1 at best and 0 by chance
    whatever the number of candidates; it is 0, too, where no triple has a second candidate.
    """

    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    mean_rank: float
    adjusted_mean_rank_index: float
    count: int

    def _repr_html_(self) -> str:
        shares = [
            ("MRR", self.mrr),
            ("Hits@1", self.hits_at_1),
            ("Hits@3", self.hits_at_3),
            ("Hits@10", self.hits_at_10),
        ]
        shown = [(name, f"{value:.4f}") for name, value in shares]
        return facts(f"{self.count:,} triples, filtered", [*shown, ("mean rank", f"{self.mean_rank:,.1f}")])


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap confidence interval of a mean, of the given level."""

    low: float
    high: float
    level: float


@dataclass(frozen=True, slots=True)
class RelationGroups:
    """A name for each group of relations, in the order to show them, and each relation's group. [R]"""

    names: tuple[str, ...]
    of_relation: NDArray[np.int64]


def summarise(ranks: Ranks) -> Metrics:
    """The metrics of both sides together."""
    return _metrics(
        np.concatenate([ranks.head_rank, ranks.tail_rank]),
        np.concatenate([ranks.head_candidates, ranks.tail_candidates]),
        len(ranks),
    )


def by_side(ranks: Ranks) -> dict[str, Metrics]:
    """The metrics of finding heads and of finding tails."""
    return {
        "head": _metrics(ranks.head_rank, ranks.head_candidates, len(ranks)),
        "tail": _metrics(ranks.tail_rank, ranks.tail_candidates, len(ranks)),
    }


def by_group(ranks: Ranks, groups: RelationGroups) -> dict[str, Metrics]:
    """The metrics of each group of relations that has triples, in the groups' order."""
    group = groups.of_relation[ranks.triples[:, 1]]
    order = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=len(groups.names)))
    parts = np.split(order, ends[:-1]) if len(ends) else []
    return {
        name: summarise(ranks.where(part))
        for name, part in zip(groups.names, parts, strict=True)
        if len(part)
    }


def grouped(ranks: Ranks, graph: KnowledgeGraph, by: str) -> dict[str, Metrics]:
    """The metrics by `side` or by one of GROUPINGS, of ranks of the graph's triples."""
    if by == "side":
        return by_side(ranks)
    if by not in tuple(GROUPINGS):  # a program may give what has no hash
        known = ("side", *GROUPINGS)
        nearest = did_you_mean(by, known) or f"; expected one of {', '.join(known)}"
        raise UserError(f"cannot group ranks by {quoted(by)}{nearest}")
    return by_group(ranks, GROUPINGS[by](graph))


def each_relation(graph: KnowledgeGraph) -> RelationGroups:
    """Every relation by itself, under its label."""
    labels = graph.relations.labels.to_list()
    return RelationGroups(tuple(labels), np.arange(len(labels)))


def by_pattern(graph: KnowledgeGraph) -> RelationGroups:
    """Relations by their pattern in train: symmetric, anti-symmetric, inverse, general (Sec. V-A)."""
    size = {"entities": len(graph.entities), "relations": len(graph.relations)}
    train = distinct(graph.train, **size)
    patterns = relation_patterns(relation_counts(train, **size), relation_overlaps(train, **size))
    return RelationGroups(PATTERNS, patterns.pattern)


def by_category(graph: KnowledgeGraph) -> RelationGroups:
    """Relations by their category in train: 1-1, 1-N, N-1, N-N."""
    size = {"entities": len(graph.entities), "relations": len(graph.relations)}
    counts = relation_counts(distinct(graph.train, **size), **size)
    places = [CATEGORIES.index(category) for category in relation_categories(counts)]
    return RelationGroups(CATEGORIES, np.array(places, dtype=np.int64))


GROUPINGS: dict[str, Callable[[KnowledgeGraph], RelationGroups]] = {
    "relation": each_relation,
    "pattern": by_pattern,
    "category": by_category,
}


def is_unseen(graph: KnowledgeGraph, triples: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which triples have an entity or a relation that train never shows. [n]

    Some libraries leave these out; `summarise(ranks.where(~is_unseen(graph, ranks.triples)))` does.
    """
    new_entity = np.ones(len(graph.entities), dtype=bool)
    new_entity[graph.train[:, ::2]] = False
    new_relation = np.ones(len(graph.relations), dtype=bool)
    new_relation[graph.train[:, 1]] = False
    found: NDArray[np.bool_] = new_entity[triples[:, ::2]].any(axis=1) | new_relation[triples[:, 1]]
    return found


def mrr_interval(
    ranks: Ranks, rng: np.random.Generator, *, level: float = 0.95, samples: int = 1000
) -> Interval:
    """Bootstrap percentiles of the MRR: triples are drawn with repetition, each with both its sides."""
    _refuse_none(len(ranks))
    values = (1 / ranks.head_rank + 1 / ranks.tail_rank) / 2
    at_once = max(1, SAMPLED_AT_ONCE // len(values))
    means = [
        values[rng.integers(len(values), size=(min(at_once, samples - start), len(values)))].mean(axis=1)
        for start in range(0, samples, at_once)
    ]
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def _metrics(ranks: NDArray[np.float64], candidates: NDArray[np.int64], count: int) -> Metrics:
    _refuse_none(count)
    mean_rank = float(ranks.mean())
    by_chance = float(candidates.mean() - 1) / 2  # what a rank is above 1, on average
    return Metrics(
        mrr=float((1 / ranks).mean()),
        hits_at_1=float((ranks <= 1).mean()),
        hits_at_3=float((ranks <= 3).mean()),
        hits_at_10=float((ranks <= 10).mean()),
        mean_rank=mean_rank,
        adjusted_mean_rank_index=1 - (mean_rank - 1) / by_chance if by_chance else 0.0,
        count=count,
    )


def _refuse_none(count: int) -> None:
    if not count:
        raise UserError("no triples were ranked: expected a split with at least one")
