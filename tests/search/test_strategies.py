"""Every strategy under one interface: its definition, its trials, the same again from the same seed."""

from collections import Counter
from dataclasses import replace
from functools import cache
from random import Random

import pytest

from autosf.algebra.constraints import satisfies_c2
from autosf.algebra.invariance import canonical
from autosf.algebra.space import five_f4
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.runs.task import key_of
from autosf.search.baselines import random_structure, structure_at, tpe_study
from autosf.search.greedy import Variant, greedy_step
from autosf.search.record import search
from autosf.search.settings import SearchSettings, next_round
from autosf.search.strategies import STRATEGIES, strategy_named
from fake_training import record_of, rounds_of, trained

SMALL = SearchSettings(blocks=8, rounds=3, candidates=32, chosen=4, epochs=3, seed=3)
NAMES = [
    "paper",
    "greedy",
    "paper-without-filter",
    "paper-without-predictor",
    "paper-one-hot",
    "random",
    "tpe",
]
F4 = [canonical(structure) for structure in five_f4()]


def trials_of(name, settings=SMALL, past=None):
    return [trial for trials in rounds_of(strategy_named(name, settings), past) for trial in trials]


@cache
def whole(name):
    """The trials of a small search, looked at by several tests."""
    return tuple(trials_of(name))


@pytest.mark.parametrize("name", NAMES)
class TestEveryStrategy:
    def test_the_same_seed_gives_the_same_trials_and_another_seed_others(self, name):
        first = whole(name)
        assert tuple(trials_of(name)) == first
        other = trials_of(name, replace(SMALL, seed=4))
        assert [trial.structure for trial in other] != [trial.structure for trial in first]

    def test_half_the_records_and_a_new_start_continue_as_if_nothing_had_happened(self, name):
        records, _ = search(strategy_named(name, SMALL), trained)
        half = records[: len(records) // 2]
        assert trials_of(name, past=half) == [record.trial for record in records]

    def test_it_learns_only_from_what_it_is_sent(self, name):
        """Two runs, advanced in turns, do not disturb each other."""
        one, other = strategy_named(name, SMALL), strategy_named(name, SMALL)
        asked = [next(one), next(other)]
        for _ in range(2):
            assert asked[0] == asked[1]
            asked = [one.send(trained(asked[0])), other.send(trained(asked[1]))]

    @pytest.mark.parametrize("trials", [1, 7, 11])
    def test_it_asks_for_exactly_the_trials_allowed(self, name, trials):
        records, why = search(strategy_named(name, replace(SMALL, trials=trials)), trained)
        assert len(records) == trials
        assert why == f"all {trials} trials are done"
        assert [record.trial for record in records] == list(whole(name)[:trials])

    def test_every_trial_is_canonical_and_no_two_are_the_same_trial(self, name):
        trials = whole(name)
        assert all(canonical(trial.structure) == trial.structure for trial in trials)
        assert len(set(trials)) == len(trials)
        assert {trial.epochs for trial in trials} == {3}

    def test_it_goes_on_when_all_trainings_fail(self, name):
        records, _ = search(
            strategy_named(name, SMALL),
            lambda trials: [record_of(t.structure, 0.0, "diverged") for t in trials],
        )
        assert len(records) >= 12

    def test_it_is_silent(self, name, capfd):
        trials_of(name, replace(SMALL, trials=9))
        assert capfd.readouterr() == ("", "")


def test_the_dict_of_strategies_holds_them_under_their_names():
    assert set(NAMES) <= set(STRATEGIES)


class TestAblations:
    """Sec. V-E: what is left when filter or predictor are taken away."""

    past = tuple(record_of(structure, 0.1 * place) for place, structure in enumerate(F4))

    def step(self, **variant):
        return greedy_step(self.past, 6, SearchSettings(seed=3), Variant(**variant))

    def test_without_filter_repeats_are_candidates(self):
        step = self.step(filtered=False)
        assert len(step.candidates) == 256
        assert len(set(step.candidates)) < 256

    def test_without_filter_c2_is_not_asked_for(self):
        settings = SearchSettings(candidates=20_000)
        drawn = greedy_step(self.past, 6, settings, Variant(filtered=False, predictor=None)).candidates
        assert not all(map(satisfies_c2, drawn))

    def test_without_filter_every_repeat_of_a_class_has_the_next_seed(self):
        settings = replace(SMALL, rounds=16)
        seeds = {}
        for trial in trials_of("paper-without-filter", settings):
            seeds.setdefault(canonical(trial.structure, "extended"), []).append(trial.seed)
        assert max(map(len, seeds.values())) > 1
        assert all(found == list(range(3, 3 + len(found))) for found in seeds.values())

    def test_without_predictor_the_chosen_are_candidates_of_any_rank(self):
        step = self.step(predictor=None)
        places = sorted(step.candidates.index(structure) for structure in step.chosen)
        assert len(set(places)) == 8
        assert places[-1] > 100  # not just the first drawn
        assert step.predicted == ()

    def test_filter_and_predictor_leave_the_same_candidates_whichever_chooses(self):
        assert (
            self.step().candidates
            == self.step(predictor=None).candidates
            == self.step(predictor="one-hot").candidates
        )
        assert self.step().chosen != self.step(predictor="one-hot").chosen

    def test_greedy_has_neither(self):
        settings = replace(SMALL, candidates=256, chosen=8)
        first = trials_of("greedy", settings)[5:13]
        step = greedy_step(
            trained(trials_of("greedy", settings)[:5]), 6, settings, Variant(filtered=False, predictor=None)
        )
        assert tuple(trial.structure for trial in first) == step.chosen


class TestRandom:
    @pytest.mark.parametrize("blocks", [4, 6, 7, 16])
    def test_all_have_b_blocks_and_satisfy_c2(self, blocks):
        trials = trials_of("random", replace(SMALL, blocks=blocks))
        assert {trial.structure.blocks for trial in trials} == {blocks}
        assert all(satisfies_c2(trial.structure) for trial in trials)

    def test_f4_classes_come_as_often_as_they_have_matrices(self):
        """Orbits of the five cycle types of S_4: 1, 6, 8, 3, 6 of 24 permutations."""
        rng = Random(0)
        drawn = Counter(canonical(random_structure(4, rng)) for _ in range(96))
        expected = dict(zip(F4, (4, 24, 32, 12, 24), strict=True))
        chi_square = sum((drawn[form] - times) ** 2 / times for form, times in expected.items())
        assert chi_square < 15  # 1 in 200 is larger; classes drawn alike often would give about 70

    def test_without_a_number_of_trials_there_are_as_many_as_alg_2_has_for_one_b(self):
        assert [len(trials) for trials in rounds_of(strategy_named("random", SearchSettings()))] == [8] * 32


class TestTPE:
    def test_every_point_has_exactly_b_blocks(self):
        study = tpe_study(seed=0)
        for blocks in (4, 6, 16):
            assert {structure_at(study.ask(), blocks).blocks for _ in range(5)} == {blocks}

    def test_a_point_may_be_what_is_added_to_a_structure(self):
        point = tpe_study(seed=0).ask()
        for start in F4:
            grown = structure_at(point, 6, start)
            assert grown.blocks == 6
            kept = zip(start.cells, grown.cells, strict=True)
            assert all(before in (0, after) for before, after in kept)

    def test_all_trials_satisfy_c2(self):
        assert all(satisfies_c2(trial.structure) for trial in whole("tpe"))

    def test_it_asks_where_scores_were_high(self):
        """A score that only counts cells on the diagonal is learnt."""

        def by_diagonal(trials):
            return [record_of(t.structure, 0.1 * sum(map(bool, t.structure.cells[::5]))) for t in trials]

        settings = replace(SMALL, rounds=18)
        records, _ = search(strategy_named("tpe", settings), by_diagonal)
        early, late = records[:24], records[-24:]
        assert sum(r.valid_mrr for r in late) > 1.3 * sum(r.valid_mrr for r in early)


@pytest.mark.parametrize("name", ["paper", "paper-without-filter", "greedy", "random"])
def test_the_papers_round_of_trainings_is_as_many_on_record(name):
    """A twin by entity signs has one key with the other in the ledger, and another seed there."""
    trials = trials_of(name, SearchSettings(rounds=12))
    assert len(trials) in {5 + 12 * 8, 12 * 8}
    assert len({key_of(trial, "", TrainingSettings()) for trial in trials}) == len(trials)


def test_a_repeat_counts_the_trials_of_the_past_and_of_its_own_round():
    past = [record_of(F4[0], 0.1)]
    asked = next_round([F4[0], F4[1], F4[0], F4[1]], past, SearchSettings(seed=10))
    assert [trial.seed for trial in asked] == [11, 10, 12, 11]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("papr", 'unknown strategy "papr"; did you mean "paper"?'),
        ("", 'unknown strategy ""; expected one of free, paper, greedy,'),
    ],
)
def test_an_unknown_strategy_is_the_users_mistake(name, message):
    with pytest.raises(UserError) as error:
        strategy_named(name, SMALL)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"blocks": 17}, "search setting blocks: expected a number from 4 to 16, found 17"),
        ({"rounds": 0}, "search setting rounds: expected a number from 1, found 0"),
        ({"trials": 0}, "search setting trials: expected a number from 1, found 0"),
        ({"seed": -1}, "search setting seed: expected a number from 0 to 922337203685476, found -1"),
    ],
)
def test_a_setting_out_of_range_is_the_users_mistake(values, message):
    with pytest.raises(UserError, match=f"^{message}$"):
        SearchSettings(**values)


def test_a_search_cut_short_among_the_f4_says_so():
    records, why = search(strategy_named("paper", SearchSettings(blocks=4, trials=3)), trained)
    assert (len(records), why) == (3, "all 3 trials are done")


def test_alg_2_refuses_an_odd_number_of_blocks_before_it_starts():
    with pytest.raises(UserError, match="expected an even number, found 7"):
        strategy_named("paper", SearchSettings(blocks=7))
