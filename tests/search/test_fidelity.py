"""What short trainings are worth: planted curves are recovered, and worthless ones are found out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.space import classes
from autosf.search.fidelity import (
    ENOUGH,
    estimates,
    extrapolation,
    highest_rungs,
    mean_maximum,
    rungs,
    screening_rung,
    seed_variance,
    value_at,
)
from autosf.search.record import Record, Trial

FULL, GRAIN = 40, 5
STRUCTURES = classes(5, "extended")


def record(structure, whole, short=None, *, seed=0):
    """A full training that was at `short` until just before its end."""
    short = whole if short is None else short
    curve = (*((epoch, short) for epoch in range(GRAIN, FULL, GRAIN)), (FULL, whole))
    return Record(Trial(structure, FULL, seed), whole, FULL, curve)


def screened(structure, value, epochs, seed=0):
    return Record(Trial(structure, epochs, seed), value, epochs, ((epochs, value),))


def failed(structure, epochs=FULL, seed=0):
    return Record(Trial(structure, epochs, seed), 0.0, 0, failure="killed")


def alike(count=30, noise=0.0, seed=0):
    """Full trainings whose short values lie on the line full = .1 + 2 * short, give or take."""
    rng = np.random.default_rng(seed)
    short = rng.uniform(0.1, 0.3, count)
    whole = 0.1 + 2 * short + noise * rng.standard_normal(count)
    return [record(s, w, f) for s, w, f in zip(STRUCTURES, whole.tolist(), short.tolist(), strict=False)]


def unrelated(count=30, seed=0):
    rng = np.random.default_rng(seed)
    pairs = rng.uniform(0.1, 0.3, (count, 2)).tolist()
    return [record(s, whole, short) for s, (whole, short) in zip(STRUCTURES, pairs, strict=False)]


@given(st.integers(1, 500), st.integers(1, 60))
def test_rungs_are_distinct_multiples_of_the_grain_below_the_full_epochs(full, grain):
    found = rungs(full, grain)
    assert all(epochs % grain == 0 and 0 < epochs < full for epochs in found)
    assert found == sorted(set(found))


def test_a_training_as_short_as_the_grain_has_no_rungs():
    assert rungs(5, 5) == []
    assert rungs(80, 5) == [10, 20, 40]


def test_a_rungs_value_is_the_best_up_to_there():
    run = Record(Trial(STRUCTURES[0], 20, 0), 0.4, 20, ((5, 0.2), (10, 0.3), (15, 0.25), (20, 0.4)))
    assert [value_at(run, epochs) for epochs in (4, 5, 12, 15, 20)] == [0.0, 0.2, 0.3, 0.3, 0.4]


def test_a_planted_line_is_recovered():
    """Drawn a little towards no relation, the less the more curves there are."""
    line = extrapolation(alike(200), 10, FULL)
    assert line.slope == pytest.approx(2, rel=0.02)
    assert line.intercept == pytest.approx(0.1, abs=0.01)
    assert line.correlation > 0.98


def test_the_scatter_around_the_line_is_its_variance():
    line = extrapolation(alike(200, noise=0.05), 10, FULL)
    assert line.variance**0.5 == pytest.approx(0.05, rel=0.25)
    assert 0.05 < extrapolation(alike(200, noise=0.1), 10, FULL).variance ** 0.5 < 0.15


def test_few_curves_are_extrapolated_by_their_mean_gain():
    past = [record(s, 0.4 + 0.01 * n, 0.3 + 0.01 * n) for n, s in enumerate(STRUCTURES[: ENOUGH - 1])]
    line = extrapolation(past, 10, FULL)
    assert line.slope == 1.0
    assert line.intercept == pytest.approx(0.1)


@pytest.mark.parametrize(
    "past", [[], [record(s, 0.4) for s in STRUCTURES[:9]], [failed(s) for s in STRUCTURES[:9]]]
)
def test_nothing_equal_values_and_failures_alone_give_a_line_all_the_same(past):
    line = extrapolation(past, 10, FULL)
    assert np.isfinite([line.intercept, line.slope, line.variance, line.correlation]).all()


def test_short_trainings_that_order_alike_are_the_ones_to_screen_with():
    assert screening_rung(alike(), FULL, GRAIN) == rungs(FULL, GRAIN)[0]


@pytest.mark.parametrize("seed", range(5))
def test_short_trainings_that_say_nothing_are_not_used(seed):
    assert screening_rung(unrelated(60, seed), FULL, GRAIN) == FULL


def test_a_rung_that_orders_alike_is_preferred_to_a_shorter_one_that_does_not():
    rng = np.random.default_rng(0)
    past = []
    for run in alike(60):
        early = tuple((epoch, float(rng.uniform(0, 0.1))) for epoch, _ in run.curve if epoch < 20)
        past.append(replace(run, curve=early + run.curve[3:]))
    assert screening_rung(past, FULL, GRAIN) == 20


def test_before_there_are_enough_curves_all_trainings_are_full():
    assert screening_rung([], FULL, GRAIN) == FULL
    assert screening_rung(alike(ENOUGH - 1), FULL, GRAIN) == FULL


def test_failures_are_no_evidence_that_short_trainings_serve():
    past = [*alike(2), *(failed(s) for s in STRUCTURES[2:40])]
    assert screening_rung(past, FULL, 4) == FULL
    assert screening_rung(past[2:], FULL, 4) == FULL


def test_the_mean_of_the_largest_of_normals():
    """.5642 for two, 1.0294 for four, 2.0697 for 32 (tables of order statistics)."""
    found = [mean_maximum(count) for count in (2, 4, 32)]
    assert found == pytest.approx([0.5642, 1.0294, 2.0697], rel=0.05)


@pytest.mark.parametrize("spread", [0.002, 0.02])
def test_the_seeds_spread_is_recovered_from_repeats(spread):
    rng = np.random.default_rng(1)
    past = [
        record(s, 0.3 + 0.001 * place + spread * rng.standard_normal(), seed=seed)
        for place, s in enumerate(STRUCTURES[:60])
        for seed in range(4)
    ]
    assert seed_variance(past, FULL) ** 0.5 == pytest.approx(spread, rel=0.1)


def test_failures_and_short_trainings_do_not_widen_the_seeds_spread():
    past = [record(s, 0.3 + 0.001 * n, seed=seed) for n, s in enumerate(STRUCTURES[:20]) for seed in (0, 1)]
    odd = [failed(s, seed=2) for s in STRUCTURES[:20]] + [
        screened(s, 0.1, 10, seed=3) for s in STRUCTURES[:20]
    ]
    assert seed_variance([*past, *odd], FULL) == pytest.approx(seed_variance(past, FULL))


def test_without_repeats_some_spread_is_assumed():
    assert 0 < seed_variance([], FULL) < 0.01
    assert 0 < seed_variance(alike(10), FULL) < np.var([run.valid_mrr for run in alike(10)])


def test_full_trainings_are_averaged_and_the_more_there_are_the_surer():
    one, two = STRUCTURES[:2]
    past = [record(one, 0.3), record(one, 0.4, seed=1), record(two, 0.5)]
    found = estimates(past, FULL)
    assert found[one].mean == pytest.approx(0.35)
    assert found[two].mean == 0.5
    assert found[one].variance == pytest.approx(found[two].variance / 2)


def test_short_trainings_are_extrapolated_and_less_sure_than_full_ones():
    past = alike(40, noise=0.05)
    known, new = past[0].trial.structure, STRUCTURES[50]
    found = estimates([*past, screened(new, 0.2, 10)], FULL)
    line = extrapolation(past, 10, FULL)
    assert found[new].mean == pytest.approx(line.intercept + line.slope * 0.2)
    assert found[new].mean == pytest.approx(0.5, abs=0.03)
    assert found[new].variance > found[known].variance


def test_short_trainings_are_as_sure_as_they_turn_out_to_be():
    """A seed that is lucky for a while is lucky to the end: the truth is the mean over seeds, told by others."""
    rng, squares = np.random.default_rng(0), []
    for _ in range(60):
        truth = dict(zip(STRUCTURES, rng.normal(0.5, 0.03, 20), strict=False))
        past = []
        for structure, value in truth.items():
            luck = 0.02 * rng.standard_normal()
            short = value - 0.2 + 0.7 * luck + 0.01 * rng.standard_normal()
            past.append(record(structure, value + luck, short))
        (new, value), *_ = truth.items()
        found = estimates([*past[1:], screened(new, past[0].curve[0][1], 10)], FULL)[new]
        squares.append((found.mean - value) ** 2 / found.variance)
    assert 0.6 < np.mean(squares) < 1.6


def test_the_longest_training_of_a_structure_speaks_for_it():
    past = alike(40)
    new, promoted = STRUCTURES[50:52]
    short = [screened(new, 0.1, 5), screened(new, 0.2, 20), screened(promoted, 0.1, 5), record(promoted, 0.9)]
    found = estimates([*past, *short], FULL)
    assert found[new].mean == pytest.approx(0.5, abs=0.05)
    assert found[promoted].mean == 0.9
    assert highest_rungs([*past, *short], FULL) == {new: short[1]}


def test_a_seed_whose_worker_died_does_not_count_against_a_structure():
    past = alike(40, noise=0.02)
    leader = max(past, key=lambda run: run.valid_mrr).trial.structure
    before, after = estimates(past, FULL), estimates([*past, failed(leader, seed=1)], FULL)
    assert after[leader] == before[leader]


def test_failed_trainings_leave_the_estimates_of_the_others_as_they_were():
    past = [*alike(40, noise=0.02), screened(STRUCTURES[50], 0.2, 10)]
    odd = [failed(s) for s in STRUCTURES[60:70]] + [failed(s, epochs=10) for s in STRUCTURES[70:80]]
    before, after = estimates(past, FULL), estimates([*past, *odd], FULL)
    assert all(after[structure] == label for structure, label in before.items())
    assert all(after[run.trial.structure].mean == 0 for run in odd)
