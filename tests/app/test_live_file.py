"""What a search trains at the moment can be read from another process, and is never in its way."""

import json
from pathlib import Path

import pytest

from autosf.algebra.zoo import named
from autosf.app.final_model import final_model
from autosf.app.live_file import NAME, LiveFile, both, running_trials
from autosf.app.request import Request
from autosf.app.run_results import outcome_of
from autosf.app.searching import begun, served
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.graph.synthetic import patterned_graph
from autosf.runs.ledger import held
from autosf.runs.run import Run
from autosf.runs.workers import Progress
from autosf.search.record import Record, Trial

SIMPLE, COMPLEX = (Trial(named(name).structure, 10, 0) for name in ("simple", "complex"))


def run_in(folder: Path) -> Run:
    return Run(folder, "", None)


def test_running_trials_keep_their_last_validation_until_they_are_finished(tmp_path):
    with LiveFile(run_in(tmp_path), write_seconds=0.0) as live:
        live.progress(Progress(1, SIMPLE, 4, 1.0, 0.25))
        live.progress(Progress(0, COMPLEX, 1, 1.0, None))
        live.progress(Progress(1, SIMPLE, 5, 0.9, None))
        first, second = running_trials(run_in(tmp_path))
        assert (first.structure, first.epoch, first.valid_mrr) == (COMPLEX.structure, 1, None)
        assert (second.structure, second.epoch, second.epochs, second.valid_mrr) == (
            SIMPLE.structure,
            5,
            10,
            0.25,
        )
        live.finished(Record(SIMPLE, 0.3, 10))
        assert [row.slot for row in running_trials(run_in(tmp_path))] == [0]
    assert list(tmp_path.iterdir()) == [], "what has ended leaves no file behind"


def test_the_file_is_written_once_in_a_while(tmp_path):
    with LiveFile(run_in(tmp_path), write_seconds=1000.0) as live:
        for epoch in (1, 2, 3):
            live.progress(Progress(0, SIMPLE, epoch, 1.0, None))
        assert running_trials(run_in(tmp_path))[0].epoch == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"running": [{}]}', '{"running": 3}', '{"running": [{"slot": 1}]}']
)
def test_a_damaged_file_shows_nothing(tmp_path, text):
    (tmp_path / NAME).write_text(text)
    assert running_trials(run_in(tmp_path)) == ()


def test_a_disk_without_room_costs_the_view_and_not_the_search(tmp_path):
    with LiveFile(run_in(tmp_path / "gone")) as live:
        live.progress(Progress(0, SIMPLE, 1, 1.0, None))
    assert running_trials(run_in(tmp_path / "gone")) == ()


def test_a_search_shows_its_trials_and_then_its_winner(tmp_path):
    graph = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1)
    settings = TrainingSettings(epochs=4, dimension=8, learning_rate=0.3)
    run = begun(graph, Request("", settings, strategy="random", trials=2), tmp_path / "run")
    seen = []
    served(run, workers=1, progress=lambda _: seen.append(running_trials(run)))
    assert {row.is_winner for rows in seen for row in rows} == {False}
    assert seen[0][0].epochs == 4
    seen.clear()
    final_model(run, graph, "cpu", lambda _: seen.append(running_trials(run)))
    (winner,) = seen[0]
    assert (winner.is_winner, winner.structure) == (True, outcome_of(run).best.structure)
    assert not (run.folder / NAME).exists()


def test_who_is_refused_leaves_the_file_of_the_one_who_runs(tmp_path):
    graph = patterned_graph(symmetric=1, entities=24, triples=40, valid=0.1)
    settings = TrainingSettings(epochs=4, dimension=8)
    run = begun(graph, Request("", settings, strategy="random", trials=2), tmp_path / "run")
    (run.folder / NAME).write_text(json.dumps({"running": []}))
    with held(run.lock), pytest.raises(UserError, match="a search is running here already"):
        served(run, workers=1)
    assert (run.folder / NAME).exists()


def test_two_ears_hear_the_same():
    heard = []
    both(heard.append, lambda told: heard.append(told * 2))(3)
    assert heard == [3, 6]
