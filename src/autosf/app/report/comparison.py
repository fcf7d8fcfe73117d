"""The winner beside the best human-designed structure, both trained alike: by relation, by pattern, and in telling
true triples from false ones. On validation, as the search saw it; on the test split only if that is asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.evaluation.classification import accuracy, classify, thresholds_of
from autosf.evaluation.corrupting import made_negatives
from autosf.evaluation.metrics import RelationGroups, by_group, by_pattern, mrr_interval, summarise
from autosf.evaluation.sampled_ranking import rank_among
from autosf.graph.negatives import LabelledTriples
from autosf.graph.patterns import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from autosf.algebra.structure import Rows
    from autosf.embedding.model import Model
    from autosf.evaluation.ranking import Ranks
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.known_answers import KnownAnswers
    from autosf.graph.negatives import Negatives

TIMED = 2_000  # triples at most, of which the time of a ranking is measured
MADE = "made: for each true triple one with another head or tail"


@dataclass(frozen=True, slots=True)
class Measured:
    """A model's metrics on a split; the interval of the MRR is that of its triples, not of its seeds."""

    title: str
    rows: Rows
    mrr: float
    mrr_low: float
    mrr_high: float
    hits_at_1: float
    hits_at_3: float
    hits_at_10: float
    mean_rank: float
    count: int


@dataclass(frozen=True, slots=True)
class GroupResult:
    """The MRR of each model, in the models' order, on the triples of a group of relations."""

    name: str
    count: int
    mrr: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class RelationResult:
    """The MRR of each model on a relation; how much the first is above the second, and its standard error."""

    relation: str
    pattern: str
    count: int
    mrr: tuple[float, ...]
    gain: float | None
    error: float | None  # none with a single triple


@dataclass(frozen=True, slots=True)
class Classified:
    """Share of labelled triples that each model has told rightly, half of them false."""

    accuracy: tuple[float, ...]
    count: int
    negatives: str
    thresholds: str  # where they come from


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it on one split; the first model is the winner, the second, if there is one, human-designed."""

    split: str
    models: tuple[Measured, ...]
    patterns: tuple[GroupResult, ...]
    relations: tuple[RelationResult, ...]  # where the winner gains most first
    classification: Classified | None


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """What models are compared on: a split's triples, what is known while they are ranked, and among how many
    entities ranks are estimated; 0 ranks among all."""

    graph: KnowledgeGraph
    known: KnownAnswers
    split: str
    candidates: int = 0

    @property
    def triples(self) -> NDArray[np.int32]:
        triples: NDArray[np.int32] = getattr(self.graph, self.split)
        return triples

    def ranks(self, model: Model, triples: NDArray[np.int32]) -> Ranks:
        return rank_among(model, triples, self.known, self.candidates)


def compared(models: Mapping[str, Model], ground: Ground, labelled: Negatives | None = None) -> Comparison:
    """The models, each under its title, on the ground. False triples are made where none are given."""
    ranks = [ground.ranks(model, ground.triples) for model in models.values()]
    kinds = by_pattern(ground.graph)
    return Comparison(
        split=ground.split,
        models=tuple(
            measured(title, model.structure.rows, of_one)
            for (title, model), of_one in zip(models.items(), ranks, strict=True)
        ),
        patterns=pattern_results(ranks, kinds),
        relations=relation_results(ranks, ground.graph, kinds),
        classification=classified(list(models.values()), ground, labelled),
    )


def measured(title: str, rows: Rows, ranks: Ranks) -> Measured:
    metrics, interval = summarise(ranks), mrr_interval(ranks, np.random.default_rng(0))
    return Measured(
        title=title,
        rows=rows,
        mrr=metrics.mrr,
        mrr_low=interval.low,
        mrr_high=interval.high,
        hits_at_1=metrics.hits_at_1,
        hits_at_3=metrics.hits_at_3,
        hits_at_10=metrics.hits_at_10,
        mean_rank=metrics.mean_rank,
        count=metrics.count,
    )


def pattern_results(ranks: Sequence[Ranks], kinds: RelationGroups) -> tuple[GroupResult, ...]:
    """Each pattern that has triples."""
    grouped = [by_group(of_one, kinds) for of_one in ranks]
    return tuple(
        GroupResult(name.replace("_", "-"), metrics.count, tuple(of_one[name].mrr for of_one in grouped))
        for name, metrics in grouped[0].items()
    )


def relation_results(
    ranks: Sequence[Ranks], graph: KnowledgeGraph, kinds: RelationGroups
) -> tuple[RelationResult, ...]:
    """Each relation that has triples, by the winner's gain, which is paired: both models rank the same triples."""
    relations = ranks[0].triples[:, 1]
    values = [(1 / of_one.head_rank + 1 / of_one.tail_rank) / 2 for of_one in ranks]
    labels = graph.relations.labels
    found = []
    for relation in np.unique(relations).tolist():
        here = relations == relation
        gains = values[0][here] - values[1][here] if len(values) > 1 else None
        found.append(
            RelationResult(
                relation=labels[relation],
                pattern=PATTERNS[kinds.of_relation[relation]].replace("_", "-"),
                count=int(here.sum()),
                mrr=tuple(float(of_one[here].mean()) for of_one in values),
                gain=None if gains is None else float(gains.mean()),
                error=standard_error(gains),
            )
        )
    return tuple(sorted(found, key=lambda row: (-(row.gain or 0.0), -row.count)))


def standard_error(values: NDArray[np.float64] | None) -> float | None:
    """The standard error of the mean."""
    if values is None or len(values) < 2:
        return None
    return float(values.std(ddof=1) / len(values) ** 0.5)


def classified(models: Sequence[Model], ground: Ground, labelled: Negatives | None) -> Classified | None:
    """Triplet classification (Sec. V-C): on test by thresholds of valid, on valid by those of its other half."""
    if ground.split == "test" and labelled is not None:
        shares = tuple(classify(model, labelled).accuracy for model in models)
        return Classified(shares, len(labelled.test.triples), "given with the graph", "validation")
    made = made_negatives(ground.graph, np.random.default_rng(0), ground.known)
    if ground.split == "test":
        shares = tuple(classify(model, made).accuracy for model in models)
        return Classified(shares, len(made.test.triples), MADE, "validation")
    halves = split_in_two(made.valid, np.random.default_rng(0))
    if halves is None:
        return None
    shares = tuple(crosswise(model, *halves) for model in models)
    return Classified(shares, len(made.valid.triples), MADE, "the other half of validation")


def split_in_two(
    labelled: LabelledTriples, rng: np.random.Generator
) -> tuple[LabelledTriples, LabelledTriples] | None:
    """Halves at random, each with true and false triples; None of too few."""
    order = rng.permutation(len(labelled.triples))
    middle = len(order) // 2
    halves = [
        LabelledTriples(labelled.triples[part], labelled.is_true[part])
        for part in (order[:middle], order[middle:])
    ]
    if any(not half.is_true.any() or half.is_true.all() for half in halves):
        return None
    return halves[0], halves[1]


def crosswise(model: Model, one: LabelledTriples, other: LabelledTriples) -> float:
    """Accuracy on each half by the thresholds of the other."""
    right = sum(
        accuracy(model, judged, thresholds_of(model, seen)).accuracy * len(judged.triples)
        for seen, judged in ((one, other), (other, one))
    )
    return right / (len(one.triples) + len(other.triples))


def ranking_seconds(model: Model, ground: Ground, threads: int) -> float:
    """What one ranking takes with so many threads: the faster of two on a sample, for all triples."""
    sample = ground.triples[:: -(-len(ground.triples) // TIMED)]
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        taken = []
        for _ in range(2):
            began = time.perf_counter()
            ground.ranks(model, sample)
            taken.append(time.perf_counter() - began)
    finally:
        torch.set_num_threads(before)
    return min(taken) * len(ground.triples) / len(sample)
