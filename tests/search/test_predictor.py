"""The predictor learns from few records, without a word, and the same way every time."""

from random import Random

import numpy as np
import pytest

from autosf.algebra.features import ENCODERS, srf
from autosf.algebra.invariance import canonical
from autosf.algebra.space import five_f4
from autosf.search.moves import with_random_terms
from autosf.search.predictor import HIDDEN, fit_predictor
from fake_training import record_of


def f6(count: int, seed: int = 0) -> list:
    rng = Random(seed)
    return [canonical(with_random_terms(rng.choice(five_f4()), 2, rng)) for _ in range(count)]


def by_symmetry(structure) -> float:
    return 0.3 + 0.01 * sum(srf(structure))


def test_scores_that_lie_in_the_srfs_are_ranked_rightly():
    learnt = fit_predictor([record_of(s, by_symmetry(s)) for s in f6(64)], srf, 2, seed=0)
    unseen = f6(200, seed=1)
    assert np.corrcoef(learnt(unseen), list(map(by_symmetry, unseen)))[0, 1] > 0.9


def test_predictions_are_in_units_of_mrr():
    structures = f6(64)
    learnt = fit_predictor([record_of(s, by_symmetry(s)) for s in structures], srf, 2, seed=0)
    assert np.abs(learnt(structures) - list(map(by_symmetry, structures))).mean() < 0.01


@pytest.mark.parametrize("name", HIDDEN)
def test_the_same_seed_gives_the_same_predictor_and_another_seed_another(name):
    records = [record_of(s, by_symmetry(s)) for s in f6(16)]
    first, again, other = (
        fit_predictor(records, ENCODERS[name], HIDDEN[name], seed)(f6(50)) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_equal_features_get_equal_predictions():
    candidates = f6(300)
    learnt = fit_predictor([record_of(s, by_symmetry(s)) for s in f6(16)], srf, 2, seed=0)
    predictions = {}
    for structure, value in zip(candidates, learnt(candidates), strict=True):
        predictions.setdefault(srf(structure), set()).add(float(value))
    assert len(predictions) > 5
    assert all(len(values) == 1 for values in predictions.values())


@pytest.mark.parametrize("scores", [[0.25] * 5, [0.0] * 5, [0.25]], ids=["equal", "all failed", "one record"])
def test_records_that_teach_nothing_are_predicted_alike(scores):
    records = [record_of(s, score) for s, score in zip(five_f4(), scores, strict=False)]
    assert fit_predictor(records, srf, 2, seed=0)(f6(20)) == pytest.approx(scores[0], abs=1e-3)
