"""`autosf search --draw`: trials see some entities in a step, the best are then trained with all."""

import pytest

import autosf
from answering import answered
from autosf.app.cli import run
from autosf.app.run_results import outcome_of
from autosf.app.search_sample import default_draw, times_a_trial
from autosf.embedding.presets import DRAW, MANY
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.graph.synthetic_large import LargeGraph, write_large_graph
from autosf.runs.run import open_run

SMALL = ["--strategy", "paper", "--trials", "4", "--epochs", "2", "--dimension", "16", "--workers", "1"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draw") / "made-up"
    write_large_graph(LargeGraph(400, 4, 2400, valid=100, test=100), folder)
    return folder


@pytest.mark.slow
def test_trials_draw_and_the_best_are_trained_with_all(graph, tmp_path, capfd):
    out = tmp_path / "run"
    code, result, said = answered(
        capfd, "search", graph, "--draw", 50, "--playoff", 3, "--set", "batch_size=64", "--out", out, *SMALL
    )
    assert code == 0
    assert "trials see 50 entities drawn for each step out of 400" in said
    assert result["draw"] == {"entities": 50, "of": 400}
    assert (result["settings"]["loss"], result["settings"]["negatives"]) == ("sampled-softmax", 50)
    assert len(result["playoff"]) == 3
    model = autosf.load(out)
    assert model.facts["settings"]["loss"] == "multiclass"
    assert [list(row) for row in model.structure.rows] == result["playoff"][0]["structure"]
    assert times_a_trial(open_run(out)) == 1, "on a graph this small"
    assert answered(capfd, "resume", out)[1] == result
    assert run(["leaderboard", str(out)]) == 0
    assert "50 entities drawn for each step" in capfd.readouterr().out.replace("\n", " ")


@pytest.mark.slow
def test_a_play_off_needs_no_more_than_the_run_holds(tmp_path, capfd):
    """The files of the graph are gone when it comes to the play-off; all but its test triples is in the run."""
    source, out = tmp_path / "gone", tmp_path / "run"
    write_large_graph(LargeGraph(300, 4, 1500, valid=100, test=100), source)
    found = answered(capfd, "search", source, "--draw", 40, "--playoff", 2, "--out", out, *SMALL)[1]
    for path in source.iterdir():
        path.unlink()
    (out / "playoff.json").unlink()
    (out / "model").rename(out / "away")
    assert not outcome_of(open_run(out)).is_played_off
    code, result, said = answered(capfd, "resume", out)
    assert code == 0
    assert "no play-off" not in said
    assert [row["valid_mrr"] for row in result["playoff"]] == [row["valid_mrr"] for row in found["playoff"]]
    assert answered(capfd, "resume", out)[2] == "", "nothing is left to do"


@pytest.mark.slow
def test_zero_and_more_than_there_are_train_as_ever(graph, tmp_path):
    for wish in (0, 400, 5000):
        found = autosf.search(graph, tmp_path / str(wish), draw=wish, strategy="paper", trials=1, epochs=1)
        facts = open_run(found.path).plan
        assert (facts.settings.loss, facts.search["draw"]) == ("multiclass", None)


@pytest.mark.slow
def test_where_the_preset_draws_trials_are_whole_trainings_and_a_wish_brings_the_play_off(tmp_path):
    source = tmp_path / "WN18RR"
    write_large_graph(LargeGraph(200, 4, 800, valid=50, test=50), source)

    def searched(**wish):
        small = {"strategy": "paper", "trials": 1, "epochs": 1, "dimension": 8, **wish}
        return open_run(autosf.search(source, tmp_path / f"run {wish}", **small).path).plan

    plain, exact = searched(), searched(draw=0)
    assert (plain.settings.loss, plain.search["draw"]) == ("sampled-softmax", None)
    assert (exact.settings.loss, exact.search["draw"]) == ("multiclass", None)
    assert searched(draw=50, playoff=1).search["draw"] == {"entities": 50, "of": 200}


def test_large_graphs_draw_by_themselves():
    exact = TrainingSettings()
    assert default_draw(MANY, exact) == 0
    assert default_draw(MANY + 1, exact) == DRAW
    assert default_draw(MANY + 1, TrainingSettings(loss="hinge")) == 0


def test_what_draws_already_is_told_how_to_draw_fewer(graph, tmp_path):
    with pytest.raises(
        UserError, match=r"draw: expected the loss multiclass, found sampled-softmax, whose setting neg"
    ):
        autosf.search(graph, tmp_path / "run", draw=10, loss="sampled-softmax")
    assert not (tmp_path / "run").exists()
