"""Alg. 2 (Sec. IV-B), one test or more for each of its steps, and the counts of Sec. IV-C in a running search."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from autosf.algebra.constraints import satisfies_c2
from autosf.algebra.features import srf
from autosf.algebra.invariance import canonical, equivalents
from autosf.algebra.space import five_f4, reachable_classes
from autosf.algebra.structure import Structure, from_cells
from autosf.search.filter import passes_filter
from autosf.search.greedy import Variant, best, greedy_step, sampled
from autosf.search.moves import with_random_terms
from autosf.search.predictor import fit_predictor
from autosf.search.record import Record, search
from autosf.search.settings import SearchSettings
from autosf.search.strategies import strategy_named
from fake_training import known_score, record_of, rounds_of, trained

PAPER = Variant()
SMALL = SearchSettings(blocks=8, rounds=3, candidates=32, parents=3, chosen=4, epochs=7, seed=5)
F4 = [canonical(structure) for structure in five_f4()]


def past_up_to(blocks: int) -> list[Record]:
    """The records of a small search with that many blocks at most."""
    records, _ = search(strategy_named("paper", SMALL), trained)
    return [record for record in records if record.trial.structure.blocks <= blocks]


def trained_f4() -> list[Record]:
    return [record_of(structure, known_score(structure)) for structure in F4]


def grows_from(structure: Structure, parent: Structure) -> bool:
    """Whether taking two terms away can leave an equivalent of the parent."""
    places = [place for place, cell in enumerate(structure.cells) if cell]
    return any(
        canonical(from_cells([0 if place in gone else cell for place, cell in enumerate(structure.cells)]))
        == parent
        for gone in combinations(places, 2)
    )


class TestStep1:
    """For b in 4, 6, 8, ..., B."""

    def test_blocks_go_up_by_two_and_each_b_has_its_rounds(self):
        rounds = rounds_of(strategy_named("paper", SMALL))
        assert [{trial.structure.blocks for trial in trials} for trials in rounds] == [{4}] + 3 * [
            {6}
        ] + 3 * [{8}]

    def test_the_exception_all_five_f4_are_trained_in_one_round(self):
        """Sec. IV-B2: fewer than N candidates, and fewer than K2 = 8."""
        assert {trial.structure for trial in rounds_of(strategy_named("paper", SMALL))[0]} == set(F4)

    def test_with_four_blocks_at_most_the_five_f4_are_all(self):
        assert len(rounds_of(strategy_named("paper", SearchSettings(blocks=4)))) == 1


class TestStep3:
    """Randomly select a top-K1 model of T^(b-2)."""

    def test_parents_are_the_k1_best_by_validation_mrr(self):
        records = past_up_to(6)
        f6 = sorted((r for r in records if r.trial.structure.blocks == 6), key=lambda r: -r.valid_mrr)
        step = greedy_step(records, 8, SMALL, PAPER)
        assert step.parents == tuple(record.trial.structure for record in f6[:3])

    def test_the_next_b_starts_from_the_b_before_however_good_earlier_ones_are(self):
        records = [record_of(s, 0.9) for s in F4] + [record_of(s, 0.1) for s in reachable_classes(6)[:4]]
        assert {parent.blocks for parent in greedy_step(records, 8, SMALL, PAPER).parents} == {6}

    def test_every_candidate_grows_from_one_of_the_parents(self):
        step = greedy_step(past_up_to(6), 8, SMALL, PAPER)
        assert all(any(grows_from(s, parent) for parent in step.parents) for s in step.candidates)

    def test_parents_are_selected_alike_often(self):
        """Seen through the diagonal of DistMult: no other parent here keeps four cells on it."""
        distmult, other = F4[0], canonical(five_f4()[4])
        drawn = sampled([distmult, other], 2000, None, Random(0))
        on_diagonal = sum(all(s.rows[i][i] for i in range(4)) for s in drawn)
        assert 900 < on_diagonal < 1100

    def test_a_failed_training_counts_as_an_mrr_of_0_and_stays_on_record(self):
        failed = record_of(F4[0], 0.0, failure="diverged")
        records = [failed, *(record_of(s, 0.1 * n) for n, s in enumerate(F4[1:], 1))]
        assert best(records, 5)[-1] == F4[0]
        f6 = reachable_classes(6, constraint="c2")[0]
        assert not passes_filter(f6, {record_of(f6, 0.0, failure="diverged").trial.structure})


class TestStep4:
    """Six integers and two signs form f^b = f^(b-2) + two terms."""

    def test_a_candidate_is_its_parent_and_exactly_two_terms(self):
        rng = Random(1)
        for parent in F4:
            for _ in range(50):
                child = with_random_terms(parent, 2, rng)
                assert set(parent.terms()) < set(child.terms())
                assert child.blocks == parent.blocks + 2

    def test_all_cells_labels_and_signs_are_drawn_alike_often(self):
        rng = Random(2)
        drawn = Counter(
            (term.head, term.relation, term.tail, term.sign)
            for _ in range(4800)
            for term in set(with_random_terms(F4[0], 2, rng).terms()) - set(F4[0].terms())
        )
        assert len(drawn) == 12 * 4 * 2  # twelve free cells
        assert 60 < min(drawn.values()) <= max(drawn.values()) < 145  # 100 expected

    def test_a_last_step_fills_the_matrix(self):
        nearly = from_cells([1, 2, 3, 4] * 3 + [4, 3, 0, 0])
        assert with_random_terms(nearly, 2, Random(0)).blocks == 16


class TestStep5:
    """If f^b satisfies filter Q then it joins H^b."""

    def test_all_candidates_satisfy_c2(self):
        assert all(map(satisfies_c2, greedy_step(past_up_to(6), 8, SMALL, PAPER).candidates))

    def test_a_candidate_with_equal_rows_is_refused(self):
        equal = canonical(Structure(((1, 2, 0, 0), (1, 2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 4))))
        assert not passes_filter(equal, set())
        assert not satisfies_c2(equal)

    def test_no_two_candidates_are_equivalent(self):
        """Around DistMult, where most draws repeat a class."""
        candidates = sampled(F4[:1], 256, set(), Random(0))
        images = equivalents(candidates[0])
        assert candidates[0] in images
        assert not images & set(candidates[1:])
        assert len(set(map(canonical, candidates))) == len(candidates)

    def test_no_candidate_is_equivalent_to_a_record(self):
        """With every other f^6 on record, the rest is left to sample."""
        every = reachable_classes(6, constraint="c2")
        records = [record_of(s, 0.1) for s in (*F4, *every[::2])]
        step = greedy_step(records, 6, SearchSettings(), PAPER)
        assert len(step.candidates) == 256
        assert set(step.candidates) <= set(every[1::2])

    def test_no_class_is_trained_twice_and_twins_by_entity_signs_have_seeds_of_their_own(self):
        trials = [trial for trials in rounds_of(strategy_named("paper", SMALL)) for trial in trials]
        assert len({trial.structure for trial in trials}) == len(trials)
        assert {trial.epochs for trial in trials} == {7}
        twins = Counter()
        for trial in trials:
            form = canonical(trial.structure, "extended")
            assert trial.seed == 5 + twins[form]
            twins[form] += 1


class TestStep6:
    """Until |H^b| = N."""

    @pytest.mark.parametrize("count", [1, 32, 256])
    def test_there_are_n_candidates(self, count):
        settings = SearchSettings(candidates=count)
        assert len(greedy_step(trained_f4(), 6, settings, PAPER).candidates) == count

    def test_where_fewer_are_left_it_goes_on_with_those(self):
        last = from_cells([1, 2, 3, 4, 2, 1, 4, -3, 3, -4, 1, 2, 4, 3, 0, 0])
        step = greedy_step([record_of(last, 0.3)], 16, SearchSettings(), PAPER)
        assert len(step.candidates) == 8 * 8  # two cells, eight values each, no two of them equivalent
        assert len(step.chosen) == 8

    def test_a_b_ends_when_nothing_new_is_left(self):
        every = reachable_classes(6, constraint="c2")
        records = [record_of(s, 0.1) for s in (*F4, *every)]
        assert greedy_step(records, 6, SMALL, PAPER).chosen == ()


class TestStep7:
    """Select the top K2 of H^b based on the predictor."""

    def test_the_chosen_are_those_with_the_highest_predictions(self):
        step = greedy_step(past_up_to(6), 8, SMALL, PAPER)
        by_structure = dict(zip(step.candidates, step.predicted, strict=True))
        assert len(step.chosen) == SMALL.chosen
        others = [value for structure, value in by_structure.items() if structure not in step.chosen]
        assert min(by_structure[s] for s in step.chosen) >= max(others)

    def test_the_predictor_sees_srfs(self):
        step = greedy_step(past_up_to(6), 8, SMALL, PAPER)
        same = {}
        for structure, value in zip(step.candidates, step.predicted, strict=True):
            same.setdefault(srf(structure), set()).add(value)
        assert 1 < len(same) < len(step.candidates)
        assert all(len(values) == 1 for values in same.values())


def test_steps_8_and_9_each_round_is_what_the_step_chose():
    """Train and evaluate are the caller's; they get the chosen ones and nothing else."""
    past: list[Record] = []
    for trials in rounds_of(strategy_named("paper", SMALL)):
        if past:
            step = greedy_step(past, trials[0].structure.blocks, SMALL, PAPER)
            assert tuple(trial.structure for trial in trials) == step.chosen
        past += trained(trials)
    assert len(past) == 5 + 6 * 4


def test_step_10_what_was_recorded_decides_the_next_parents():
    """The same candidates with turned scores lead elsewhere."""
    records = past_up_to(6)
    turned = [record_of(r.trial.structure, 1 - r.valid_mrr) for r in records]
    one, other = (greedy_step(past, 8, SMALL, PAPER).parents for past in (records, turned))
    assert not set(one) & set(other)


def test_step_11_the_predictor_is_fitted_to_all_records():
    """T^4 and T^6 alike, to the last record."""
    records = past_up_to(6)
    step = greedy_step(records, 8, SMALL, PAPER)

    def predicted(past: list[Record]) -> list[float]:
        return fit_predictor(past, srf, 2, SMALL.seed)(step.candidates).tolist()

    assert list(step.predicted) == predicted(records)
    assert list(step.predicted) != predicted(records[5:])
    assert list(step.predicted) != predicted(records[:-4])


def test_the_search_returns_all_records_in_the_order_they_were_asked_for():
    """The desired SFs of T^B are the best among them."""
    records, why = search(strategy_named("paper", SMALL), trained)
    asked = [trial for trials in rounds_of(strategy_named("paper", SMALL)) for trial in trials]
    assert [record.trial for record in records] == asked
    assert why == "every b up to 8 is searched"


@pytest.fixture(scope="module")
def rounds():
    return rounds_of(strategy_named("paper", SearchSettings(epochs=1)))


class TestSearchComplexity:
    """Sec. IV-C, and what Sec. V-A3 says of each step, as counts of a search with the paper's settings."""

    def test_five_candidates_are_trained_for_f4(self, rounds):
        assert len(rounds[0]) == 5

    def test_eight_at_a_time_32_times_evaluates_256_f6(self, rounds):
        assert [len(trials) for trials in rounds[1:]] == [8] * 32
        f6 = {trial.structure for trials in rounds[1:] for trial in trials}
        assert len(f6) == 256

    def test_greedy_keeps_to_the_4284_classes_that_grow_from_an_f4(self, rounds):
        reached = set(reachable_classes(6, constraint="c2"))
        assert len(reached) == 4_284
        assert all(trial.structure in reached for trials in rounds[1:] for trial in trials)

    def test_the_filter_saves_trainings_of_equivalents(self):
        """Without it about every other of 4,284 draws repeats a class, as draws fall on classes unevenly."""
        drawn = sampled(F4, 4_284, None, Random(0))
        assert len(set(drawn)) < 0.65 * len(drawn)
        assert len(set(sampled(F4, 1_000, set(), Random(0)))) == 1_000

    def test_the_predictor_reduces_by_n_over_k2(self):
        settings = SearchSettings()
        step = greedy_step(trained_f4(), 6, settings, PAPER)
        assert len(step.candidates) / len(step.chosen) == settings.candidates / settings.chosen == 32

    def test_the_predictor_finds_better_ones_than_chance(self, rounds):
        without = rounds_of(strategy_named("paper-without-predictor", SearchSettings(epochs=1)))
        means = [
            sum(known_score(trial.structure) for trials in one[1:] for trial in trials) / 256
            for one in (rounds, without)
        ]
        assert means[0] > means[1]
