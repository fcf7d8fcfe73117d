"""Scores as probabilities of being true: Platt's logistic curve for each relation, drawn to a common one.

    p(true | score s, relation r) = 1 / (1 + exp(-(slope_r * s + offset_r)))

The common curve is fitted to all examples. Each relation's own minimises its log loss plus
`weight / 2` times its squared distance from the common one, on scores of which extreme ones are
drawn in and which are then scaled to mean 0 and deviation 1; so that a relation with few examples stays near
the common curve and one without any is on it. The weight is the largest of WEIGHTS that is not clearly worse
than the best of them in cross-validation. Slopes are positive: more score is never less probable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.errors import UserError
from autosf.evaluation.classification import numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEIGHTS = (1.0, 3.0, 10.0, 30.0, 100.0, np.inf)  # infinite: the common curve for all
FOLDS = 4
LEAST_SLOPE = 0.01  # of the common slope
OWN_MIDDLE = 8  # examples of a relation whose scores are not measured by those of others
REACH = 10.0  # how far from the median scores count as they are, in widths of the middle half
STEPS, HALVINGS = 60, 30  # of Newton's method, and of each step
ROUNDING = 1 + 1e-12  # a loss that is larger by less is not larger


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Slope and offset of each relation's curve, [R] float64 each, and the weight that was chosen."""

    slopes: NDArray[np.float64]
    offsets: NDArray[np.float64]
    weight: float

    def probability(
        self, scores: NDArray[np.floating], relations: NDArray[np.integer]
    ) -> NDArray[np.float64]:
        """How likely triples with these scores are true. [n], in [0, 1]"""
        with np.errstate(over="ignore"):  # what is not a finite score has probability 0 or 1
            return _logistic(self.slopes[relations] * numbers(scores) + self.offsets[relations])


@dataclass(frozen=True, slots=True, eq=False)
class _Examples:
    """Scaled scores, relations and labels, and what each label is fitted to. [n] each"""

    scores: NDArray[np.float64]
    relations: NDArray[np.int64]
    is_true: NDArray[np.bool_]
    aims: NDArray[np.float64]

    def where(self, chosen: NDArray[np.bool_]) -> _Examples:
        return _Examples(self.scores[chosen], self.relations[chosen], self.is_true[chosen], self.aims[chosen])


def calibrate(
    scores: NDArray[np.floating],
    relations: NDArray[np.integer],
    is_true: NDArray[np.bool_],
    relation_count: int,
) -> Calibration:
    """The curves of all relations from labelled examples of some, such as those of valid."""
    is_number = np.isfinite(scores)
    if not is_number.any():
        raise UserError("no example with a finite score: expected labelled triples to calibrate with")
    labels, of_relation = is_true[is_number], relations[is_number].astype(np.int64)
    values = without_extremes(scores[is_number].astype(np.float64), of_relation)
    middle, scale = float(values.mean()), float(values.std()) or 1.0
    examples = _Examples((values - middle) / scale, of_relation, labels, _aims(labels))
    weight = _chosen_weight(examples, relation_count)
    slopes, offsets = _curves(examples, _common_curve(examples), relation_count, weight).T
    return Calibration(slopes / scale, offsets - slopes * middle / scale, weight)


def without_extremes(scores: NDArray[np.float64], relations: NDArray[np.integer]) -> NDArray[np.float64]:
    """The scores, those out of reach of the middle half drawn in to where it ends: one would set the scale of all.

    A relation with some examples has a middle of its own, as its scores may be on a scale of their own.
    """
    middles, reaches = (np.full_like(scores, number) for number in middle_and_reach(scores))
    for relation, count in zip(*np.unique(relations, return_counts=True), strict=True):
        chosen = relations == relation
        middle, reach = middle_and_reach(scores[chosen])
        if count >= OWN_MIDDLE and reach:
            middles[chosen], reaches[chosen] = middle, reach
    return np.where(reaches > 0, np.clip(scores, middles - reaches, middles + reaches), scores)


def middle_and_reach(scores: NDArray[np.float64]) -> tuple[float, float]:
    """The median, and how far from it scores count as they are: as far as they like, told by 0, where half of them
    or more are the same."""
    low, middle, high = np.percentile(scores, [25, 50, 75])
    return float(middle), REACH * float(high - low)


def _aims(is_true: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Platt's aims, a little inside 0 and 1: what Laplace's rule would expect of as many examples more."""
    positives = np.count_nonzero(is_true)
    negatives = len(is_true) - positives
    return np.where(is_true, (positives + 1) / (positives + 2), 1 / (negatives + 2))


def _chosen_weight(examples: _Examples, relation_count: int) -> float:
    """The largest weight whose log loss on held-out examples is within a standard error of the least."""
    fold = _folds(examples)
    losses = np.empty((len(WEIGHTS), len(fold)))
    for held_out in np.unique(fold) if fold.any() else ():
        fitted, left = examples.where(fold != held_out), examples.where(fold == held_out)
        common = _common_curve(fitted)
        for place, weight in enumerate(WEIGHTS):
            slopes, offsets = _curves(fitted, common, relation_count, weight)[left.relations].T
            logits = slopes * left.scores + offsets
            losses[place, fold == held_out] = np.logaddexp(0, np.where(left.is_true, -logits, logits))
    if not fold.any():
        return np.inf
    excess = losses - losses[losses.sum(axis=1).argmin()]
    is_near = excess.mean(axis=1) <= excess.std(axis=1) / np.sqrt(len(fold))
    return WEIGHTS[int(np.flatnonzero(is_near)[-1])]


def _folds(examples: _Examples) -> NDArray[np.int64]:
    """A fold for each example, so that each relation and class is spread evenly over the folds. [n]"""
    order = np.lexsort((examples.is_true, examples.relations))
    fold = np.empty(len(order), dtype=np.int64)
    fold[order] = np.arange(len(order)) % FOLDS
    return fold


def _common_curve(examples: _Examples) -> NDArray[np.float64]:
    """The one curve of all examples, on scaled scores; a whiff of weight keeps it finite. [1, 2]"""
    together = np.zeros(len(examples.scores), dtype=np.int64)
    return _fitted(examples, together, np.array([[1.0, 0.0]]), weight=1e-3, least_slope=LEAST_SLOPE)


def _curves(
    examples: _Examples, common: NDArray[np.float64], relation_count: int, weight: float
) -> NDArray[np.float64]:
    """Slope and offset of each relation, on scaled scores. [R, 2]"""
    everywhere = np.repeat(common, relation_count, axis=0)
    if np.isinf(weight):
        return everywhere
    least = LEAST_SLOPE * float(common[0, 0])
    return _fitted(examples, examples.relations, everywhere, weight=weight, least_slope=least)


def _fitted(
    examples: _Examples,
    groups: NDArray[np.int64],
    centre: NDArray[np.float64],
    *,
    weight: float,
    least_slope: float,
) -> NDArray[np.float64]:
    """Each group's curve with the least log loss plus weight / 2 * |curve - centre|^2. [groups, 2]

    The loss is convex: where the best slope is below the least one, the best allowed is the least.
    """
    curves = _newton(examples, groups, centre, centre, weight, np.ones(len(centre)))
    too_flat = curves[:, 0] < least_slope
    if not too_flat.any():
        return curves
    curves[too_flat] = np.column_stack([np.full(too_flat.sum(), least_slope), centre[too_flat, 1]])
    return _newton(examples, groups, centre, curves, weight, np.where(too_flat, 0.0, 1.0))


def _newton(
    examples: _Examples,
    groups: NDArray[np.int64],
    centre: NDArray[np.float64],
    start: NDArray[np.float64],
    weight: float,
    free: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Newton's method for all groups at once, steps halved until each helps; slopes move where `free` is 1."""
    curves = start.copy()
    for _ in range(STEPS):
        step = _step(examples, groups, centre, curves, weight, free)
        if np.abs(step).max(initial=0.0) < 1e-6:  # then the next would be below 1e-11
            return curves - step
        before = _losses(examples, groups, centre, curves, weight)
        length = np.ones(len(curves))
        for _ in range(HALVINGS):
            is_worse = (
                _losses(examples, groups, centre, curves - length[:, None] * step, weight) > before * ROUNDING
            )
            if not is_worse.any():
                break
            length[is_worse] /= 2
        length[is_worse] = 0
        curves -= length[:, None] * step
        if not length.any():
            break
    return curves


def _step(
    examples: _Examples,
    groups: NDArray[np.int64],
    centre: NDArray[np.float64],
    curves: NDArray[np.float64],
    weight: float,
    free: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Newton's step of each group: the 2 x 2 system of slope and offset. [groups, 2]"""
    x = examples.scores
    found = _logistic(curves[groups, 0] * x + curves[groups, 1])
    residual, curvature = found - examples.aims, found * (1 - found)

    def total(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(groups, values, minlength=len(curves)).astype(np.float64)

    pull = weight * (curves - centre)
    by_slope = (total(residual * x) + pull[:, 0]) * free
    by_offset = total(residual) + pull[:, 1]
    slope_slope = total(curvature * x * x) + weight
    slope_offset = total(curvature * x) * free
    offset_offset = total(curvature) + weight
    determinant = slope_slope * offset_offset - slope_offset**2
    return np.column_stack(
        [
            (offset_offset * by_slope - slope_offset * by_offset) / determinant,
            (slope_slope * by_offset - slope_offset * by_slope) / determinant,
        ]
    )


def _losses(
    examples: _Examples,
    groups: NDArray[np.int64],
    centre: NDArray[np.float64],
    curves: NDArray[np.float64],
    weight: float,
) -> NDArray[np.float64]:
    """What each group's curve is chosen to make least. [groups]"""
    logits = curves[groups, 0] * examples.scores + curves[groups, 1]
    loss = np.logaddexp(0, logits) - examples.aims * logits
    distance: NDArray[np.float64] = ((curves - centre) ** 2).sum(axis=1)
    return np.bincount(groups, loss, minlength=len(curves)) + weight / 2 * distance


def _logistic(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1 + np.tanh(logits / 2))
