"""Probabilities rise with the score, are honest, and no worse than one curve for all relations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.errors import UserError
from autosf.evaluation.calibration import Calibration, calibrate


def log_loss(probability, is_true):
    """Mean of -log of the probability that was given to what is the case."""
    given = np.where(is_true, probability, 1 - probability)
    return -np.log(np.maximum(given, np.finfo(np.float64).tiny)).mean()


def drawn(rng, slopes, offsets, sizes):
    """Scores with labels drawn from each relation's own curve."""
    relations = np.repeat(np.arange(len(sizes)), sizes)
    scores = rng.normal(3, 5, size=len(relations))
    likely = Calibration(np.asarray(slopes, float), np.asarray(offsets, float), 0).probability(
        scores, relations
    )
    return scores, relations, rng.random(len(relations)) < likely


def common_only(scores, relations, is_true):
    """One curve for all: what `calibrate` finds when there is but one relation."""
    return calibrate(scores, np.zeros_like(relations), is_true, 1)


def test_curves_are_found_again_from_many_examples():
    slopes, offsets = [0.4, 1.0, 0.7], [-1.0, 0.5, -3.0]
    found = calibrate(*drawn(np.random.default_rng(0), slopes, offsets, [20000] * 3), 3)
    np.testing.assert_allclose(found.slopes, slopes, rtol=0.1)
    np.testing.assert_allclose(found.offsets, offsets, atol=0.3)


@pytest.mark.parametrize("seed", range(5))
def test_own_curves_beat_the_common_one_where_relations_differ(seed):
    rng = np.random.default_rng(seed)
    slopes, offsets, sizes = rng.uniform(0.2, 2, 20), rng.normal(0, 3, 20), rng.integers(5, 200, 20)
    fitted = drawn(rng, slopes, offsets, sizes)
    scores, relations, is_true = drawn(rng, slopes, offsets, sizes)
    own = log_loss(calibrate(*fitted, 20).probability(scores, relations), is_true)
    common = log_loss(common_only(*fitted).probability(scores, relations * 0), is_true)
    assert own < common


@pytest.mark.parametrize("seed", range(5))
def test_own_curves_are_not_worse_where_all_relations_are_alike(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, 40)
    fitted = drawn(rng, [0.5] * 40, [-1] * 40, sizes)
    scores, relations, is_true = drawn(rng, [0.5] * 40, [-1] * 40, sizes * 20)
    own = log_loss(calibrate(*fitted, 40).probability(scores, relations), is_true)
    common = log_loss(common_only(*fitted).probability(scores, relations * 0), is_true)
    assert own < common * 1.005


@pytest.mark.parametrize("extreme", [1e30, -1e30])
@pytest.mark.parametrize("label", [True, False])
def test_one_extreme_score_leaves_the_curves_of_all_others_nearly_as_they_were(extreme, label):
    scores, relations, is_true = drawn(np.random.default_rng(0), [0.4, 1.0], [-1, 0.5], [500, 500])
    found = calibrate(np.append(scores, extreme), np.append(relations, 0), np.append(is_true, label), 2)
    before = calibrate(scores, relations, is_true, 2).probability(scores, relations)
    assert np.abs(found.probability(scores, relations) - before).max() < 0.1
    assert found.probability(np.array([extreme]), np.array([1]))[0] == (extreme > 0)


def test_a_relation_of_much_larger_scores_keeps_a_curve_of_its_own():
    rng = np.random.default_rng(0)
    small, large = rng.choice([True, False], 400), rng.choice([True, False], 80)
    scores = np.concatenate(
        [np.where(small, 0.3, -0.3) + rng.normal(0, 0.3, 400), np.where(large, 50, 30) + rng.normal(0, 5, 80)]
    )
    relations, is_true = np.repeat([0, 1], [400, 80]), np.concatenate([small, large])
    said = calibrate(scores, relations, is_true, 2).probability(scores, relations)
    assert ((said > 0.5) == is_true)[relations == 1].mean() > 0.9


def test_scores_that_are_mostly_the_same_are_calibrated_by_their_deviation():
    scores, is_true = np.array([1.0] * 50 + [5.0] * 10), np.arange(60) >= 45
    found = calibrate(scores, np.zeros(60, int), is_true, 1)
    low, high = found.probability(np.array([1.0, 5.0]), np.array([0, 0]))
    assert low < 0.3
    assert high > 0.7


def test_a_relation_without_examples_is_on_the_common_curve():
    rng = np.random.default_rng(0)
    scores, relations, is_true = drawn(rng, [0.5, 0.6], [0, 0], [300, 300])
    found, common = calibrate(scores, relations, is_true, 3), common_only(scores, relations, is_true)
    assert found.slopes[2] == pytest.approx(common.slopes[0])
    assert found.offsets[2] == pytest.approx(common.offsets[0])


@given(
    st.lists(
        st.tuples(st.floats(width=32), st.integers(0, 2), st.booleans()),
        min_size=1,
        max_size=60,
    ).filter(lambda rows: any(np.isfinite(row[0]) for row in rows))
)
def test_probabilities_never_fall_as_the_score_rises(examples):
    scores, relations, is_true = (np.array(column) for column in zip(*examples, strict=True))
    found = calibrate(scores, relations, is_true, 3)
    assert (found.slopes > 0).all()
    ladder = np.sort(np.concatenate([scores[~np.isnan(scores)], [-np.inf, 0, np.inf]]))
    for relation in range(3):
        likely = found.probability(ladder, np.full(len(ladder), relation))
        assert ((likely >= 0) & (likely <= 1)).all()
        assert (np.diff(likely) >= 0).all()


def test_separable_and_contrary_relations_keep_finite_rising_curves():
    scores = np.tile(np.arange(10.0), 2)
    relations = np.repeat([0, 1], 10)
    is_true = np.concatenate([np.arange(10) > 4, np.arange(10) < 5])  # the second is upside down
    found = calibrate(scores, relations, is_true, 2)
    assert np.isfinite(found.slopes).all()
    assert found.slopes[0] >= found.slopes[1] > 0


def test_no_examples_are_refused_in_one_line():
    with pytest.raises(UserError, match="no example with a finite score"):
        calibrate(np.array([np.nan]), np.array([0]), np.array([True]), 1)
