"""All that `autosf data stats` tells: sizes, queries, degrees, patterns, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from autosf.counting import are, counted, have
from autosf.graph.completing import warnings_of_reading
from autosf.graph.keys import distinct, in_both, sorted_distinct, triple_keys
from autosf.graph.leakage import Leakage, leakage
from autosf.graph.overlaps import relation_overlaps
from autosf.graph.patterns import (
    CATEGORIES,
    NOBODY,
    PATTERNS,
    Patterns,
    RelationCounts,
    relation_categories,
    relation_counts,
    relation_patterns,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph

QUANTILES = (0, 25, 50, 75, 90, 99, 100)


@dataclass(frozen=True, slots=True)
class Degrees:
    """Mean and quantiles (by percent) of how many train triples an entity takes part in."""

    mean: float
    quantiles: dict[int, int]


@dataclass(frozen=True, slots=True)
class Unseen:
    """Entities and relations that train never shows, and the valid and test triples that have one."""

    entities: int
    relations: int
    valid_triples: int
    test_triples: int


@dataclass(frozen=True, slots=True)
class RelationDetail:
    """One relation in train: its size, pattern (with the inverse partner's name, if any) and category."""

    relation: str
    triples: int
    pattern: str
    partner: str | None
    category: str
    tails_per_head: float
    heads_per_tail: float


@dataclass(frozen=True, slots=True)
class Statistics:
    """A graph in numbers; counts of patterns, categories and queries are of train."""

    name: str
    entities: int
    relations: int
    sizes: dict[str, int]
    tail_queries: int
    head_queries: int
    patterns: dict[str, int]
    categories: dict[str, int]
    degrees: dict[str, Degrees]
    duplicates: dict[str, int]
    shared: dict[str, int]
    unseen: Unseen
    leaked: Leakage
    details: tuple[RelationDetail, ...]


def statistics(graph: KnowledgeGraph) -> Statistics:
    """All numbers about a graph; one sort or join each, nothing quadratic in entities."""
    size = {"entities": len(graph.entities), "relations": len(graph.relations)}
    duplicates, shared = _repetitions(graph)
    train = distinct(graph.train, **size) if duplicates["train"] else graph.train
    counts = relation_counts(train, **size)
    patterns = relation_patterns(counts, relation_overlaps(train, **size))
    details = _details(graph, counts, patterns)
    return Statistics(
        name=graph.name,
        **size,
        sizes={split: len(triples) for split, triples in graph.splits()},
        tail_queries=int(counts.heads.sum()),
        head_queries=int(counts.tails.sum()),
        patterns=patterns.totals(),
        categories={name: sum(row.category == name for row in details) for name in CATEGORIES},
        degrees=_degrees(train, size["entities"]),
        duplicates=duplicates,
        shared=shared,
        unseen=_unseen(graph),
        leaked=leakage(graph),
        details=details,
    )


def findings(found: Statistics) -> list[str]:
    """What a user should know before training, each in one line, the gravest first."""
    test = max(found.sizes["test"], 1)
    unseen = "an entity or relation that train never shows"
    lines = [
        (found.shared["train_test"], "test triple", are, "also in train"),
        (found.shared["train_valid"], "valid triple", are, "also in train"),
        (found.shared["valid_test"], "test triple", are, "also in valid"),
        (sum(found.duplicates.values()), "triple", are, "repeated within a split"),
        (found.unseen.test_triples, "test triple", have, unseen),
        (found.unseen.valid_triples, "valid triple", have, unseen),
    ]
    shares = [
        (found.leaked.inverse, "can be answered from an inverse relation in train"),
        (found.leaked.near_duplicate, "can be answered from a near-duplicate relation in train"),
        (found.leaked.symmetric, "are the mirror image of a train triple of a symmetric relation"),
    ]
    return [f"{100 * count / test:.1f} % of test triples {what}" for count, what in shares if count] + [
        f"{counted(count, what)} {verb(count)} {rest}" for count, what, verb, rest in lines if count
    ]


def all_warnings(graph: KnowledgeGraph, found: Statistics) -> list[str]:
    """What reading the graph told and what its statistics find; what both tell, once."""
    return [*warnings_of_reading(graph), *findings(found)]


def _repetitions(graph: KnowledgeGraph) -> tuple[dict[str, int], dict[str, int]]:
    """Repeated triples within each split, and distinct triples shared by each two splits."""
    names = [split for split, _ in graph.splits()]
    keys = triple_keys(
        [triples for _, triples in graph.splits()],
        entities=len(graph.entities),
        relations=len(graph.relations),
    )
    once = {name: sorted_distinct(split) for name, split in zip(names, keys, strict=True)}
    duplicates = {name: len(split) - len(once[name]) for name, split in zip(names, keys, strict=True)}
    shared = {f"{a}_{b}": len(in_both(once[a], once[b])) for a, b in combinations(names, 2)}
    return duplicates, shared


def _degrees(train: NDArray[np.int32], entities: int) -> dict[str, Degrees]:
    """Degrees over all entities of the graph: as head, as tail, and both together."""
    outgoing = np.bincount(train[:, 0], minlength=entities)
    incoming = np.bincount(train[:, 2], minlength=entities)
    return {
        "head": _summary(outgoing),
        "tail": _summary(incoming),
        "both": _summary(outgoing + incoming),
    }


def _summary(values: NDArray[np.int64]) -> Degrees:
    if not len(values):
        return Degrees(0.0, dict.fromkeys(QUANTILES, 0))
    quantiles = np.percentile(values, QUANTILES, method="nearest")
    return Degrees(float(values.mean()), {q: int(v) for q, v in zip(QUANTILES, quantiles, strict=True)})


def _unseen(graph: KnowledgeGraph) -> Unseen:
    entities = np.ones(len(graph.entities), dtype=bool)
    entities[graph.train[:, 0]] = False
    entities[graph.train[:, 2]] = False
    relations = np.ones(len(graph.relations), dtype=bool)
    relations[graph.train[:, 1]] = False

    def touched(triples: NDArray[np.int32]) -> int:
        new = entities[triples[:, 0]] | relations[triples[:, 1]] | entities[triples[:, 2]]
        return int(np.count_nonzero(new))

    return Unseen(
        entities=int(entities.sum()),
        relations=int(relations.sum()),
        valid_triples=touched(graph.valid),
        test_triples=touched(graph.test),
    )


def _details(graph: KnowledgeGraph, counts: RelationCounts, patterns: Patterns) -> tuple[RelationDetail, ...]:
    """One row for each relation, the largest first."""
    labels = graph.relations.labels.to_list()
    categories = relation_categories(counts)
    order = np.argsort(-counts.triples, kind="stable")
    return tuple(
        RelationDetail(
            relation=labels[place],
            triples=int(counts.triples[place]),
            pattern=PATTERNS[patterns.pattern[place]],
            partner=None if patterns.partner[place] == NOBODY else labels[patterns.partner[place]],
            category=categories[place],
            tails_per_head=float(counts.triples[place] / max(counts.heads[place], 1)),
            heads_per_tail=float(counts.triples[place] / max(counts.tails[place], 1)),
        )
        for place in order
    )
