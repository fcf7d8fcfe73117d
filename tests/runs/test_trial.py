"""A trial's record is the same bits however its training is cut up."""

from dataclasses import replace
from itertools import count

import pytest
import torch

from autosf.algebra.structure import Structure
from autosf.algebra.zoo import named
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.state import Epoch
from autosf.graph.known_answers import known_answers
from autosf.graph.synthetic import patterned_graph
from autosf.runs.shared_graph import SearchGraph, without_test
from autosf.runs.task import Task, record_as_json, record_from_json, task_as_json, task_from_json
from autosf.runs.trial import Outside, Stopped
from autosf.runs.trials import begun, run_trial, run_trials
from autosf.search.record import Trial

SETTINGS = TrainingSettings(
    dimension=8, batch_size=32, start_scale=0.1, validate_every=2, patience=2, learning_rate=0.5
)
COMPLEX = named("complex").structure


@pytest.fixture(scope="module")
def seen() -> SearchGraph:
    graph = without_test(patterned_graph(symmetric=2, general=2, valid=0.1, test=0.1))
    return SearchGraph(graph, known_answers(graph))


@pytest.fixture
def task(tmp_path) -> Task:
    return Task(Trial(COMPLEX, 20, 7), "a graph", SETTINGS, str(tmp_path / "state.safetensors"), keep=True)


def outside(**ears) -> Outside:
    ticks = count()
    return Outside(lambda: float(next(ticks)), **ears)


def to(task: Task, epochs: int) -> Task:
    return replace(task, trial=replace(task.trial, epochs=epochs))


def same(one, other) -> bool:
    return replace(one, seconds=0.0) == replace(other, seconds=0.0)


KINDS = {
    "early stop": SETTINGS,
    "no early stop": replace(SETTINGS, patience=0),
    "adam": replace(SETTINGS, optimiser="adam", learning_rate=0.01, patience=0),
    "in place": replace(SETTINGS, loss="sampled-softmax", patience=0),
    "cache": replace(SETTINGS, loss="logistic", sampler="cache", negatives=5, patience=0),
    "averaging": replace(SETTINGS, averaging=0.8),
    "averaging in place": replace(SETTINGS, averaging=0.8, loss="logistic", negatives=5, patience=0),
    "dropout": replace(SETTINGS, dropout=0.3, decay=0.9, patience=0),
    "one at a time": replace(SETTINGS, relation_prediction=0.1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rungs_give_the_bits_of_one_go(kind, task, seen, tmp_path):
    task = replace(task, settings=KINDS[kind])
    alone = {
        epochs: run_trial(
            replace(to(task, epochs), keep=False, checkpoint=str(tmp_path / "none")), seen, outside()
        )
        for epochs in (2, 6, 20)
    }
    trained = []
    for epochs, record in alone.items():
        assert same(
            run_trial(to(task, epochs), seen, outside(heard=lambda e: trained.append(e) or True)), record
        )
    if kind == "early stop":
        assert alone[20].epochs < 20
    assert len(trained) == alone[20].epochs, "no epoch is trained twice"
    assert same(run_trial(to(task, 6), seen, outside()), alone[6]), "cut out of the longer one"


def test_a_trial_that_ends_between_validations_is_validated_at_its_end_and_leaves_longer_ones_alone(
    task, seen
):
    alone = run_trial(replace(to(task, 5), checkpoint=task.checkpoint + "other"), seen, outside())
    assert [epoch for epoch, _ in alone.curve] == [2, 4, 5]
    eight = run_trial(to(task, 8), seen, outside())
    assert same(run_trial(to(task, 5), seen, outside()), alone)
    trained = []
    assert same(run_trial(to(task, 8), seen, outside(heard=lambda e: trained.append(e) or True)), eight)
    assert trained == []


def test_a_stopped_trial_goes_on_where_it_was(task, seen):
    whole = run_trial(replace(task, checkpoint=task.checkpoint + "other"), seen, outside())
    first, second = [], []
    with pytest.raises(Stopped):
        run_trial(task, seen, outside(heard=lambda e: first.append(e.number) or e.number < 3))
    assert same(run_trial(task, seen, outside(heard=lambda e: second.append(e.number) or True)), whole)
    assert first + second == list(range(1, whole.epochs + 1))


@pytest.mark.parametrize(
    "settings", [SETTINGS, replace(SETTINGS, relation_prediction=0.1)], ids=["stack", "turns"]
)
def test_trials_given_together_come_to_what_each_comes_to(settings, seen, tmp_path):
    structures = [
        *(named(name).structure for name in ("complex", "distmult", "simple")),
        Structure(((1, 2), (-2, 1))),
    ]
    tasks = [
        Task(Trial(structure, epochs, 7), "a graph", settings, str(tmp_path / f"{epochs}-{place}"), keep=True)
        for place, (structure, epochs) in enumerate(zip(structures, (20, 6, 20, 9), strict=True))
    ]
    alone = [
        run_trial(replace(task, checkpoint=task.checkpoint + "other"), seen, outside()) for task in tasks
    ]
    run_trial(to(tasks[2], 4), seen, outside())  # this one has come further than the others
    heard = []
    stopping = outside(heard=lambda e: e.number < 3)
    with pytest.raises(Stopped):
        list(run_trials([(task, stopping) for task in tasks], seen))
    asked = [
        (task, outside(heard=lambda e, place=place: heard.append((place, e.number)) or True))
        for place, task in enumerate(tasks)
    ]
    together = dict(run_trials(asked, seen))
    assert all(same(together[place], record) for place, record in enumerate(alone))
    assert heard.count((2, 4)) == 0, "what was trained is not trained again"


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "another's"])
def test_a_damaged_checkpoint_is_deleted_and_training_starts_anew(damage, task, seen, tmp_path):
    whole = run_trial(replace(task, checkpoint=task.checkpoint + "other"), seen, outside())
    run_trial(to(task, 4), seen, outside())
    path = tmp_path / "state.safetensors"
    content = bytearray(path.read_bytes())
    if damage == "another's":
        run_trial(replace(to(task, 4), trial=Trial(COMPLEX, 4, 8), checkpoint=str(path)), seen, outside())
    else:
        content[-100] ^= 1
        path.write_bytes({"cut": content[:-50], "flip": content, "empty": b""}[damage])
    notes, trained = [], []
    ears = outside(heard=lambda e: trained.append(e.number) or True, note=notes.append)
    assert same(run_trial(task, seen, ears), whole)
    assert trained[0] == 1
    assert "deleted" in notes[0]


def test_a_checkpoint_that_cannot_be_written_costs_nothing_but_a_note(task, seen):
    whole = run_trial(replace(task, keep=False), seen, outside())
    notes = []
    record = run_trial(replace(task, checkpoint="/dev/null/state"), seen, outside(note=notes.append))
    assert same(record, whole)
    assert "no checkpoint" in notes[0]


def test_divergence_is_a_failure_with_its_reason_or_after_a_validation_the_best_before_it(task, seen):
    wild = replace(SETTINGS, optimiser="sgd", learning_rate=1e38, entity_weight=0.0, relation_weight=0.0)
    notes = []
    record = run_trial(replace(task, settings=wild), seen, outside(note=notes.append))
    assert record.failed
    assert record.valid_mrr == 0.0
    assert "diverged in epoch" in record.failure
    assert notes == [record.failure]
    late = replace(wild, learning_rate=30.0, validate_every=1, entity_weight=0.05)
    record = run_trial(replace(task, settings=late, checkpoint=task.checkpoint + "late"), seen, outside())
    assert 0 < record.epochs < 20
    assert not record.failed
    assert record.valid_mrr == max(mrr for _, mrr in record.curve)


def test_a_trial_whose_weights_are_not_finite_has_diverged_though_its_loss_is(task, seen):
    training = begun(0, task, outside(), seen)
    before, epoch = training.state, Epoch(1, 0.5, 0.0)
    spoilt = replace(before, entities=torch.full_like(before.entities, torch.nan), curve=(epoch,))
    assert not training.learn(spoilt, seen)
    assert training.state is before
    assert training.learn(replace(before, curve=(epoch,)), seen)


def test_tasks_and_records_survive_json(task, seen):
    assert task_from_json(task_as_json(task)) == task
    record = run_trial(task, seen, outside())
    assert record_from_json(record_as_json(record)) == record
