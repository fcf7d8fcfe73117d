"""`autosf search`, `resume` and `leaderboard`: their keys, their folder, and mistakes in one line."""

import io
import json
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import autosf
from answering import answered
from autosf.algebra.structure import from_rows
from autosf.app.cli import run
from autosf.app.final_model import final_model
from autosf.app.request import Request, requested
from autosf.app.run_results import outcome_of
from autosf.app.search_progress import SearchLines
from autosf.app.search_tables import chances, in_disguise, leaderboard_for_people, one_seed_why
from autosf.app.searching import asked, begun, gone_without_cluster, often_validated, served
from autosf.app.tuned_first import keep_request, tuning_folder
from autosf.embedding.model_folder import load_model
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.graph.reading import read_graph
from autosf.graph.synthetic import patterned_graph
from autosf.graph.writing import write_graph
from autosf.runs.cluster import Site
from autosf.runs.ledger import opened_ledger
from autosf.runs.run import open_run
from autosf.runs.shared_graph import shared
from autosf.runs.workers import Progress
from autosf.search.record import OUT_OF_TIME, Record, Trial

SMALL = ["--epochs", "4", "--dimension", "8", "--set", "learning_rate=0.3"]
SETTINGS = TrainingSettings(epochs=4, dimension=8, learning_rate=0.3)


def written_graph(folder: Path) -> Path:
    made = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1, test=0.1)
    return write_graph(made, folder)


@pytest.fixture
def graph(tmp_path):
    return written_graph(tmp_path / "rules")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A finished search: its graph, its run folder and what the command said."""
    place = tmp_path_factory.mktemp("searched")
    graph, folder = written_graph(place / "rules"), place / "run"
    command = [sys.executable, "-m", "autosf", "search", str(graph), "--out", str(folder), "--trials", "14"]
    done = subprocess.run([*command, *SMALL, "--workers", "1", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr  # progress lines, if it took long
    return graph, folder, json.loads(done.stdout)


def test_the_keys_programs_rely_on(searched):
    _, folder, result = searched
    assert {"best", "leaderboard", "trials", "seconds", "ending", "run", "model", "strategy"} <= set(result)
    assert (result["state"], bool(result["ending"])) == ("ended", True)
    assert (result["strategy"], result["settings"]["dimension"]) == ("free", 8)
    assert result["settings"]["patience"] == 0
    assert (result["run"], result["model"]) == (str(folder), str(folder / "model"))
    for row in result["leaderboard"]:
        assert {"structure", "valid_mrr", "spread", "seeds", "epochs"} <= set(row)
    assert len(result["leaderboard"]) == 14
    assert result["trials"] >= 14 + 3 * 3, "promotions, repeats and finals are trials too"
    known = [row["names"] for row in result["leaderboard"] if row["names"]]
    assert ["complex", "hole"] in known


def test_the_winner_comes_from_the_finals_with_its_probabilities(searched):
    best = searched[2]["best"]
    assert best["seeds"] == 3
    assert best["valid_mrr"] >= best["runner_up"]["valid_mrr"]
    assert 0.5 <= best["beats_runner_up"] <= 1
    assert best["human"]["names"][0] in ("distmult", "complex", "analogy", "simple")
    assert best["beats_human"] is None or 0.5 <= best["beats_human"] <= 1


def test_finalists_have_as_many_fresh_seeds_as_asked_for(graph, tmp_path, capfd):
    options = ["--trials", "6", "--fresh-seeds", "4", "--workers", "1", *SMALL]
    code, result, _ = answered(capfd, "search", graph, "--out", tmp_path / "run", *options)
    assert (code, result["best"]["seeds"]) == (0, 4)


def test_leaderboard_and_resume_say_what_search_said(searched, capfd):
    _, folder, result = searched
    for command in ("leaderboard", "resume"):
        assert answered(capfd, command, folder)[:2] == (0, result)
    _, short, _ = answered(capfd, "leaderboard", folder, "--top", 3)
    assert short["leaderboard"] == result["leaderboard"][:3]


def test_people_read_the_winner_and_the_leaderboard(searched, capfd):
    _, folder, result = searched
    assert run(["resume", str(folder)]) == 0
    out, _ = capfd.readouterr()
    assert f"validation MRR {result['best']['valid_mrr']:.4f} ±" in out
    assert "better than the runner-up with probability" in out
    assert f"{result['trials']} trials in 0:0" in out
    assert f"autosf predict {folder} --head" in out
    assert "the best human-designed one" in out


def test_a_run_is_asked_like_a_model(searched, tmp_path, capfd):
    graph, folder, result = searched
    label = read_graph(graph).entities.label(0)
    code, told, _ = answered(capfd, "predict", folder, "--near", label, "--top", 2)
    assert (code, len(told["predictions"])) == (0, 2)
    assert answered(capfd, "evaluate", folder)[1]["count"] > 0
    assert answered(capfd, "export", folder, "--to", "npz", tmp_path / "v.npz")[0] == 0
    model = load_model(folder / "model")
    assert model.model.structure == from_rows(result["best"]["structure"])
    assert model.facts["search"]["best"]["beats_runner_up"] == result["best"]["beats_runner_up"]


def test_train_takes_the_best_structure_of_a_run(searched, tmp_path, capfd, monkeypatch):
    graph, folder, result = searched
    monkeypatch.chdir(tmp_path)
    code, trained, _ = answered(
        capfd, "train", graph, "--structure", folder, "--dimension", 16, "--epochs", 2
    )
    assert code == 0
    assert trained["structure"] == result["best"]["structure"]
    assert (trained["settings"]["dimension"], trained["model"]) == (16, "rules-run")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strategy", "papr"], 'unknown strategy "papr"; did you mean "paper"'),
        (["--strategy", "gen-approx"], "`autosf compare GRAPH --models gen-approx,RUN`"),
        (["--strategy", "paper", "--blocks", "7"], "expected an even number, found 7"),
        (["--seed", str(10**15)], "search setting seed: expected a number from 0 to 922337203685476"),
        (["--blocks", "3"], "search setting blocks: expected a number from 4 to 16, found 3"),
        (["--budget", "soon"], 'expected a time such as 90s, 30m or 1h30m, found "soon"'),
        (["--set", "epoch=3"], 'unknown setting "epoch"; did you mean "epochs"?'),
        (["--set", "validate_every=0"], "setting validate_every: a search needs validations"),
        (["--settings", "nowhere"], "nowhere"),
        (["--dimension", "10"], "expected a multiple of the structure's 4 parts, found 10"),
        (["--final-dimension", "30"], "expected a multiple of the structure's 4 parts, found 30"),
        (["--epochs", "0"], "0 is not in the range x>=1"),
        (["--seed", "-1"], "-1 is not in the range x>=0"),
        (["--threads", "0"], "0 is not in the range x>=1"),
        (["--trials", "0"], "--trials"),
        (["--tune-share", "2", "--no-tune"], "--tune-share: expected a number between 0 and 1, found 2"),
        (["--tune-share", "1.5"], "--tune-share: expected a number between 0 and 1, found 1.5"),
        (["--fresh-seeds", "3", "--strategy", "paper"], "works with --strategy free only, found paper"),
        (["--rounds", "3"], "random, tpe only, found free"),
        (["--rounds", "3", "--strategy", "tpe", "--trials", "9"], "without --trials only, found --trials 9"),
        (
            ["--parents", "3", "--strategy", "random"],
            "--parents: works with --strategy free, paper, greedy, ",
        ),
        (["--candidates", "9", "--strategy", "tpe"], "--candidates: works with --strategy free, paper, "),
        (["--tune-share", "0.3"], "--tune-share: works with --budget only, found none"),
        (
            ["--tune-share", "0.3", "--budget", "1m", "--no-tune"],
            "--tune-share: works with settings to be tuned",
        ),
        (["--tune-share", "0.3", "--budget", "1m", "--epochs", "4"], "found settings, a preset or --no-tune"),
        (["--sample-by", "walk"], "--sample-by: works with --sample only"),
        (["--playoff", "4"], "--playoff: works with --sample or --draw only, found neither"),
        (["--playoff-seeds", "2", "--draw", "0"], "--playoff-seeds: works with --sample or --draw only"),
    ],
)
def test_mistakes_are_told_in_one_line_and_leave_nothing(graph, tmp_path, capfd, options, message):
    code, _, err = answered(capfd, "search", graph, *options, "--out", tmp_path / "run")
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["rules"]


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"budget": -1}, 'budget: expected a text such as "30m", or seconds above 0, found "-1"'),
        ({"budget": float("nan")}, "or seconds above 0"),
        ({"budget": True}, "or seconds above 0"),
        ({"workers": 0}, "workers: expected a number from 1, found 0"),
        ({"workers": "a"}, 'workers: expected a whole number, found "a" (str)'),
        ({"trials": 2.5}, 'trials: expected a whole number, found "2.5" (float)'),
        ({"trials": "5"}, 'trials: expected a whole number, found "5" (str)'),
        ({"trials": 0}, "trials: expected a number from 1, found 0"),
        ({"seed": "a"}, 'seed: expected a whole number, found "a" (str)'),
        ({"seed": None}, "seed: expected a whole number"),
        ({"sample": "a"}, 'sample: expected a whole number, found "a" (str)'),
        ({"blocks": True}, 'blocks: expected a whole number, found "True" (bool)'),
        ({"out": 3}, 'out: expected a path, found "3" (int)'),
        ({"strategy": 3}, 'unknown strategy "3"'),
        ({"settings": 3}, "settings: expected a TOML file or the folder of a tuning, or a mapping"),
        ({"settings": {"epoch": 3}}, 'unknown setting "epoch"; did you mean "epochs"?'),
        ({"device": "tpu"}, "device: expected auto, cpu, cuda, mps"),
        ({"device": ["cpu"]}, "device: expected auto, cpu, cuda, mps"),
        ({"strategy": ["free"]}, 'unknown strategy "[\'free\']"; did you mean "free"?'),
        ({"sample": 20, "sample_by": ["walk"]}, 'sample: unknown method "[\'walk\']"; did you mean "walk"?'),
        ({"track": 5}, 'track: expected tensorboard:FOLDER or mlflow:ADDRESS, found "5"'),
        ({"track": [5]}, 'track: expected tensorboard:FOLDER or mlflow:ADDRESS, found "5"'),
        ({"track": None}, 'track: expected tensorboard:FOLDER or mlflow:ADDRESS, found "None"'),
        ({"cluster": 5}, 'cluster: expected an address as host:port, auto or local, found "5" (int)'),
        ({"cluster": "local", "cpus_per_trial": "x"}, 'a whole number, or a share below 1, found "x"'),
        ({"tune_share": 1.5}, "tune_share: expected a number between 0 and 1, found 1.5"),
        ({"tune_share": ".3"}, 'tune_share: expected a number between 0 and 1, found ".3" (str)'),
        ({"tune_share": None}, 'tune_share: expected a number between 0 and 1, found "None" (NoneType)'),
    ],
)
def test_mistakes_in_python_are_told_and_leave_nothing(graph, tmp_path, wish, message):
    with pytest.raises(UserError) as caught:
        autosf.search(graph, **({"out": tmp_path / "run", "epochs": 4} | wish))
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["rules"]


@pytest.mark.parametrize(
    "wish", [{"budget": 0}, {"workers": 0}, {"run": 3}, {"budget": "soon"}, {"cluster": 5}, {"device": []}]
)
def test_mistakes_of_going_on_in_python_are_told(tmp_path, wish):
    with pytest.raises(UserError, match="expected a"):
        autosf.resume(**({"run": tmp_path} | wish))


def test_a_graph_without_validation_triples_is_told_what_to_do(graph, tmp_path, capfd):
    (graph / "valid.tsv").unlink()
    code, _, err = answered(capfd, "search", graph, *SMALL, "--out", tmp_path / "run")
    assert (code, err.count("\n"), "`autosf data split --keep-test`" in err) == (2, 1, True)
    whole = read_graph(graph, make_valid=0)
    with pytest.raises(UserError, match="a search needs triples in valid, found none; `autosf data split`"):
        autosf.search(whole, tmp_path / "run", epochs=4)
    assert not (tmp_path / "run").exists()


def test_a_graph_too_small_to_be_split_is_told_to_bring_its_valid_triples(tmp_path, capfd):
    (tmp_path / "three.tsv").write_text("a\tr\tb\nc\ts\td\ne\tq\tf\n")
    code, _, err = answered(capfd, "search", tmp_path / "three.tsv", "--out", tmp_path / "run")
    assert code == 2
    assert "2 triples fewer than asked for" in err
    assert "found none; a graph of 3 triples is too small to take some" in err
    assert "give valid" in err


def test_a_folder_that_is_used_is_refused_with_what_goes_on(searched, tmp_path, capfd):
    graph, folder, _ = searched
    code, _, err = answered(capfd, "search", graph, *SMALL, "--out", folder)
    assert (code, err) == (2, f"autosf: {folder}: holds a run already; `autosf resume {folder}` goes on\n")
    for command in ("resume", "leaderboard"):
        code, _, err = answered(capfd, command, graph)
        assert (code, err) == (2, f"autosf: {graph}: not a run: it has no run.json\n")


def test_a_run_may_be_named_by_the_folder_one_is_in(searched, monkeypatch, capfd):
    _, folder, result = searched
    monkeypatch.chdir(folder)
    for name in (".", "", str(folder / "graph" / "..")):
        for command in ("resume", "leaderboard"):
            code, told, _ = answered(capfd, command, name)
            assert (code, told["leaderboard"]) == (0, result["leaderboard"])
        assert autosf.resume(name).path == folder
    assert answered(capfd, "report", ".", "--no-human", "--out", "../report.html")[0] == 0


@pytest.mark.parametrize("place", ["rules", "/"])
def test_the_folder_one_is_in_is_told_where_it_is_no_run(graph, monkeypatch, capfd, place):
    monkeypatch.chdir(graph.parent / place)
    for name in (".", "..", ""):
        for command in ("resume", "leaderboard", "report", "serve"):
            code, _, err = answered(capfd, command, name)
            assert (code, err.count("\n")) == (2, 1)
        with pytest.raises(UserError, match="not a run"):
            autosf.resume(name)


def test_the_tuning_is_beside_the_run_however_that_is_named(tmp_path, monkeypatch):
    (tmp_path / "run" / "graph").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "run")
    for name in (".", "graph/..", tmp_path / "run"):
        assert tuning_folder(Path(name)) == tmp_path / "run.tuning"
    assert tuning_folder(Path("graph")) == Path("graph.tuning")


def test_a_used_folder_is_refused_before_anybody_is_told_of_the_search(
    searched, tmp_path, monkeypatch, capfd
):
    graph, folder, _ = searched
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="holds a run already"):
        autosf.search(graph, folder, track="tensorboard:tb", epochs=4)
    (tmp_path / "rules-search").write_text("another's")
    code, _, err = answered(capfd, "search", graph, *SMALL, "--track", "tensorboard:tb")
    assert (code, "expected a new folder for the run, found a file" in err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["rules-search"]


def test_a_program_says_what_share_of_the_budget_tunes(graph, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(UserError, match="no trial was finished in time"):
        autosf.search(graph, folder, budget=1.0, tune_share=0.9999, trials=1, workers=1)
    assert open_run(folder).plan.search["tuning"]["seconds"] > 0.9


def test_the_papers_settings_can_be_chosen(graph, tmp_path, capfd):
    wish = ["--strategy", "paper", "--parents", "2", "--candidates", "9", "--chosen", "3", "--rounds", "1"]
    code, result, _ = answered(capfd, "search", graph, *SMALL, *wish, "--out", tmp_path / "run")
    asked = open_run(tmp_path / "run").plan.search
    assert [asked[name] for name in ("parents", "candidates", "chosen", "rounds")] == [2, 9, 3, 1]
    assert (code, result["trials"]) == (0, 5 + 3)


@pytest.mark.parametrize(
    ("human", "told"),
    [([[1, 2], [2, 1]], "ahead of"), ([[1, 0], [0, 2]], "the best human-designed one: no other was found")],
    ids=["another", "itself"],
)
def test_one_fresh_seed_each_tells_who_is_ahead_and_no_probability(human, told):
    row = {"names": [], "valid_mrr": 0.5, "spread": None, "seeds": 1}
    best = {**row, "structure": [[1, 0], [0, 2]], "beats_runner_up": None, "beats_human": None}
    (line,) = chances({**best, "human": {**row, "structure": human}})
    assert line.startswith(told)
    assert "probability" not in line


def small_run(graph: Path, folder: Path, **wish):
    request = Request(str(graph), SETTINGS, strategy="random", trials=3, **wish)
    return begun(read_graph(graph), request, folder)


def test_a_search_does_not_know_the_test_triples(graph, tmp_path):
    run = small_run(graph, tmp_path / "run")
    assert run.plan.hide_test is False
    known, whole = shared(run.graph_folder).known, read_graph(graph)
    assert len(known.tails.answers) == len(np.unique(np.concatenate([whole.train, whole.valid]), axis=0))


def test_the_usual_protocol_hides_the_test_answers_when_asked_to(graph, tmp_path):
    run = small_run(graph, tmp_path / "run", hide_test=True)
    known, whole = shared(run.graph_folder).known, read_graph(graph)
    every = np.concatenate([whole.train, whole.valid, whole.test])
    assert len(known.tails.answers) == len(np.unique(every, axis=0))


def test_a_run_without_a_model_says_how_to_get_one(graph, tmp_path, capfd):
    small_run(graph, tmp_path / "run")
    code, _, err = answered(capfd, "predict", tmp_path / "run", "--near", "x")
    assert (code, err.count("\n")) == (2, 1)
    assert "has not come to its model yet; `autosf resume" in err
    code, _, err = answered(capfd, "train", graph, "--structure", tmp_path / "run")
    assert (code, "no trial of the search is finished yet" in err) == (2, True)
    code, result, _ = answered(capfd, "leaderboard", tmp_path / "run")
    assert (code, result["state"], result["trials"], result["best"]) == (0, "stopped", 0, None)


def test_a_changed_graph_is_refused_and_a_lost_one_is_not_needed(graph, tmp_path, capfd):
    small_run(graph, tmp_path / "run")
    train = graph / "train.tsv"
    lines = train.read_text().splitlines(keepends=True)
    train.write_text("".join(lines[1:]))
    code, _, err = answered(capfd, "resume", tmp_path / "run")
    assert code == 2
    assert "the run began with another graph than rules is now" in err
    train.write_text("torn")
    code, _, err = answered(capfd, "resume", tmp_path / "run")
    assert (code, err.count("\n")) == (2, 1)
    assert "mend it, or move it away to go on without it" in err
    shutil.rmtree(graph)
    code, result, err = answered(capfd, "resume", tmp_path / "run", "--workers", 1)
    assert (code, result["trials"], result["ending"]) == (0, 3, "all 3 trials are done")
    assert "going on without the graph's source" in err
    model = load_model(tmp_path / "run" / "model")
    assert model.graph is not None
    assert {label.rstrip("0123456789") for label in model.entities.labels} == {"e"}
    assert len(model.graph.test) == 0


READS = """
import ctypes, sys
ctypes.CDLL(None).prctl(24, 1)  # root without its right to write everywhere, once it has begun anew
import os
os.execv(sys.executable, [sys.executable, "-m", "autosf", *sys.argv[1:]])
"""


def test_a_run_that_one_may_only_read_is_read(graph, tmp_path, capfd):
    run = small_run(graph, tmp_path / "run")
    code, whole, _ = answered(capfd, "resume", run.folder, "--workers", 1)
    assert code == 0
    folders = [run.folder, *(path for path in run.folder.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        for command in ("leaderboard", "resume"):
            words = [sys.executable, "-c", READS, command, str(run.folder), "--json"]
            done = subprocess.run(words, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            assert json.loads(done.stdout)["leaderboard"] == whole["leaderboard"]
    finally:
        for folder in folders:
            folder.chmod(0o755)


@pytest.mark.parametrize("change", ["curve = '[[1'", "valid_mrr = 'hello'", "structure = '[[1'"])
def test_a_damaged_row_is_told_in_a_line(graph, tmp_path, capfd, change):
    run = small_run(graph, tmp_path / "run")
    served(run, workers=1)
    with closing(sqlite3.connect(run.ledger)) as ledger, ledger:
        ledger.execute(f"UPDATE trials SET {change} WHERE rowid = 2")
    for command in ("leaderboard", "resume"):
        code, _, err = answered(capfd, command, run.folder)
        assert (code, err.count("\n")) == (2, 1)
        assert "ledger.sqlite: expected a trial's row, found a damaged one" in err


def test_a_model_that_has_lost_its_manifest_is_trained_again(graph, tmp_path, capfd):
    run = small_run(graph, tmp_path / "run")
    assert answered(capfd, "resume", run.folder, "--workers", 1)[0] == 0
    weights = (run.model / "model.safetensors").read_bytes()
    (run.model / "model.json").unlink()
    assert answered(capfd, "resume", run.folder)[0] == 0
    assert (run.model / "model.safetensors").read_bytes() == weights


def refused_by_a_cluster(run, site):
    with pytest.raises(UserError, match="nobody answers"), gone_without_cluster(run, site):
        raise UserError("cluster: nobody answers")


def test_a_run_that_no_cluster_has_answered_for_leaves_nothing(graph, tmp_path):
    run, site = small_run(graph, tmp_path / "run"), Site("10.0.0.7:6379")
    refused_by_a_cluster(run, None)
    assert run.ledger.exists(), "without a cluster it may be resumed"
    refused_by_a_cluster(run, site)
    assert not run.folder.exists()
    begun_already = small_run(graph, tmp_path / "run")
    served(begun_already, workers=1)
    refused_by_a_cluster(begun_already, site)
    assert len(outcome_of(begun_already).records) == 3


def trials_in(folder: Path) -> set[Trial]:
    return {record.trial for record in outcome_of(open_run(folder)).records}


@pytest.mark.parametrize("strategy", ["free", "paper"])
def test_a_search_made_longer_has_what_it_had_and_all_of_one_as_long_from_the_start(
    graph, tmp_path, capfd, strategy
):
    few, many = (14, 18) if strategy == "free" else (6, 9)
    wish = [*SMALL, "--strategy", strategy, "--workers", 1]
    assert answered(capfd, "search", graph, *wish, "--trials", few, "--out", tmp_path / "run")[0] == 0
    before = trials_in(tmp_path / "run")
    code, whole, _ = answered(capfd, "search", graph, *wish, "--trials", many, "--out", tmp_path / "whole")
    assert code == 0
    code, longer, _ = answered(capfd, "resume", tmp_path / "run", "--trials", many)
    assert (code, longer["ending"], longer["best"]) == (0, whole["ending"], whole["best"])
    assert trials_in(tmp_path / "run") == before | trials_in(tmp_path / "whole")
    assert answered(capfd, "resume", tmp_path / "run")[1] == longer


@pytest.mark.parametrize("strategy", ["free", "random"])
def test_fewer_trials_than_are_done_are_refused_and_change_nothing(graph, tmp_path, capfd, strategy):
    """Of four blocks there are five classes: nine trainings are of fewer structures."""
    wish = [*SMALL, "--strategy", strategy, "--trials", 9, "--blocks", 4, "--workers", 1]
    _, result, _ = answered(capfd, "search", graph, *wish, "--out", tmp_path / "run")
    code, _, err = answered(capfd, "resume", tmp_path / "run", "--trials", 7, "--retry-failed")
    assert (code, err.count("\n"), "trials: 9 are done already, found 7; give" in err) == (2, 1, True)
    with pytest.raises(UserError, match="trials: 9 are done already, found 8"):
        autosf.resume(tmp_path / "run", trials=8)
    for command in (["leaderboard"], ["resume"], ["resume", "--trials", 9]):
        assert answered(capfd, *command, tmp_path / "run")[1] == result


def test_what_a_search_is_asked_for_last_is_what_it_goes_on_with(graph, tmp_path, capfd):
    run = small_run(graph, tmp_path / "run")
    assert answered(capfd, "resume", run.folder, "--workers", 1)[0] == 0
    for wish in ({"trials": 5}, {"budget": 60.0}, {"trials": 4}):
        asked(open_run(run.folder), outcome_of(run), wish)
    asked_for = open_run(run.folder).plan.search
    assert (asked_for["trials"], asked_for["budget"]) == (4, 60.0)
    code, stopped, _ = answered(capfd, "leaderboard", run.folder)
    assert (code, stopped["state"], stopped["ending"]) == (0, "stopped", None)
    code, result, _ = answered(capfd, "resume", run.folder, "--workers", 1)
    assert (code, result["trials"], result["ending"]) == (0, 4, "all 4 trials are done")
    assert answered(capfd, "resume", run.folder, "--budget", "2m")[1] == result, "more time changes nothing"
    assert open_run(run.folder).plan.search["budget"] == 60.0


def test_a_damaged_wish_is_told_in_a_line(graph, tmp_path, capfd):
    run = small_run(graph, tmp_path / "run")
    with opened_ledger(run.ledger, time.time, writes=True) as ledger:
        ledger.add_event("asked", "5")
    code, _, err = answered(capfd, "resume", run.folder)
    assert (code, err.count("\n"), "expected what was asked for, found a damaged row" in err) == (2, 1, True)


def test_a_graph_that_has_changed_keeps_a_search_from_being_opened_again(graph, tmp_path, capfd):
    run = small_run(graph, tmp_path / "run")
    _, result, _ = answered(capfd, "resume", run.folder, "--workers", 1)
    (graph / "train.tsv").write_text("e0\trelation\te1\n")
    assert answered(capfd, "resume", run.folder, "--trials", 9)[0] == 2
    assert answered(capfd, "leaderboard", run.folder)[1] == result
    assert open_run(run.folder).plan.search["trials"] == 3


def test_what_has_ended_is_resumed_in_python_without_its_graph(graph, tmp_path, capfd):
    run = small_run(graph, tmp_path / "run")
    answered(capfd, "resume", run.folder, "--workers", 1)
    (graph / "train.tsv").write_text("e0\trelation\te1\n")
    assert len(autosf.resume(run.folder).records) == 3


def test_before_any_trial_is_finished_people_are_told_what_is_going_on(graph, tmp_path, capfd):
    keep_request(tuning_folder(tmp_path / "run"), Request(str(graph), SETTINGS, tuning_share=0.2), 1.0)
    code, _, err = answered(capfd, "leaderboard", tmp_path / "run")
    assert (code, "its settings are being tuned" in err) == (2, True)
    folder, few = tmp_path / "short", ["--strategy", "random", "--trials", 2, "--budget", "0.01s"]
    code, _, err = answered(capfd, "search", graph, *SMALL, *few, "--out", folder)
    assert (code, err.count("\n"), "no trial was finished in time" in err) == (2, 1, True)
    code, result, _ = answered(capfd, "resume", folder, "--budget", "10m", "--workers", 1)
    assert (code, result["trials"]) == (0, 2)


def test_edited_settings_are_refused(graph, tmp_path, capfd):
    small_run(graph, tmp_path / "run")
    path = tmp_path / "run" / "run.json"
    path.write_text(path.read_text().replace('"learning_rate": 0.3', '"learning_rate": 0.4'))
    code, _, err = answered(capfd, "resume", tmp_path / "run")
    assert (code, "changed since the run began" in err) == (2, True)


def test_the_model_has_the_final_dimension_and_follows_the_winner(graph, tmp_path):
    run = small_run(graph, tmp_path / "run", final_dimension=16)
    served(run, workers=1)
    (run.folder / "model.checkpoint").write_bytes(b"of another winner, cut by a kill")
    final_model(run, read_graph(graph), "cpu")
    model = load_model(run.model)
    assert model.model.dimension == 16
    assert model.model.structure == outcome_of(run).best.structure
    assert not (run.folder / "model.checkpoint").exists()
    made = (run.model / "model.json").stat().st_mtime_ns
    final_model(run, read_graph(graph), "cpu")
    assert (run.model / "model.json").stat().st_mtime_ns == made, "what is there is not trained again"


def test_a_full_trial_has_at_least_four_validations():
    settings = TrainingSettings(epochs=15, validate_every=5)
    assert often_validated(settings).validate_every == 3
    assert often_validated(TrainingSettings(epochs=100, validate_every=5)).validate_every == 5
    assert often_validated(TrainingSettings(epochs=2)).validate_every == 1


def test_lines_tell_what_is_done_what_leads_and_what_runs():
    from autosf.algebra.invariance import canonical
    from autosf.algebra.zoo import named

    simple, complex_ = (canonical(named(name).structure, "extended") for name in ("simple", "complex"))
    lines = SearchLines([Record(Trial(simple, 10, 0), 0.5, 10)], structures=7, budget=90.0, spent=30.0)
    lines.progress(Progress(1, Trial(complex_, 10, 0), 4, 1.0, 0.25))
    lines.progress(Progress(1, Trial(complex_, 10, 0), 5, 0.9, None))
    assert lines.lines() == [
        "1 trial done, 1 of 7 structures tried; 0:30 spent, 1:00 left",
        "1. 0.5000 (1 seed) simple",
        "worker 1: epoch 5/10, MRR 0.2500, complex",
    ]
    lines.finished(Record(Trial(complex_, 10, 0), 0.75, 10))
    assert lines.lines()[1:] == ["1. 0.7500 (1 seed) complex", "2. 0.5000 (1 seed) simple"]


def test_python_searches_and_goes_on_in_silence(graph, tmp_path, capfd):
    options = {"strategy": "random", "trials": 3, "workers": 1, "settings": {"epochs": 9, "dimension": 8}}
    found = autosf.search(graph, tmp_path / "run", patience=2, epochs=4, **options)
    used = open_run(found.path).plan.settings
    assert (used.patience, used.epochs, used.dimension) == (2, 4, 8)
    assert found.leaderboard["structure"][0] == str(found.best.structure)
    assert found.leaderboard.columns[:5] == ["structure", "valid_mrr", "spread", "seeds", "epochs"]
    assert (len(found.records), found.ending) == (3, "all 3 trials are done")
    assert found.model.structure == found.best.structure
    assert autosf.resume(found.path).outcome == found.outcome
    assert autosf.load(tmp_path / "run").structure == found.best.structure
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_a_running_search_shows_on_the_leaderboard(graph, tmp_path, capfd):
    folder = tmp_path / "run"
    command = ["search", str(graph), "--out", str(folder), "--epochs", "600", "--dimension", "8"]
    options = ["--set", "patience=0", "--set", "validate_every=100", "--strategy", "paper", "--workers", "1"]
    process = subprocess.Popen([sys.executable, "-m", "autosf", *command, *options])
    try:
        deadline, result = time.monotonic() + 60, None
        while time.monotonic() < deadline and not (result and result["trials"]):
            time.sleep(0.1)
            if (folder / "run.json").exists():
                _, result, _ = answered(capfd, "leaderboard", folder)
        assert (result["state"], result["ending"]) == ("running", None)
        assert result["best"]["structure"] == result["leaderboard"][0]["structure"]
        code, _, err = answered(capfd, "resume", folder)
        assert (code, f"a search is running here already, as process {process.pid}" in err) == (2, True)
    finally:
        process.kill()
        process.communicate()
    assert answered(capfd, "leaderboard", folder)[1]["state"] == "stopped"


def test_resume_trains_the_winner_where_the_model_is_of_another(graph, tmp_path, capfd):
    """As after a kill while the winner of a larger budget was being trained."""
    run = small_run(graph, tmp_path / "run")
    served(run, workers=1)
    code, result, _ = answered(capfd, "resume", run.folder)
    assert code == 0
    other = next(name for name in ("complex", "simple") if name not in result["best"]["names"])
    code, _, _ = answered(capfd, "train", graph, *SMALL, "--structure", other, "--out", run.model)
    assert code == 0
    code, again, _ = answered(capfd, "resume", run.folder)
    assert (code, again["best"]) == (0, result["best"])
    assert load_model(run.model).model.structure == from_rows(result["best"]["structure"])


@pytest.mark.parametrize(
    ("before", "after"),
    [('"fresh_seeds"', '"of another version"'), ('{"request": {', '{"request": 1, "x": {'), ("{", "[")],
)
def test_a_request_that_this_version_does_not_know_is_told_in_a_line(tmp_path, capfd, before, after):
    folder = tmp_path / "run"
    keep_request(tuning_folder(folder), Request("UMLS", SETTINGS, tuning_share=0.2), 1.0)
    path = tuning_folder(folder) / "search.json"
    path.write_text(path.read_text().replace(before, after, 1))
    for command in (["resume", folder], ["leaderboard", folder], ["search", "UMLS", "--out", folder]):
        code, _, err = answered(capfd, *command)
        assert (code, err.count("\n")) == (2, 1)
        assert "expected a search's request, as this version keeps it" in err


def test_an_empty_file_of_settings_is_one_that_is_given(graph):
    wish = dict.fromkeys(("trials", "threads", "sample", "draw"))
    for file, share in ((None, 0.2), ({}, 0.0)):
        asked = requested(
            read_graph(graph), "", file, {}, tuning_share=0.2, strategy="free", budget=None, **wish
        )
        assert asked.tuning_share == share


def test_a_search_from_memory_that_ended_in_its_tuning_says_that_its_graph_is_gone(
    graph, tmp_path, capfd, monkeypatch
):
    keep_request(tuning_folder(tmp_path / "run"), Request("", SETTINGS, tuning_share=0.2), 1.0)
    monkeypatch.chdir(graph)
    code, _, err = answered(capfd, "resume", tmp_path / "run")
    assert (code, "the graph of this search was in memory and is gone" in err) == (2, True)
    with pytest.raises(UserError, match="was in memory and is gone"):
        autosf.resume(tmp_path / "run")


def test_workers_import_nothing_from_the_current_folder(graph, tmp_path, monkeypatch):
    (tmp_path / "queue.py").write_text("raise SystemExit('not mine')")
    monkeypatch.chdir(tmp_path)
    run = small_run(graph, tmp_path / "run")
    served(run, workers=1)
    assert len(outcome_of(run).records) == 3


ROW = {"structure": [[1, 2, 3, 4]] * 4, "names": [], "valid_mrr": 0.1234, "spread": 0.0567, "seeds": 3}


def shown_leaderboard(width, **changes):
    rows = {
        "leaderboard": [{**ROW, "epochs": 120, "blocks": 16}],
        "sample": None,
        "draw": None,
        "run": "r",
        "playoff": None,
        "strategy": "free",
        "decided_by": "finals",
    }
    told = {"failed": 0, "ending": "", "trials": 3, "seconds": 1.0, "state": "ended", "best": None}
    out = Console(width=width, file=io.StringIO())
    for piece in leaderboard_for_people(rows | told | changes):
        out.print(piece)
    return out.file.getvalue()


def test_the_leaderboard_keeps_its_figures_on_a_narrow_terminal():
    assert "0.1234  0.0567" in shown_leaderboard(60)


def test_the_leaderboard_marks_the_winner_and_says_why_it_is_not_the_first():
    assert "(the winner)" in shown_leaderboard(120, best=ROW)
    assert "(the winner)" not in shown_leaderboard(120, best=ROW, state="running")
    other = {"structure": [[1, 0], [0, 2]], "names": ["distmult"]}
    assert "DistMult is the winner by seeds that took no part" in shown_leaderboard(120, best=other)
    played = shown_leaderboard(120, best=other, playoff=[{}], decided_by="playoff")
    assert "winner by the play-off, where the best were trained in full; figures here" in played


def test_a_winner_without_finals_is_told_as_the_best_guess_even_where_it_is_the_first():
    late = {"decided_by": "trainings", "ending": OUT_OF_TIME}
    assert "time ended before the finals" in shown_leaderboard(200, best=ROW, **late)
    for changes in ({"strategy": "random"}, {"ending": "all 3 trials are done"}, {"decided_by": "finals"}):
        assert "finals" not in shown_leaderboard(200, best=ROW, **(late | changes))


def test_a_winner_in_disguise_is_told_as_what_it_is():
    analogy = [[1, 2, 0, 0], [2, 1, 0, 0], [0, 0, 3, 4], [0, 0, -4, 3]]
    (line,) = in_disguise({"structure": analogy, "names": []})
    assert line.startswith("the same function as Analogy, after a turn of entity parts")
    assert in_disguise({"structure": analogy, "names": ["x"]}) == in_disguise(ROW) == []


def test_one_seed_each_is_told_with_what_would_give_more():
    assert one_seed_why({"ending": OUT_OF_TIME}) == "the time was used up; resume with a larger --budget"
    assert one_seed_why({"ending": "all 3 structures are tried"}) == "--fresh-seeds"
