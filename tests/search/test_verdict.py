"""The verdict in known numbers: means and spreads over fresh seeds alone, and probabilities that come true."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from scipy.stats import t as students_t

from autosf.algebra.invariance import canonical, permuted, renamed
from autosf.algebra.zoo import HUMAN_DESIGNED_FOUR, named
from autosf.search.record import Record, Trial
from autosf.search.settings import SearchSettings
from autosf.search.verdict import fresh_seeds, is_human_designed, verdict

SETTINGS = SearchSettings(epochs=20, seed=2, fresh_seeds=3)
FOUND, OTHER = named("autosf-wn18").structure, named("autosf-fb15k").structure
HUMAN = named("complex").structure


def finals(values, settings=SETTINGS):
    """Records of the finals: values by structure, in the order of the fresh seeds."""
    return [
        Record(Trial(structure, settings.epochs, seed), value, settings.epochs)
        for structure, of_one in values.items()
        for seed, value in zip(fresh_seeds(settings), of_one, strict=False)
    ]


def test_known_numbers():
    """Means .50, .48, .44, each with a variance of .0001 over three seeds: 6 degrees of freedom."""
    found = verdict(
        finals({HUMAN: (0.43, 0.44, 0.45), FOUND: (0.49, 0.50, 0.51), OTHER: (0.47, 0.48, 0.49)}), SETTINGS
    )
    deviation = (1e-4 * 2 / 3) ** 0.5
    assert [f.structure for f in (found.winner, found.runner_up, found.human)] == [FOUND, OTHER, HUMAN]
    assert found.winner.valid_mrr == pytest.approx(0.5)
    assert found.winner.spread == pytest.approx(0.01)
    assert found.winner.values == (0.49, 0.50, 0.51)
    assert 0.7 < found.beats_runner_up < students_t.cdf(0.02 / deviation, 6), "pulled towards each other"
    assert found.beats_human > 0.99


def test_seeds_that_differ_by_the_last_bit_tell_who_is_better():
    seeds = replace(SETTINGS, fresh_seeds=10)
    bits = [0.3, np.nextafter(0.3, 1)] * 5
    values = {s: tuple(float(b) + 0.1 * n for b in bits) for n, s in enumerate((HUMAN, OTHER, FOUND))}
    found = verdict(finals(values, seeds), seeds)
    assert found.beats_runner_up == pytest.approx(1.0)


def test_finalists_with_different_numbers_of_seeds_are_compared():
    found = verdict(finals({FOUND: (0.49, 0.50, 0.51), OTHER: (0.48, 0.48), HUMAN: (0.4,)}), SETTINGS)
    assert 0.7 < found.beats_runner_up < found.beats_human < 1
    assert found.human.spread is None


def test_one_lucky_seed_does_not_win_finals_of_several():
    """It may be left over from finals that were cut, before a larger budget brought others."""
    steady = (0.70, 0.69, 0.71)
    found = verdict(finals({OTHER: (0.75,), FOUND: steady, HUMAN: (0.68, 0.69, 0.67)}), SETTINGS)
    assert [one.structure for one in found.finalists] == [FOUND, HUMAN, OTHER]
    assert found.winner.values == steady
    cut = verdict(finals({OTHER: (0.70, 0.69), FOUND: (0.71,), HUMAN: (0.68,)}), SETTINGS)
    assert cut.winner.structure == FOUND, "where others have one seed, another's second does not make it win"


def test_finals_in_which_nobody_met_decide_nothing():
    chosen = [
        Record(Trial(structure, SETTINGS.epochs, 0), 0.5, SETTINGS.epochs) for structure in (FOUND, HUMAN)
    ]
    assert verdict([*chosen, *finals({OTHER: (0.9,)})], SETTINGS) is None
    assert verdict([chosen[0], *finals({FOUND: (0.5, 0.6)})], SETTINGS).winner.structure == FOUND


@pytest.mark.parametrize("spread", [0.3, 0.6, 1.0])
def test_what_is_told_comes_true(spread):
    """The winner is the best of four means, which flatters it; what is said of it must allow for that.

    Two means by themselves, by Student's t, would be told to differ with .96 where it is true of .78.
    """
    rng, told, true = np.random.default_rng(0), [], []
    for _ in range(1_000):
        values = rng.normal(0, spread, 4)
        seen = values[:, None] + rng.normal(0, 1, (4, 3))
        given = dict(zip((FOUND, OTHER, named("quate").structure, HUMAN), seen.tolist(), strict=True))
        found = verdict(finals(given), SETTINGS)
        if found.beats_human is not None:
            told.append(found.beats_human)
            true.append(values[list(given).index(found.winner.structure)] > values[3])
    sure = np.array(told) > 0.9
    assert np.mean(true) > np.mean(told) - 0.06
    assert np.array(true)[sure].mean() > np.array(told)[sure].mean() - 0.12


@pytest.mark.parametrize(("spread", "often"), [(0.2, 0.06), (0.5, 0.11)])
@pytest.mark.parametrize("behind", [6.0, 20.0])
def test_what_is_told_of_the_leaders_does_not_hang_on_who_is_far_behind(spread, often, behind):
    """Leaders that differ by little are told apart hardly more surely beside one that differs by much.

    If he counted as one of them, one in ten would be told to be better with more than .9, or one in six.
    """
    rng, told, true = np.random.default_rng(0), [], []
    for _ in range(1_000):
        values = rng.normal(0, spread, 4) - [0, 0, 0, behind]
        seen = values[:, None] + rng.normal(0, 1, (4, 3))
        given = dict(zip((FOUND, OTHER, named("quate").structure, HUMAN), seen.tolist(), strict=True))
        found = verdict(finals(given), SETTINGS)
        first, second = (list(given).index(one.structure) for one in (found.winner, found.runner_up))
        told.append(found.beats_runner_up)
        true.append(values[first] > values[second])
    assert np.mean(true) > np.mean(told) - 0.1
    assert np.mean(np.array(told) > 0.9) < often


@pytest.mark.parametrize("values", [(0.4, 0.5, 0.6), (0.5, 0.5, 0.5)])
def test_of_equals_each_is_better_with_probability_one_half(values):
    found = verdict(finals({FOUND: values, HUMAN: values}), SETTINGS)
    assert found.beats_runner_up == pytest.approx(0.5)
    assert found.beats_human in (None, pytest.approx(0.5))


@pytest.mark.parametrize("spread", [0.0, 1e-4])
def test_far_apart_means_are_almost_certain(spread):
    values = {FOUND: (0.6, 0.6 - spread, 0.6 + spread), HUMAN: (0.4, 0.4 - spread, 0.4 + spread)}
    assert verdict(finals(values), SETTINGS).beats_human > 0.9999


def test_without_finals_there_is_no_verdict():
    assert verdict([], SETTINGS) is None
    assert verdict([Record(Trial(FOUND, 20, SETTINGS.seed * 10_000), 0.5, 20)], SETTINGS) is None


def test_one_seed_each_tells_no_probability():
    found = verdict(finals({FOUND: (0.6,), HUMAN: (0.4,)}), SETTINGS)
    assert (found.winner.structure, found.beats_runner_up, found.beats_human) == (FOUND, None, None)
    assert found.winner.spread is None


def test_a_single_finalist_wins_over_nobody():
    found = verdict(finals({FOUND: (0.5, 0.6, 0.7)}), SETTINGS)
    assert (found.runner_up, found.beats_runner_up, found.human, found.beats_human) == (None,) * 4


def test_a_human_designed_winner_is_compared_with_the_runner_up_only():
    found = verdict(finals({HUMAN: (0.5, 0.6, 0.7), FOUND: (0.4, 0.5, 0.6)}), SETTINGS)
    assert found.human == found.winner
    assert found.beats_human is None
    assert found.beats_runner_up > 0.5


def test_seeds_that_chose_the_finalists_other_fidelities_and_other_searches_do_not_count():
    fresh = finals({FOUND: (0.49, 0.50, 0.51), HUMAN: (0.43, 0.44, 0.45)})
    lucky = [
        Record(Trial(HUMAN, 20, 2 * 10_000), 0.9, 20),
        Record(Trial(HUMAN, 10, fresh_seeds(SETTINGS)[0]), 0.9, 10),
        Record(Trial(OTHER, 20, fresh_seeds(SearchSettings(seed=1))[0]), 0.9, 20),
    ]
    assert verdict([*lucky, *fresh], SETTINGS) == verdict(fresh, SETTINGS)


def test_a_training_that_failed_in_the_finals_says_nothing_about_the_others():
    """A killed worker is no MRR of 0: as one, it would drown every difference in its spread."""
    values = {FOUND: (0.49, 0.50), HUMAN: (0.43, 0.44, 0.45)}
    killed = Record(Trial(FOUND, 20, fresh_seeds(SETTINGS)[2]), 0.0, 0, failure="killed")
    assert verdict([*finals(values), killed], SETTINGS) == verdict(finals(values), SETTINGS)


@pytest.mark.parametrize("name", [*HUMAN_DESIGNED_FOUR, "quate"])
def test_human_designed_structures_are_known_in_every_disguise(name):
    rng = Random(0)
    structure = named(name).structure
    for _ in range(20):
        names = [rng.choice((1, -1)) * part for part in rng.sample(range(1, 5), 4)]
        assert is_human_designed(renamed(permuted(structure, rng.sample(range(1, 5), 4)), names))
    assert is_human_designed(canonical(structure, "extended"))


@pytest.mark.parametrize("name", ["autosf-wn18", "autosf-fb15k237", "autosf-yago3-10"])
def test_what_the_paper_found_is_not_human_designed(name):
    assert not is_human_designed(named(name).structure)


def test_no_two_searches_share_a_fresh_seed():
    seeds = [seed for number in range(50) for seed in fresh_seeds(SearchSettings(seed=number, fresh_seeds=5))]
    assert len(set(seeds)) == 250
