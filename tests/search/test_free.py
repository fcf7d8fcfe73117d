"""The free search with a fake trainer: what it asks for, in which order, and why it ends."""

from collections import Counter
from dataclasses import replace
from functools import cache
from math import dist, exp
from random import Random

import numpy as np
import pytest

from autosf.algebra.constraints import satisfies_c2
from autosf.algebra.features import invariants
from autosf.algebra.invariance import canonical
from autosf.algebra.space import five_f4
from autosf.algebra.structure import Structure
from autosf.algebra.zoo import ZOO, named
from autosf.search.free import expected_finals, free, most_finals, symmetric_root
from autosf.search.record import OUT_OF_TIME, OutOfTime, Record, search
from autosf.search.settings import SearchSettings
from autosf.search.verdict import fresh_seeds, is_human_designed, verdict

SMALL = SearchSettings(epochs=40, grain=5, candidates=32, chosen=8, seed=3, trials=45)
KNOWN = {canonical(structure, "extended") for structure in [known.structure for known in ZOO] + [*five_f4()]}


def trained_by(score, noise=0.0):
    """A trainer with rising curves; `noise` is the standard deviation over seeds."""

    def record(trial):
        final = score(trial.structure) + noise * Random(f"{trial.structure} {trial.seed}").gauss(0, 1)
        curve = tuple((epoch, final * (1 - exp(-epoch / 8))) for epoch in range(5, trial.epochs + 1, 5))
        return Record(trial, curve[-1][1], trial.epochs, curve)

    return lambda trials: [record(trial) for trial in trials]


TARGET = Structure(((1, 2, 0, 3), (-2, 4, 0, 0), (0, 1, 3, 0), (4, 0, -1, 2)))  # 10 blocks, unlike the zoo


def near_target(structure):
    """Smooth, highest at a structure the search has never seen."""
    return 0.2 + 0.4 * exp(-dist(invariants(structure), invariants(TARGET)) / 8)


@cache
def whole(settings=SMALL, noise=0.005):
    """All rounds with their records, and why the search ended."""
    rounds = []
    train = trained_by(near_target, noise)

    def evaluate(trials):
        rounds.append(train(trials))
        return rounds[-1]

    _, reason = search(free(settings), evaluate)
    return tuple(map(tuple, rounds)), reason


def trials_of(rounds):
    return [record.trial for records in rounds for record in records]


def split_whole(settings=SMALL):
    """The first round, those between, and the finals."""
    rounds, _ = whole(settings)
    return rounds[0], rounds[1:-1], rounds[-1]


def test_the_first_round_trains_each_class_of_the_zoo_and_of_f4_once():
    first, _, _ = split_whole()
    structures = [record.trial.structure for record in first]
    assert Counter(structures) == Counter(KNOWN)
    assert {record.trial.epochs for record in first} == {SMALL.epochs}


def test_a_short_opening_trains_some_to_the_full_and_screens_the_other_known_ones():
    first, middle, _ = split_whole(replace(SMALL, opening=6))
    opened = [record.trial.structure for record in first]
    assert len(opened) == 6
    assert sum(map(is_human_designed, opened)) == 5  # the verdict compares with them
    late = [record.trial for record in middle[0] if record.trial.structure in KNOWN - set(opened)]
    assert {trial.structure for trial in late} == KNOWN - set(opened)
    assert all(trial.epochs < SMALL.epochs for trial in late)
    tried = {trial.structure for trial in trials_of([first, *middle])}
    assert tried >= KNOWN
    assert len(tried) == SMALL.trials


def test_a_short_opening_takes_no_more_structures_than_it_may():
    first, middle, _ = split_whole(replace(SMALL, opening=6, trials=9))
    assert len({trial.structure for trial in trials_of([first, *middle])}) == 9


def test_no_training_is_asked_for_twice():
    counts = Counter(trials_of(whole()[0]))
    assert max(counts.values()) == 1


def test_new_structures_are_new_classes_that_satisfy_c2():
    _, between, _ = split_whole()
    seen = set(KNOWN)
    for records in between:
        structures = {record.trial.structure for record in records}
        assert all(canonical(structure, "extended") == structure for structure in structures)
        assert all(satisfies_c2(structure, up_to_sign=True) for structure in structures - seen)
        seen |= structures
    assert len(seen) > len(KNOWN) + 20


def test_only_what_was_screened_is_promoted_and_only_what_was_promoted_is_repeated():
    first, between, _ = split_whole()
    asked = {(record.trial.structure, record.trial.epochs) for record in first}
    kinds = Counter()
    for records in between:
        past = {structure for structure, _ in asked}
        for trial in (record.trial for record in records):
            if trial.structure not in past:
                kinds["new"] += 1
                continue
            assert trial.epochs == SMALL.epochs
            repeated = (trial.structure, trial.epochs) in asked
            assert (trial.seed > SMALL.seed * 10_000) == repeated
            kinds["repeat" if repeated else "promotion"] += 1
        asked |= {(record.trial.structure, record.trial.epochs) for record in records}
    assert kinds["promotion"] > 0
    assert kinds["new"] > kinds["promotion"]


def test_leaders_that_cannot_be_told_apart_are_repeated():
    """All alike but for the seeds: somebody is trained again before the finals."""
    records, _ = search(free(SMALL), trained_by(lambda _: 0.4, noise=0.02))
    before = [r.trial for r in records if r.trial.seed not in fresh_seeds(SMALL)]
    assert max(Counter(trial.structure for trial in before if trial.epochs == SMALL.epochs).values()) > 1


@pytest.mark.parametrize("trials", [1, 5, len(KNOWN), 25, 45])
def test_trials_bound_the_structures_tried_and_are_named_as_the_reason(trials):
    rounds, reason = whole(replace(SMALL, trials=trials))
    assert len({trial.structure for trial in trials_of(rounds)}) == trials
    assert reason == f"all {trials} structures are tried"


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_when_no_trials_are_left_promotions_go_on_and_hope_is_not_the_reason(seed):
    """Nothing new may be tried, which says nothing about how good it would be."""

    def score(structure):
        return 0.4 + 0.05 * Random(str(structure)).random()

    settings = replace(SMALL, trials=40, chosen=4, seed=seed)
    assert search(free(settings), trained_by(score))[1] == "all 40 structures are tried"


def test_finals_train_the_finalists_and_the_human_designed_that_may_be_best_with_fresh_seeds():
    settings = replace(SMALL, finalists=2, fresh_seeds=4, trials=30)
    first, between, finals = split_whole(settings)
    seeds = Counter(record.trial.structure for record in finals)
    assert set(seeds.values()) == {4}
    human = list(filter(is_human_designed, seeds))
    assert 1 <= len(human) <= 4
    assert len(seeds) <= 2 + len(human)
    assert {record.trial.seed for record in finals} == set(fresh_seeds(settings))
    assert not set(fresh_seeds(settings)) & {trial.seed for trial in trials_of([first, *between])}
    others = [r for r in first if is_human_designed(r.trial.structure)]
    best = max(near_target(r.trial.structure) for r in others)
    assert max(near_target(structure) for structure in human) > best - 0.02


def test_time_is_kept_for_the_finals_that_are_expected_not_for_all_there_could_be():
    rounds, _ = whole()
    past = [record for of_round in rounds[:-1] for record in of_round]
    assert expected_finals([], SMALL) == most_finals(SMALL), "nothing is known yet"
    assert abs(expected_finals(past, SMALL) - len(rounds[-1])) <= SMALL.fresh_seeds, (
        "one finalist more or less"
    )
    assert expected_finals(past, SMALL) < most_finals(SMALL)


def test_the_verdict_is_about_the_finals():
    rounds, _ = whole()
    past = [record for records in rounds for record in records]
    found = verdict(past, SMALL)
    means = Counter()
    for record in rounds[-1]:
        means[record.trial.structure] += record.valid_mrr / SMALL.fresh_seeds
    assert found.winner.structure == max(means, key=means.get)
    assert found.winner.valid_mrr == pytest.approx(max(means.values()))


@pytest.mark.parametrize("partly", [False, True])
def test_out_of_time_at_any_round_leads_to_the_finals(partly):
    rounds, _ = whole()
    for cut in range(1, len(rounds) - 1):
        strategy = free(SMALL)
        asked = next(strategy)
        for records in rounds[:cut]:
            asked = strategy.send(records)
        done = trained_by(near_target, 0.005)(asked[: len(asked) // 2]) if partly else []
        finals = strategy.throw(OutOfTime(done))
        assert {trial.seed for trial in finals} == set(fresh_seeds(SMALL))
        tried = {t.structure for t in trials_of([*rounds[:cut], done]) if t.epochs == SMALL.epochs}
        assert {trial.structure for trial in finals} <= tried
        with pytest.raises(StopIteration, match=OUT_OF_TIME):
            strategy.send(trained_by(near_target)(finals))


def test_out_of_time_in_the_first_round_has_finals_only_if_something_was_trained():
    strategy = free(SMALL)
    asked = next(strategy)
    finals = strategy.throw(OutOfTime(trained_by(near_target)(asked[:1])))
    assert {trial.structure for trial in finals} == {asked[0].structure}
    strategy = free(SMALL)
    next(strategy)
    with pytest.raises(StopIteration, match=OUT_OF_TIME):
        strategy.throw(OutOfTime())


def cut_in_the_finals(times: int, after: int = 0):
    """Trains all; the finals are interrupted so many times, each time after so many of their trials."""
    cuts = []

    def evaluate(trials):
        if trials[0].seed in fresh_seeds(SMALL) and len(cuts) < times:
            cuts.append(trials)
            raise OutOfTime(trained_by(near_target)(trials[:after]))
        return trained_by(near_target)(trials)

    return evaluate


def test_finals_that_have_begun_are_not_cut_by_the_end_of_the_rounds_time():
    """Time was kept for them."""
    whole_records, reason = search(free(SMALL), trained_by(near_target))
    for after in (0, 2):
        assert search(free(SMALL), cut_in_the_finals(1, after)) == (whole_records, reason)


def test_a_second_word_of_the_end_cuts_the_finals_and_all_finalists_have_been_tried_alike():
    records, reason = search(free(SMALL), cut_in_the_finals(2))
    assert reason == OUT_OF_TIME
    assert verdict(records, SMALL) is None
    finals = [
        r.trial for r in search(free(SMALL), trained_by(near_target))[0] if r.trial.seed in fresh_seeds(SMALL)
    ]
    finalists = {trial.structure for trial in finals}
    assert {trial.structure for trial in finals[: len(finalists)]} == finalists
    records, reason = search(free(SMALL), cut_in_the_finals(2, after=len(finalists)))
    assert reason == OUT_OF_TIME
    assert all(len(finalist.values) >= 1 for finalist in verdict(records, SMALL).finalists)
    assert {finalist.structure for finalist in verdict(records, SMALL).finalists} == finalists


def test_finals_that_come_late_are_cut_by_the_next_word():
    strategy = free(SMALL)
    strategy.throw(OutOfTime(trained_by(near_target)(next(strategy))))
    with pytest.raises(OutOfTime):
        strategy.throw(OutOfTime())


def test_recorded_answers_lead_to_the_same_rounds():
    """Resuming is running again over the records of the past."""
    rounds, reason = whole()
    known = {record.trial: record for records in rounds for record in records}
    again = []

    def evaluate(trials):
        again.append(list(trials))
        return [known[trial] for trial in trials]

    assert search(free(SMALL), evaluate)[1] == reason
    assert again == [[record.trial for record in records] for records in rounds]


def test_the_last_bits_of_a_covariance_hardly_move_its_root():
    """Structures alike in all features but not the same have equal eigenvalues."""
    alike = np.repeat([0, 1, 2], 20)
    covariance = 0.9 * (alike[:, None] == alike) + 0.1 * np.eye(60)
    bits = np.random.default_rng(0).normal(0, 1e-16, (60, 60))
    root, other = symmetric_root(covariance), symmetric_root(covariance + bits + bits.T)
    assert root @ root == pytest.approx(covariance)
    assert np.abs(root - other).max() < 1e-12


def test_new_structures_have_no_more_blocks_than_they_may():
    rounds, _ = whole(replace(SMALL, most_blocks=7))
    tried = {trial.structure for trial in trials_of(rounds)} - KNOWN
    assert max(structure.blocks for structure in tried) == 7
    assert max(trial.structure.blocks for trial in trials_of(whole()[0])) > 7


def test_another_seed_takes_another_way():
    one, other = (trials_of(whole(replace(SMALL, seed=seed))[0]) for seed in (3, 4))
    assert not set(one) & set(other)
    tried = [{trial.structure for trial in trials} - KNOWN for trials in (one, other)]
    assert tried[0] != tried[1]


def test_failures_are_survived():
    def failing(trials):
        return [Record(trial, 0.0, 0, failure="killed") for trial in trials]

    records, reason = search(free(SMALL), failing)
    assert reason
    assert {record.trial.structure for record in records} >= KNOWN

    def often_failing(trials):
        good = trained_by(near_target)(trials)
        return [r if Random(str(r.trial)).random() < 0.7 else failing([r.trial])[0] for r in good]

    records, _ = search(free(SMALL), often_failing)
    assert verdict(records, SMALL).winner.valid_mrr > 0.25


def test_a_leader_that_nothing_comes_near_ends_the_search():
    leader = canonical(named("simple").structure, "extended")

    def score(structure):
        return 0.6 if structure == leader else 0.3 + 0.001 * Random(str(structure)).random()

    records, reason = search(free(replace(SMALL, trials=None)), trained_by(score))
    assert "improbable" in reason
    assert len({record.trial.structure for record in records}) < 200
    assert verdict(records, SMALL).winner.structure == leader


def test_a_better_structure_than_the_known_ones_is_found_where_scores_are_smooth():
    gains = []
    for seed in range(5):
        rounds, _ = whole(replace(SMALL, seed=seed, trials=60))
        best_known = max(near_target(record.trial.structure) for record in rounds[0])
        winner = verdict(rounds[-1], replace(SMALL, seed=seed)).winner.structure
        gains.append(near_target(winner) - best_known)
    assert sum(gain > 0.01 for gain in gains) >= 4
