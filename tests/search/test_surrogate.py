"""The surrogate knows what it was told, doubts what it was not, and survives few, equal and odd labels."""

from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from autosf.algebra.features import invariants
from autosf.algebra.invariance import canonical
from autosf.algebra.space import five_f4
from autosf.search.many_invariants import many_invariants
from autosf.search.moves import with_random_terms
from autosf.search.surrogate import Estimate, fit_surrogate
from strategies import structures, twin_of


@cache
def table(count, seed=0):
    """Distinct classes of 5 to 8 blocks."""
    rng, found = Random(seed), {}
    while len(found) < count:
        grown = with_random_terms(rng.choice(five_f4()), rng.randint(1, 4), rng)
        found[canonical(grown, "extended")] = None
    return tuple(found)


def smooth(structure):
    """A score that lies in a few of the features."""
    values = invariants(structure)
    return 0.3 + 0.02 * values[0] + 0.03 * values[1] - 0.01 * values[10]


@given(st.sampled_from([2, 4, 6]).flatmap(lambda parts: st.lists(structures(parts), min_size=1, max_size=5)))
def test_the_features_of_many_are_those_of_each(some):
    assert np.allclose(many_invariants(some), [invariants(structure) for structure in some], atol=1e-12)


def labels(structures, variance=0.0, score=smooth):
    return {structure: Estimate(score(structure), variance) for structure in structures}


def told(surrogate, structures):
    return surrogate.posterior(list(structures))


def test_labels_without_noise_are_returned():
    known = labels(table(40))
    means, covariance = told(fit_surrogate(known), known)
    values = np.array([label.mean for label in known.values()])
    usual = values > np.quantile(values, 0.1)  # those far below are raised
    assert np.abs(means - values)[usual].max() < 1e-3 * values.std()
    assert np.diag(covariance).max() < 1e-3 * values.var()


def test_labels_that_are_all_noise_leave_the_centre():
    known = labels(table(40), variance=100.0)
    means, _ = told(fit_surrogate(known), [*known, *table(20, seed=1)])
    centre = np.median([label.mean for label in known.values()])
    assert np.abs(means - centre).max() < 1e-3


def test_the_noisier_of_two_labels_moves_the_posterior_less():
    """The same deviation, told once surely and once unsurely."""
    structures = table(30)
    one, rest = structures[0], labels(structures[1:], variance=1e-5)
    far = smooth(one) + 0.2
    sure, unsure = (fit_surrogate({**rest, one: Estimate(far, v)}) for v in (1e-6, 1.0))
    assert told(sure, [one])[0][0] > told(unsure, [one])[0][0] + 0.05


def test_more_is_known_of_a_labelled_structure_than_of_others():
    known = table(40)
    surrogate = fit_surrogate(labels(known, variance=1e-5))
    unknown = [structure for structure in table(60, seed=1) if structure not in known]
    inside, outside = (np.diag(told(surrogate, some)[1]) for some in (known, unknown))
    assert inside.max() < outside.min()


@given(st.lists(structures(blocks=(4, 10)), min_size=1, max_size=12), st.sampled_from([0.0, 1e-4, 1.0]))
@hypothesis_settings(max_examples=40)
def test_covariance_is_symmetric_and_nobodys_doubt_is_negative(asked, noise):
    """Repeats and labelled structures among those asked."""
    surrogate = fit_surrogate(labels(table(20), noise))
    means, covariance = told(surrogate, [*asked, *table(20)[:3]])
    largest = surrogate.kernel.variance
    assert np.isfinite(means).all()
    assert np.abs(covariance - covariance.T).max() <= 1e-9 * largest
    assert np.linalg.eigvalsh(covariance).min() >= -1e-7 * largest


@given(st.data())
@hypothesis_settings(max_examples=30)
def test_any_equivalent_of_an_unlabelled_structure_is_judged_alike(data):
    structure = data.draw(structures(blocks=(4, 10)))
    twin = data.draw(twin_of(structure, "extended"))
    surrogate = fit_surrogate(labels(table(20)))
    means, covariance = told(surrogate, [structure, twin])
    if {structure, twin}.isdisjoint(table(20)):
        assert means[0] == pytest.approx(means[1], abs=1e-12)
        assert covariance[0, 0] == pytest.approx(covariance[1, 1])


def test_one_structure_asked_twice_has_one_value():
    surrogate = fit_surrogate(labels(table(20), variance=1e-4))
    _, covariance = told(surrogate, [table(21, seed=2)[-1]] * 2)
    assert covariance[0, 1] == pytest.approx(covariance[0, 0])


def test_more_labels_order_unseen_structures_better():
    """A smooth score with an effect of each structure's own, as in training."""

    def score(structure):
        values = invariants(structure)
        bent = values[1] - values[10] * values[5] + 2 * values[8]
        return 0.3 + 0.01 * bent + 0.01 * Random(str(structure)).gauss(0, 1)

    known, unseen = table(160), [s for s in table(120, seed=1) if s not in table(160)]
    truth = [score(structure) for structure in unseen]

    def order(count):
        surrogate = fit_surrogate(labels(known[:count], 1e-6, score))
        return spearmanr(told(surrogate, unseen)[0], truth).statistic

    few, some, many = map(order, (5, 30, 160))
    assert few < some < many
    assert many > 0.8


def test_the_same_labels_give_the_same_posterior():
    first, second = (told(fit_surrogate(labels(table(30))), table(20, seed=1)) for _ in range(2))
    assert (first[0] == second[0]).all()
    assert (first[1] == second[1]).all()


@pytest.mark.parametrize("variance", [0.0, 1e-4])
def test_one_label_is_enough(variance):
    [known] = table(1)
    means, covariance = told(fit_surrogate({known: Estimate(0.4, variance)}), [known, *table(5, seed=1)])
    assert means == pytest.approx(0.4)
    assert (np.linalg.eigvalsh(covariance) > -1e-12).all()


def test_equal_labels_are_expected_everywhere():
    surrogate = fit_surrogate(labels(table(20), score=lambda _: 0.4))
    means, covariance = told(surrogate, table(30, seed=1))
    assert means == pytest.approx(0.4)
    assert np.sqrt(np.diag(covariance)).max() < 1e-3


def test_a_failed_training_does_not_blur_the_others():
    """A 0 among values around .45 would be ten spreads away: it counts as bad, not as the scale."""
    structures, unseen = table(40), table(40, seed=1)
    without = fit_surrogate(labels(structures[1:], 1e-5))
    with_failure = fit_surrogate({**labels(structures[1:], 1e-5), structures[0]: Estimate(0.0, 1e-5)})
    truth = [smooth(structure) for structure in unseen]
    orders = [spearmanr(told(s, unseen)[0], truth).statistic for s in (without, with_failure)]
    assert orders[1] > orders[0] - 0.1
    deviations = [np.sqrt(np.diag(told(s, unseen)[1])).mean() for s in (without, with_failure)]
    assert deviations[1] < 2 * deviations[0]
    failed, usual = told(with_failure, structures[:1])[0], told(with_failure, structures[1:])[0]
    assert failed[0] < np.quantile(usual, 0.2)
