"""Tuning: its winner is the best of its trials, it follows from the seed, and sees no test triple."""

from dataclasses import replace
from itertools import count

import optuna
import pytest
from optuna.trial import TrialState

from autosf.algebra.zoo import named
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.graph.synthetic import patterned_graph
from autosf.runs.ranges import Between, OneOf, tuning_ranges
from autosf.runs.study import refuse_other
from autosf.runs.tuning import tune

SIMPLE = named("simple").structure
SMALL = TrainingSettings(dimension=8, epochs=8, batch_size=32, learning_rate=0.4, validate_every=2)


@pytest.fixture(scope="module")
def graph():
    return patterned_graph(
        symmetric=1, anti_symmetric=1, general=1, entities=24, triples=40, valid=0.15, test=0.15
    )


def tuned(graph, settings=SMALL, *, trials=4, seed=1, structure=SIMPLE, **options):
    return tune(graph, structure, settings, trials=trials, seed=seed, clock=count().__next__, **options)


def trials_in(file):
    study = optuna.load_study(study_name="tuning", storage=f"sqlite:///{file}")
    return study.get_trials()


def counted(file):
    """What the finished trials tried and came to, in order."""
    states = (TrialState.COMPLETE, TrialState.PRUNED)
    return [(t.params, t.state, t.intermediate_values, t.value) for t in trials_in(file) if t.state in states]


def test_the_winner_is_the_best_trial_and_the_first_two_are_the_start_and_the_defaults(graph, tmp_path):
    found = tuned(graph, trials=5, study_file=tmp_path / "s")
    trials = trials_in(tmp_path / "s")
    assert [t.user_attrs["settings"]["learning_rate"] for t in trials[:2]] == [0.4, 0.1]
    assert [t.user_attrs["settings"]["batch_size"] for t in trials[:2]] == [32, 512]
    assert (found.trials, found.ending) == (5, "all trials")
    assert found.best.valid_mrr == max(t.value for t in trials if t.state == TrialState.COMPLETE)
    assert found.settings.as_dict() == trials[found.best.trial].user_attrs["settings"]
    assert found.settings.dimension == SMALL.dimension


def test_the_test_split_changes_nothing(graph):
    other = replace(graph, test=graph.train[:7])
    assert tuned(graph) == tuned(other) == tuned(replace(graph, test=graph.test[:0]))


def test_another_seed_tries_other_settings(graph, tmp_path):
    for seed in (1, 2):
        tuned(graph, seed=seed, trials=3, study_file=tmp_path / str(seed))
    one, other = (counted(tmp_path / str(seed)) for seed in (1, 2))
    assert one[2][0] != other[2][0]


@pytest.fixture(scope="module")
def uncut(graph, tmp_path_factory):
    file = tmp_path_factory.mktemp("uncut") / "study"
    return tuned(graph, trials=11, study_file=file), counted(file)


class CrashError(Exception):
    pass


@pytest.mark.parametrize("end", [KeyboardInterrupt, CrashError])
@pytest.mark.parametrize("trial", [0, 9])  # a start, and one that TPE sampled
def test_a_tuning_cut_within_a_trial_goes_on_as_if_it_had_not_been(graph, uncut, tmp_path, end, trial):
    """A crash leaves its trial running in the study, as kill -9 would."""
    (expected, whole), cut = uncut, tmp_path / "cut"

    def watch(progress):
        if progress.trials == trial and progress.epoch == 2:
            raise end

    with pytest.raises(end):
        tuned(graph, trials=11, study_file=cut, watch=watch)
    assert len(counted(cut)) == trial
    found = tuned(graph, trials=11, study_file=cut)
    assert counted(cut) == whole
    assert replace(found.best, trial=0) == replace(expected.best, trial=0)
    assert [t.state for t in trials_in(cut)].count(TrialState.FAIL) == 1


def test_a_larger_number_of_trials_goes_on_and_a_reached_one_does_nothing(graph, tmp_path):
    file = tmp_path / "s"
    tuned(graph, trials=3, study_file=file)
    before = counted(file)
    assert tuned(graph, trials=2, study_file=file).trials == 3
    assert tuned(graph, trials=5, study_file=file).trials == 5
    assert counted(file)[:3] == before


def test_trials_that_fall_behind_are_stopped_early(graph, tmp_path):
    ranges = tuning_ranges(
        SMALL, {"learning_rate": OneOf((0.0, 0.4))}, ["decay", "regularisation", "batch_size"]
    )
    found = tuned(graph, trials=16, ranges=ranges, study_file=tmp_path / "s")
    stopped = [t for t in trials_in(tmp_path / "s") if t.state == TrialState.PRUNED]
    assert found.stopped == len(stopped) > 0
    assert {t.params["learning_rate"] for t in stopped} == {0.0}
    assert all(2 <= t.last_step < SMALL.epochs for t in stopped)
    assert found.settings.learning_rate == 0.4


def test_a_trial_that_diverges_is_a_bad_one_and_the_next_goes_on(graph, tmp_path):
    settings = replace(SMALL, optimiser="sgd", batch_size=8)
    ranges = {"learning_rate": OneOf((0.4, 1e30))}
    found = tuned(graph, settings, trials=6, ranges=ranges, study_file=tmp_path / "s")
    states = {(t.params["learning_rate"], t.state) for t in trials_in(tmp_path / "s")}
    assert states == {(0.4, TrialState.COMPLETE), (1e30, TrialState.PRUNED)}
    assert found.settings.learning_rate == 0.4
    with pytest.raises(UserError, match="no trial's loss stayed finite"):
        tuned(graph, settings, trials=2, ranges={"learning_rate": Between(1e30, 1e31)})


def test_out_of_time_ends_within_a_trial_which_does_not_count(graph):
    seen = []
    found = tuned(graph, trials=50, watch=seen.append, out_of_time=lambda: len(seen) > 20)
    assert (found.trials, found.ending) == (2, "out of time")
    assert len(seen) == 22  # eight epochs and an end of each of two trials, then three epochs and the end


def test_too_little_time_for_one_trial_gives_the_settings_it_started_from(graph):
    found = tuned(graph, trials=50, out_of_time=lambda: True)
    assert (found.settings, found.trials, found.best.valid_mrr) == (SMALL, 0, 0.0)


def test_progress_tells_the_current_trial_and_the_best(graph):
    seen = []
    found = tuned(graph, trials=2, watch=seen.append)
    assert [p.epoch for p in seen[:10]] == [0, 1, 2, 3, 4, 5, 6, 7, 8, 0]
    assert (seen[0].trials, seen[0].best, seen[0].settings) == (0, None, None)  # the study is open
    assert seen[1].valid_mrr is None
    assert seen[3].valid_mrr == seen[2].valid_mrr > 0
    assert seen[1].settings == SMALL
    assert seen[-1].best == found.best


def test_a_study_from_before_a_setting_was_there_goes_on():
    settings = TrainingSettings().as_dict()
    before = {name: value for name, value in settings.items() if name != "averaging"}
    refuse_other(None, {"settings": before}, {"settings": settings})
    with pytest.raises(UserError, match=r"the tuning there began with averaging 0.0, not 0.5;"):
        refuse_other(None, {"settings": before}, {"settings": settings | {"averaging": 0.5}})


def test_a_study_of_something_else_is_refused(graph, tmp_path):
    file = tmp_path / "s"
    tuned(graph, trials=1, study_file=file)
    for change, options in (
        ("seed 1, not 9", {"seed": 9}),
        ("another structure", {"structure": named("complex").structure}),
        (f"dimension {SMALL.dimension}, not 16", {"settings": replace(SMALL, dimension=16)}),
        ("other ranges", {"ranges": {"decay": Between(0.5, 1.0)}}),
        ("another graph", {"graph": replace(graph, train=graph.train[1:])}),
    ):
        with pytest.raises(UserError, match=f"the tuning there began with {change};"):
            tuned(**{"graph": graph, "trials": 1, "study_file": file} | options)
    file.write_text("no database at all, but long enough to be looked at")
    with pytest.raises(UserError, match="expected an Optuna study"):
        tuned(graph, trials=1, study_file=file)


def test_what_cannot_be_validated_cannot_be_tuned(graph):
    with pytest.raises(UserError, match="expected validation triples"):
        tuned(replace(graph, valid=graph.valid[:0]))
    with pytest.raises(UserError, match="tuning needs validations"):
        tuned(graph, replace(SMALL, validate_every=0))
    with pytest.raises(UserError, match="multiple of the structure's 4 parts, found 10"):
        tuned(graph, ranges={"dimension": OneOf((8, 10))})
