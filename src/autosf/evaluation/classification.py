"""Triplet classification (Sec. V-C): is a triple true? By a threshold for each relation, set on valid.

A triple is held for true where its score is at least its relation's threshold. A relation that valid does
not show with both classes has no threshold of its own: it uses the one that is best for all of valid
together, and the result says how many triples did.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.embedding.model import Model
    from autosf.graph.negatives import LabelledTriples, Negatives

SCORED_AT_ONCE = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Thresholds:
    """The least score of a triple held for true: of each relation [R] float64, and of all together.

    `is_own` [R] tells which relations have one of their own; the others hold `overall`.
    """

    of_relation: NDArray[np.float64]
    is_own: NDArray[np.bool_]
    overall: float

    def holds(self, scores: NDArray[np.floating], relations: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Which triples are held for true. [n]"""
        found: NDArray[np.bool_] = numbers(scores) >= self.of_relation[relations]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Classification:
    """Accuracy on labelled triples, in total and of each relation [R]; NaN where it has none.

    `counts` [R] is how many triples each relation has; `fallback_count` how many triples were judged by the
    overall threshold, of `fallback_relations` relations.
    """

    accuracy: float
    of_relation: NDArray[np.float64]
    counts: NDArray[np.int64]
    thresholds: Thresholds
    fallback_count: int
    fallback_relations: int


def classify(model: Model, labelled: Negatives) -> Classification:
    """Thresholds from the labelled triples of valid, accuracy on those of test."""
    thresholds = thresholds_of(model, labelled.valid)
    return accuracy(model, labelled.test, thresholds)


def thresholds_of(model: Model, labelled: LabelledTriples) -> Thresholds:
    """The thresholds that classify most of these triples rightly."""
    relations = labelled.triples[:, 1]
    _refuse_none(len(relations))
    return best_thresholds(
        scores_of(model, labelled.triples), relations, labelled.is_true, model.relation_count
    )


def accuracy(model: Model, labelled: LabelledTriples, thresholds: Thresholds) -> Classification:
    """How many of the labelled triples the thresholds classify rightly."""
    relations = labelled.triples[:, 1]
    _refuse_none(len(relations))
    is_right = thresholds.holds(scores_of(model, labelled.triples), relations) == labelled.is_true
    counts = np.bincount(relations, minlength=len(thresholds.of_relation))
    right = np.bincount(relations, is_right, minlength=len(counts))
    share = np.full(len(counts), np.nan)
    np.divide(right, counts, out=share, where=counts > 0)
    fallback = counts * ~thresholds.is_own
    return Classification(
        accuracy=float(is_right.mean()),
        of_relation=share,
        counts=counts,
        thresholds=thresholds,
        fallback_count=int(fallback.sum()),
        fallback_relations=int(np.count_nonzero(fallback)),
    )


@torch.no_grad()
def scores_of(model: Model, triples: NDArray[np.int32]) -> NDArray[np.float64]:
    """The model's scores of triples. [n]"""
    columns = torch.from_numpy(triples.astype(np.int64)).to(model.entities.device).T
    parts = [model.score(*some).cpu().double() for some in torch.split(columns, SCORED_AT_ONCE, dim=1)]
    return torch.cat(parts).numpy()


def best_thresholds(
    scores: NDArray[np.floating],
    relations: NDArray[np.integer],
    is_true: NDArray[np.bool_],
    relation_count: int,
) -> Thresholds:
    """For each relation the threshold that classifies most of its examples rightly, exactly.

    Of several equally good cuts between scores the widest gap is taken, at its middle: that is where a new
    triple is least likely to fall on the wrong side; of equally wide ones the highest. A cut below or above
    all scores is only taken where it is strictly better.
    """
    _refuse_none(len(scores))
    values = numbers(scores)
    together = np.zeros(len(values), dtype=np.int64)
    overall = float(_best_cuts(values, together, is_true, 1)[0])
    positives = np.bincount(relations, is_true, minlength=relation_count)
    negatives = np.bincount(relations, ~is_true, minlength=relation_count)
    is_own = (positives > 0) & (negatives > 0)
    own = _best_cuts(values, relations.astype(np.int64), is_true, relation_count)
    return Thresholds(np.where(is_own, own, overall), is_own, overall)


def best_threshold_plainly(scores: NDArray[np.floating], is_true: NDArray[np.bool_]) -> tuple[float, int]:
    """The same for one relation, trying every cut: the threshold and how many it classifies rightly."""
    distinct = np.unique(scores)
    cuts = [(distinct[0], -1.0), (np.nextafter(distinct[-1], np.inf), -2.0)]
    cuts += [((low + high) / 2, high - low) for low, high in pairwise(distinct)]
    right = [int(np.count_nonzero((scores >= cut) == is_true)) for cut, _ in cuts]
    best = max(range(len(cuts)), key=lambda place: (right[place], cuts[place][1], cuts[place][0]))
    return float(cuts[best][0]), right[best]


def numbers(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scores as finite float64: what is not a number is the least of all."""
    most = np.finfo(np.float64).max / 4
    return np.nan_to_num(scores.astype(np.float64), nan=-most, posinf=most, neginf=-most)


def _best_cuts(
    scores: NDArray[np.float64], groups: NDArray[np.int64], is_true: NDArray[np.bool_], count: int
) -> NDArray[np.float64]:
    """The best cut of each group, by one sort; NaN for a group without scores. [count]

    A cut lies before a place in the sorted group, or after its last: it is right about the false ones
    below and the true ones above, a running sum.
    """
    order = np.lexsort((scores, groups))
    scores, groups, is_true = scores[order], groups[order], is_true[order]
    is_first = np.diff(groups, prepend=-1) != 0
    is_last = np.append(is_first[1:], True)
    below = np.append(-np.inf, scores[:-1])
    gain = np.where(is_true, -1, 1)  # what moving the cut above this score changes
    right_above = np.cumsum(gain)
    right_before = right_above - gain
    inner = ~is_first & (scores > below)
    before = np.flatnonzero(is_first | inner)
    after = np.flatnonzero(is_last)
    start = right_before[np.flatnonzero(is_first)][np.cumsum(is_first) - 1]  # where each group's sum begins
    middle = np.where(inner, below / 2 + scores / 2, scores)
    middle = np.where(inner & (middle <= below), scores, middle)  # no number lies between
    gap = np.where(inner, scores - below, -1.0)
    cuts = np.concatenate([middle[before], np.nextafter(scores[after], np.inf)])
    right = np.concatenate([(right_before - start)[before], (right_above - start)[after]])
    gaps = np.concatenate([gap[before], np.full(len(after), -2.0)])
    owner = np.concatenate([groups[before], groups[after]])
    best_last = np.lexsort((gaps, right, owner))
    best = np.full(count, np.nan)
    best[owner[best_last]] = cuts[best_last]  # the last of equal places is written last
    return best


def _refuse_none(count: int) -> None:
    if not count:
        raise UserError("no labelled triples: expected true and false ones, in valid and in test")
