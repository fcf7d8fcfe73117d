"""A search from the command line goes on after kill -9, Ctrl-C and the end of its time, also out of its tuning."""

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

from autosf.app.cli import run
from autosf.graph.synthetic import patterned_graph
from autosf.graph.writing import write_graph
from ending import ended

pytestmark = pytest.mark.slow
LONGER = ["--epochs", "160", "--dimension", "8", "--set", "patience=0", "--set", "validate_every=16"]


@pytest.fixture
def graph(tmp_path):
    made = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1, test=0.1)
    return write_graph(made, tmp_path / "rules")


def answered(capfd, *arguments):
    code = run([*map(str, arguments), "--json"])
    out, err = capfd.readouterr()
    assert code == 0, err
    return json.loads(out)


def cut(command: list[str], is_time, end: signal.Signals) -> tuple[int, str]:
    """Exit code and last words of a command that is ended as soon as it is time."""
    words = [sys.executable, "-m", "autosf", *map(str, command)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not is_time() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(end)
    _, err = process.communicate()
    return process.returncode, err


def has_trials(folder: Path, count: int, capfd) -> bool:
    return (folder / "run.json").exists() and answered(capfd, "leaderboard", folder)["trials"] >= count


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
def test_what_was_cut_comes_to_the_same_with_other_workers(graph, tmp_path, end, capfd):
    command = ["search", graph, *LONGER, "--trials", 30, "--seed", 3]
    whole = answered(capfd, *command, "--out", tmp_path / "whole", "--workers", 2)
    folder = tmp_path / "cut"
    code, err = cut([*command, "--out", folder, "--workers", 1], lambda: has_trials(folder, 5, capfd), end)
    assert code == (130 if end == signal.SIGINT else -9)
    assert end == signal.SIGKILL or f"go on with: autosf resume {folder}" in err
    assert answered(capfd, "leaderboard", folder)["state"] == "stopped"
    resumed = answered(capfd, "resume", folder, "--workers", 2)
    for key in ("best", "leaderboard", "trials", "ending"):
        assert resumed[key] == whole[key]
    weights = [(tmp_path / name / "model" / "model.safetensors").read_bytes() for name in ("whole", "cut")]
    assert weights[0] == weights[1]


def test_out_of_time_there_is_a_winner_and_more_time_goes_on(graph, tmp_path, capfd):
    folder = tmp_path / "run"
    command = ["search", graph, *LONGER, "--out", folder, "--budget", "12s", "--workers", 1]
    began = time.monotonic()
    short = answered(capfd, *command)
    assert time.monotonic() - began < 60
    assert short["ending"] == "the time is used up"
    assert short["best"]["seeds"] == 3
    assert answered(capfd, "resume", folder) == short
    longer = answered(capfd, "resume", folder, "--budget", "20s", "--workers", 2)
    assert longer["trials"] > short["trials"]
    assert longer["best"]["structure"] == longer_model_structure(folder)


def longer_model_structure(folder: Path) -> list:
    return json.loads((folder / "model" / "model.json").read_text())["structure"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
@pytest.mark.parametrize("strategy", ["free", "random"])
def test_more_trials_that_were_asked_for_outlive_any_end(graph, tmp_path, capfd, strategy, end):
    folder, whole = tmp_path / "run", tmp_path / "whole"
    short = answered(capfd, "search", graph, *LONGER, "--strategy", strategy, "--trials", 13, "--out", folder)
    shutil.copytree(folder, whole)
    longer = answered(capfd, "resume", whole, "--trials", 17, "--workers", 1)
    code, err = ended("resume", folder, "--trials", 17, "--workers", 1, at=folder / "live.json", end=end)
    assert code == (130 if end == signal.SIGINT else -9)
    assert end == signal.SIGKILL or f"go on with: autosf resume {folder}" in err
    assert answered(capfd, "leaderboard", folder)["state"] == "stopped"
    resumed = answered(capfd, "resume", folder)
    assert resumed["trials"] > short["trials"]
    for key in ("best", "leaderboard", "trials", "ending", "decided_by"):
        assert resumed[key] == longer[key]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
def test_more_time_that_was_asked_for_outlives_any_end(graph, tmp_path, capfd, end):
    folder = tmp_path / "run"
    few = ["--strategy", "random", "--trials", 3, "--budget", "0.01s", "--workers", 1]
    assert run([*map(str, ["search", graph, *LONGER, *few, "--out", folder])]) == 2
    code, _ = ended("resume", folder, "--budget", "10m", "--workers", 1, at=folder / "live.json", end=end)
    assert code == (130 if end == signal.SIGINT else -9)
    capfd.readouterr()
    assert answered(capfd, "resume", folder)["ending"] == "all 3 trials are done"


def test_what_failed_can_be_tried_again_to_what_it_would_have_come_to(graph, tmp_path, capfd):
    folder = tmp_path / "run"
    command = ["search", graph, "--epochs", 4, "--dimension", 8, "--strategy", "random", "--trials", 4]
    whole = answered(capfd, *command, "--workers", 1, "--out", folder)
    lost = (
        "UPDATE trials SET valid_mrr = 0, trained_epochs = 0, curve = '[]', failure = 'worker 0 was killed'"
    )
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as ledger, ledger:
        ledger.execute(f"{lost} WHERE rowid = 2")
    assert answered(capfd, "resume", folder)["failed"] == 1
    assert run(["leaderboard", str(folder)]) == 0
    assert f"`autosf resume {folder} --retry-failed` tries again" in capfd.readouterr().out.replace("\n", " ")
    again = answered(capfd, "resume", folder, "--retry-failed", "--workers", 1)
    assert (again["failed"], again["leaderboard"], again["best"]) == (0, whole["leaderboard"], whole["best"])
    assert answered(capfd, "resume", folder, "--retry-failed") == again


def test_without_settings_they_are_tuned_first_and_a_kill_loses_little_of_it(graph, tmp_path, capfd):
    folder, tuning = tmp_path / "run", tmp_path / "run.tuning"
    command = ["search", graph, "--out", folder, "--trials", 3, "--workers", 1]
    code, err = ended(*command, at=tuning / "settings.toml", times=2, end=signal.SIGKILL)
    assert (code, folder.exists()) == (-9, False)
    assert "no settings given and no preset for rules: tuning them first, for 12 trainings" in err
    result = answered(capfd, "resume", folder)
    assert result["tuning"]["trials"] == 12
    assert result["settings"] == tomllib.loads((tuning / "settings.toml").read_text())
    assert len(result["leaderboard"]) == 3
    assert (
        answered(capfd, "search", graph, "--out", tmp_path / "other", "--trials", 2, "--no-tune")["tuning"]
        is None
    )


def test_the_example_of_the_help_runs(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    example = "search umls --trials 14 --epochs 10 --dimension 16 --out umls-search"
    assert len(answered(capfd, *example.split())["leaderboard"]) == 14
    for command in ("resume", "leaderboard"):
        assert answered(capfd, command, "umls-search")["run"] == "umls-search"


@pytest.mark.parametrize("wish", [("--draw", 8), ("--sample", 16)], ids=["draw", "sample"])
def test_what_was_asked_for_outlives_a_kill_in_the_tuning(graph, tmp_path, capfd, wish):
    folder, tuning = tmp_path / "run", tmp_path / "run.tuning"
    command = ["search", graph, "--out", folder, "--trials", 3, "--workers", 1, *wish]
    code, _ = ended(*command, at=tuning / "settings.toml", end=signal.SIGKILL)
    assert (code, folder.exists()) == (-9, False)
    kept = (tuning / "search.json").read_text()
    for other in (["--trials", 2, "--seed", 1], ["--trials", 2, "--no-tune"], ["--budget", "1s"]):
        assert run(["search", str(graph), "--out", str(folder), *map(str, other)]) == 2
        err = capfd.readouterr().err
        assert err.count("\n") == 1
        assert "is still tuning its settings; `autosf resume" in err
    assert (tuning / "search.json").read_text() == kept
    code, _ = ended("resume", folder, "--trials", 4, at=tuning / "settings.toml", end=signal.SIGKILL)
    assert (code, folder.exists()) == (-9, False)
    result = answered(capfd, "resume", folder)
    assert (len(result["leaderboard"]), result["tuning"]["trials"]) == (4, 12)
    assert not (tuning / "search.json").exists()
