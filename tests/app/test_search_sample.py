"""`autosf search --sample`: the search sees a part of the graph, the winner is trained on all of it."""

import json
from dataclasses import replace

import pytest

import autosf
from answering import answered
from autosf.algebra.structure import from_rows
from autosf.algebra.zoo import named
from autosf.app import final_model
from autosf.app.cli import run
from autosf.app.report.content import content_of
from autosf.app.run_results import Best, contestants, outcome_of
from autosf.app.search_sample import for_all, searched_part, told_sample
from autosf.app.searching import asked
from autosf.app.training import Diverged
from autosf.app.web.watching import Watch, leaderboard_of
from autosf.embedding.presets import LARGE
from autosf.embedding.settings import TrainingSettings
from autosf.graph.synthetic_large import LargeGraph, write_large_graph
from autosf.runs.playoff import (
    Played,
    Rules,
    contestant_folder,
    figures_as_text,
    in_doubt,
    kept_figures,
    playoff_file,
    to_play,
)
from autosf.runs.run import Run, open_run

SMALL = ["--strategy", "paper", "--trials", "2", "--epochs", "2", "--dimension", "8", "--workers", "1"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sample") / "large"
    write_large_graph(LargeGraph(400, 4, 2400, valid=100, test=100), folder)
    return folder


@pytest.mark.slow
def test_the_winner_of_a_sample_is_trained_on_the_whole(graph, tmp_path, capfd):
    code, result, said = answered(capfd, "search", graph, "--sample", 150, "--out", tmp_path / "run", *SMALL)
    assert code == 0
    assert result["sample"]["entities"] == 150
    assert result["sample"]["whole"]["entities"] == 400
    assert f"searching on {told_sample(result['sample'])}" in said
    model = autosf.load(tmp_path / "run")
    assert len(model.trained.entities) == 400
    assert len(model.graph.test) == 100
    assert model.facts["search"]["sample"] == result["sample"]
    code, again, _ = answered(capfd, "resume", tmp_path / "run")
    assert (code, again["best"]) == (0, result["best"])
    assert run(["leaderboard", str(tmp_path / "run")]) == 0
    assert told_sample(result["sample"]) in capfd.readouterr().out.replace("\n", " ")


@pytest.mark.slow
def test_a_sampled_search_goes_on_with_its_own_graph_only(graph, tmp_path, capfd):
    (tmp_path / "copy").mkdir()
    for path in graph.iterdir():
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    out = tmp_path / "run"
    assert answered(capfd, "search", tmp_path / "copy", "--sample", 150, "--out", out, *SMALL)[0] == 0
    for path in (out / "model").iterdir():
        path.unlink()
    (out / "model").rmdir()
    (tmp_path / "copy" / "train.tsv").write_bytes(b"a\tr\tb\n" + (graph / "train.tsv").read_bytes())
    code, _, said = answered(capfd, "resume", out)
    assert code == 2
    assert "the run began with another graph" in said
    (tmp_path / "copy" / "train.tsv").write_bytes((graph / "train.tsv").read_bytes())
    assert answered(capfd, "resume", out)[0] == 0
    assert len(autosf.load(out).trained.entities) == 400


def test_a_sample_as_large_as_the_graph_is_the_graph(graph):
    whole, said = autosf.read_graph(graph), []
    for wish in (None, 400, 500):
        assert searched_part(whole, wish, "walk", 0, said.append) == (whole, None)
    assert not said


def test_the_exact_loss_gives_way_on_a_large_graph():
    exact = TrainingSettings(dimension=32, learning_rate=0.3)
    assert for_all(exact, LARGE) == exact
    assert for_all(exact, LARGE + 1).loss == "sampled-softmax"
    assert for_all(exact, LARGE + 1).learning_rate == 0.3
    hinge = TrainingSettings(loss="hinge")
    assert for_all(hinge, LARGE + 1) == hinge


@pytest.mark.slow
def test_a_report_compares_on_the_whole_graph(graph, tmp_path, capfd):
    out = tmp_path / "run"
    assert answered(capfd, "search", graph, "--sample", 150, "--out", out, *SMALL)[0] == 0
    code, result, _ = answered(capfd, "report", out, "--human", "--test")
    assert code == 0
    assert result["missing"] == [line for line in result["missing"] if "is gone" not in line]
    told = content_of(open_run(out), test=True)
    assert len(told.comparison.models) == 2
    model = autosf.load(out)
    assert told.comparison.models[0].mrr == pytest.approx(model.facts["metrics"]["valid"]["mrr"])
    assert len(autosf.load(out / "human").trained.entities) == 400


@pytest.mark.slow
def test_the_best_on_the_sample_meet_on_the_whole_and_the_best_there_wins(graph, tmp_path, capfd):
    out = tmp_path / "run"
    code, result, said = answered(
        capfd, "search", graph, "--sample", 150, "--playoff", 3, "--out", out, *SMALL, "--trials", 4
    )
    assert code == 0
    figures = [row["valid_mrr"] for row in result["playoff"]]
    assert len(figures) == 3
    assert figures == sorted(figures, reverse=True)
    assert said.count("play-off, trained in full") == 3
    assert any(row["names"] for row in result["playoff"]), "a human-designed one is among them"
    assert result["best"]["structure"] == result["playoff"][0]["structure"]
    model = autosf.load(out)
    assert model.facts["metrics"]["valid"]["mrr"] == figures[0]
    assert [list(row) for row in model.structure.rows] == result["best"]["structure"]
    assert not (out / "playoff").exists()
    human = next(row["valid_mrr"] for row in result["playoff"][1:] if row["names"])
    assert autosf.load(out / "human").facts["metrics"]["valid"]["mrr"] == human
    assert f"trained in full: {figures[0]:.4f}" in " ".join(content_of(open_run(out)).headline)
    assert answered(capfd, "resume", out)[1] == result


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["training", "figures", "moving", "renaming"])
def test_a_play_off_that_was_cut_goes_on_to_the_same_winner(graph, tmp_path, capfd, monkeypatch, moment):
    wish = ["search", graph, "--sample", 150, *SMALL, "--trials", 4]
    _, result, _ = answered(capfd, *wish, "--out", tmp_path / "whole")
    where = {
        "training": "manifest_of",
        "figures": "write_whole",
        "moving": "keep_champion",
        "renaming": "human_folder",
    }
    with monkeypatch.context() as patch:
        patch.setattr(final_model, where[moment], killed)
        with pytest.raises(Killed):
            run([*map(str, wish), "--out", str(tmp_path / "cut")])
    assert not (tmp_path / "cut" / "model").exists()
    capfd.readouterr()
    code, again, said = answered(capfd, "resume", tmp_path / "cut")
    assert code == 0
    assert (again["playoff"], again["best"]) == (result["playoff"], result["best"])
    assert ("play-off" in said) == (moment in ("training", "figures"))
    assert not (tmp_path / "cut" / "playoff").exists()


@pytest.mark.slow
def test_a_cut_between_the_two_models_that_stay_is_made_good(graph, tmp_path, capfd, monkeypatch):
    out, discarded = tmp_path / "run", final_model.discard

    def cut(folder):
        if folder.name == "human":
            raise Killed
        discarded(folder)

    with monkeypatch.context() as patch:
        patch.setattr(final_model, "discard", cut)
        with pytest.raises(Killed):
            run([*map(str, ["search", graph, "--sample", 150, *SMALL, "--trials", 4]), "--out", str(out)])
    assert (out / "model").exists()
    assert answered(capfd, "resume", out)[0] == 0
    assert (out / "human").exists()
    assert not (out / "playoff").exists()


@pytest.mark.slow
def test_a_contestant_that_diverges_has_lost(graph, tmp_path, capfd, monkeypatch):
    trained, tried = final_model.train_in_run, []

    def diverging(run, job, report):
        tried.append(job.structure)
        if len(tried) == 1:
            raise Diverged("training diverged in its first epoch")
        trained(run, job, report)

    monkeypatch.setattr(final_model, "train_in_run", diverging)
    out = tmp_path / "run"
    code, result, said = answered(
        capfd, "search", graph, "--sample", 150, *SMALL, "--trials", 4, "--out", out
    )
    assert code == 0
    assert "diverged" in said
    assert result["playoff"][-1]["valid_mrr"] == 0
    assert from_rows(result["playoff"][-1]["structure"]) == tried[0]
    assert "diverged: " in " ".join(content_of(open_run(out)).headline)


@pytest.mark.slow
def test_what_was_played_is_not_trained_again_and_time_is_left_for_one_at_least(graph, tmp_path, capfd):
    out = tmp_path / "run"
    wish = ["search", graph, "--sample", 150, *SMALL, "--trials", 4, "--budget", "10m", "--out", out]
    assert answered(capfd, *wish)[0] == 0
    opened, graph = open_run(out), autosf.read_graph(graph)
    figures = kept_figures(opened)
    slowed = [replace(one, seconds=400.0) for one in list(figures.values())[:1]]
    playoff_file(opened).write_text(figures_as_text(slowed))
    (out / "model").rename(out / "away")
    said = []
    final_model.final_model(opened, graph, "cpu", say=said.append)
    again = outcome_of(opened)
    assert [one.valid_mrr for one in again.playoff] == [slowed[0].valid_mrr, None, None, None]
    assert again.best.structure == slowed[0].structure
    assert len([line for line in said if "no time is left" in line]) == 3
    longer = asked(opened, again, {"budget": 10_000.0})
    final_model.final_model(longer, graph, "cpu", say=said.append)
    assert not [line for line in said if "play-off on the whole" in line], "the play-off was decided"


@pytest.mark.slow
def test_without_the_whole_graph_its_models_are_not_replaced_by_the_samples(graph, tmp_path, capfd):
    (tmp_path / "copy").mkdir()
    for path in graph.iterdir():
        (tmp_path / "copy" / path.name).write_bytes(path.read_bytes())
    out, wish = tmp_path / "run", ["--sample", 150, *SMALL, "--trials", 4]
    result = answered(capfd, "search", tmp_path / "copy", *wish, "--out", out)[1]
    (out / "playoff").mkdir()
    (out / "model").rename(contestant_folder(open_run(out), from_rows(result["best"]["structure"])))
    for path in (tmp_path / "copy").iterdir():
        path.unlink()
    assert answered(capfd, "resume", out)[1]["best"] == result["best"]
    assert len(autosf.load(out).trained.entities) == 400
    (out / "playoff.json").unlink()
    (out / "model").rename(out / "away")
    code, _, said = answered(capfd, "resume", out)
    assert code == 0
    assert "the whole graph is gone" in said
    assert len(autosf.load(out).trained.entities) == 150
    assert answered(capfd, "resume", out)[2] == "", "nothing is left to do"


@pytest.mark.slow
def test_the_live_view_tells_of_a_play_off(graph, tmp_path, capfd):
    out = tmp_path / "run"
    wish = ["search", graph, "--sample", 150, *SMALL, "--playoff", 2, "--trials", 4, "--out", out]
    _, result, _ = answered(capfd, *wish)
    opened, states = open_run(out), []
    playoff_file(opened).unlink()
    (out / "model").rename(out / "away")
    before = Watch(opened).sight()
    final_model.final_model(
        opened,
        autosf.read_graph(graph),
        "cpu",
        contestant=lambda _: lambda _: states.append(Watch(opened).sight().state),
    )
    assert states == ["playoff"] * 4
    after = Watch(opened).sight()
    told = leaderboard_of(after, 3)["playoff"]
    assert [row["valid_mrr"] for row in told] == [row["valid_mrr"] for row in result["playoff"]]
    assert after.version != before.version


def test_a_damaged_play_off_is_none(tmp_path):
    for text in ("", "[{}]", '[{"structure": [[1]], "valid_mrr": 0.5, "seconds": 1}]', "{"):
        playoff_file(Run(tmp_path, "", None)).write_text(text)
        assert kept_figures(Run(tmp_path, "", None)) == {}


class Killed(BaseException):
    pass


def killed(*_):
    raise Killed


def test_a_play_off_is_between_the_first_and_has_a_human_designed_one():
    names = ("autosf-wn18", "autosf-fb15k", "autosf-yago3-10", "complex", "simple")
    ranking = [Best(named(name).structure, 0.9 - place / 10, None, 1) for place, name in enumerate(names)]
    meeting = {count: [one.names[0] for one in contestants(ranking, count)] for count in range(1, 6)}
    assert meeting[1] == []
    assert meeting[2] == ["autosf-wn18", "complex"]
    assert meeting[3] == ["autosf-wn18", "autosf-fb15k", "complex"]
    assert meeting[5] == list(names)
    assert contestants(ranking[:1], 3) == []
    assert len(contestants(ranking[:3], 9)) == 3


def test_an_older_play_off_has_one_figure_each(tmp_path):
    rows = [
        {"structure": [[1, 0], [0, 2]], "valid_mrr": 0.5, "seconds": 1},
        {"structure": [[0, 1], [2, 0]], "valid_mrr": None, "seconds": 0},
    ]
    playoff_file(Run(tmp_path, "", None)).write_text(json.dumps(rows))
    assert [one.values for one in kept_figures(Run(tmp_path, "", None)).values()] == [(0.5,), ()]


A, B, C = (named(name).structure for name in ("complex", "simple", "distmult"))


def figures(**values):
    structures = {"a": A, "b": B, "c": C}
    return {structures[name]: Played(structures[name], of_one) for name, of_one in values.items()}


def test_first_everybody_is_trained_once():
    rules = Rules(seeds=3, noise=0.01)
    assert to_play({}, [A, B, C], rules) == [A, B, C]
    assert to_play(figures(b=(0.4,)), [A, B, C], rules) == [A, C]


def test_then_those_who_may_be_the_best_get_further_seeds():
    rules = Rules(seeds=3, noise=0.01)
    assert to_play(figures(a=(0.40,), b=(0.39,), c=(0.30,)), [A, B, C], rules) == [A, B]
    assert to_play(figures(a=(0.40, 0.39), b=(0.39,), c=(0.30,)), [A, B, C], rules) == [B], "it had its turn"
    assert to_play(figures(a=(0.40, 0.40), b=(0.39, 0.37), c=(0.30,)), [A, B, C], rules) == [], "decided"
    assert to_play(figures(a=(0.40, 0.38), b=(0.39, 0.39), c=(0.30,)), [A, B, C], rules) == [A, B]
    three = figures(a=(0.40, 0.38, 0.39), b=(0.39, 0.39, 0.39), c=(0.30,))
    assert to_play(three, [A, B, C], rules) == [], "no more than it may have"
    assert to_play(figures(a=(0.4,), b=(0.4,), c=(0.4,)), [A, B, C], Rules()) == []


def test_seeds_that_agree_on_the_whole_graph_leave_less_doubt_than_the_sample_did():
    rules = Rules(seeds=3, noise=0.01)
    agreeing = figures(a=(0.401, 0.400), b=(0.391, 0.390), c=(0.30,))
    assert to_play(agreeing, [A, B, C], rules) == []
    apart = figures(a=(0.410, 0.390), b=(0.400, 0.380), c=(0.30,))
    assert to_play(apart, [A, B, C], rules) == [A, B]


def test_who_has_no_time_or_diverges_has_no_turn():
    rules = Rules(seeds=3, noise=0.01)
    cut = figures(a=(0.40,), b=(0.39,))
    cut[A] = replace(cut[A], is_cut=True)
    assert to_play(cut, [A, B], rules) == [B]
    assert to_play(figures(a=(0.40,), b=(0.0,)), [A, B], rules) == []
    assert in_doubt([Played(A), Played(B)], 0.01) == []
    assert Played(A, (0.4, 0.0)).valid_mrr == 0.0, "a seed that diverges is no small matter"


@pytest.mark.slow
def test_a_play_off_in_doubt_takes_further_seeds_and_goes_on_after_a_cut(graph, tmp_path, capfd, monkeypatch):
    few = ["--trials", 5, "--epochs", 2, "--dimension", 8, "--workers", 1, "--no-tune", "--fresh-seeds", 2]
    wish = ["search", graph, "--sample", 150, *few, "--playoff", 3, "--playoff-seeds", 2]
    code, result, said = answered(capfd, *wish, "--out", tmp_path / "whole")
    assert code == 0
    assert any(row["seeds"] == 2 for row in result["playoff"]), "two epochs tell nobody apart"
    assert "seed 2)" in said
    first = result["playoff"][0]
    assert result["best"]["structure"] == first["structure"]
    assert [list(row) for row in autosf.load(tmp_path / "whole").structure.rows] == first["structure"]
    assert not (tmp_path / "whole" / "playoff").exists()
    written, kept = final_model.write_whole, []

    def cut_late(path, text):
        kept.append(path)
        if len(kept) == 4:
            raise Killed
        written(path, text)

    with monkeypatch.context() as patch:
        patch.setattr(final_model, "write_whole", cut_late)
        with pytest.raises(Killed):
            run([*map(str, wish), "--out", str(tmp_path / "cut")])
    capfd.readouterr()
    assert answered(capfd, "resume", tmp_path / "cut")[1]["playoff"] == result["playoff"]
