"""`autosf tune`: its keys, its folder, its mistakes in one line, and going on after Ctrl-C and kill -9."""

import signal
import tomllib

import pytest
import torch

from answering import answered
from autosf.app.cli import run
from autosf.app.duration import seconds_in, time_in_words
from autosf.errors import UserError
from autosf.graph.synthetic import patterned_graph
from autosf.graph.writing import write_graph
from autosf.runs.ledger import held
from ending import ended

SMALL = ["--epochs", "4", "--dimension", "8", "--set", "validate_every=2"]


@pytest.fixture
def graph(tmp_path):
    made = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1, test=0.1)
    return write_graph(made, tmp_path / "rules")


def test_the_keys_programs_rely_on_and_the_folder_that_train_accepts(graph, tmp_path, capfd):
    run_folder = tmp_path / "run"
    code, result, _ = answered(capfd, "tune", graph, "--trials", 3, *SMALL, "--out", run_folder)
    assert code == 0
    assert {"best", "settings", "trials", "path"} <= set(result)
    assert {"valid_mrr", "trial", "epochs"} <= set(result["best"])
    assert 0 < result["best"]["valid_mrr"] <= 1
    assert (result["trials"], result["path"]) == (3, str(run_folder))
    assert tomllib.loads((run_folder / "settings.toml").read_text()) == result["settings"]
    for settings in (run_folder, run_folder / "settings.toml"):
        code, trained, _ = answered(
            capfd, "train", graph, "--settings", settings, "--out", tmp_path / "m", "--structure", "simple"
        )
        assert code == 0
        assert trained["settings"] == result["settings"]


def test_what_set_gives_is_held_and_what_range_gives_is_tuned(graph, tmp_path, capfd):
    options = ["--set", "learning_rate=0.25", "--range", "dropout=0.1:0.3", "--range", "regulariser=l2,n3"]
    code, result, _ = answered(capfd, "tune", graph, "--trials", 2, *SMALL, *options, "--out", tmp_path / "r")
    assert code == 0
    assert result["settings"]["learning_rate"] == 0.25
    assert 0.1 <= result["settings"]["dropout"] <= 0.3


def test_a_tuning_goes_on_only_when_asked_to(graph, tmp_path, capfd):
    command = ["tune", graph, *SMALL, "--out", tmp_path / "r"]
    assert answered(capfd, *command, "--trials", 1)[0] == 0
    code, _, err = answered(capfd, *command, "--trials", 2)
    assert (code, err.count("\n")) == (2, 1)
    assert "add --resume to go on" in err
    code, result, err = answered(capfd, *command, "--trials", 2, "--resume")
    assert (code, result["trials"], "anew" in err) == (0, 2, False)


def test_a_tuning_that_has_nothing_to_go_on_from_says_so(graph, tmp_path, capfd):
    code, _, err = answered(capfd, "tune", graph, *SMALL, "--out", tmp_path / "r", "--trials", 1, "--resume")
    assert code == 0
    assert "there is no tuning to go on from; it starts anew" in err


def test_a_log_gets_a_line_now_and_then(graph, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("autosf.app.commands.tune.LINE_SECONDS", -1.0)
    _, result, err = answered(capfd, "tune", graph, *SMALL, "--trials", 2, "--out", tmp_path / "r")
    first, *_, last = err.splitlines()
    assert first == "autosf: trials: 0 of 2 done"
    assert last.startswith(
        f"autosf: trials: 2 of 2 done; best: {result['best']['valid_mrr']:.4f} with learning"
    )


def test_people_read_what_was_found_and_how_to_use_it(graph, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["tune", str(graph), "--trials", "1", *SMALL]) == 0
    out, _ = capfd.readouterr()
    assert out.startswith("validation MRR 0.")
    assert "learning_rate 0.5, entity_weight 0.01, decay 1, batch_size 256" in out
    assert "autosf train ... --settings rules-tuned" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--range", "decay"],
            '--range: expected name=low:high, name=low:high:log or name=a,b,c, found "decay"',
        ),
        (["--range", "decay=a:b"], "--range: expected name=low:high"),
        (["--range", "decay=0:1:lin"], "--range: expected name=low:high"),
        (["--range", "epoch=3:4"], 'unknown setting "epoch"; did you mean "epochs"?'),
        (["--budget", "soon"], 'expected a time such as 90s, 30m or 1h30m, found "soon"'),
        (["--settings", "nowhere"], "nowhere"),
        (["--set", "validate_every=0"], "tuning needs validations"),
        *(
            []
            if torch.cuda.is_available()
            else [(["--device", "cuda"], "device: cuda is not available here")]
        ),
    ],
)
def test_mistakes_are_told_in_one_line_and_leave_nothing(graph, tmp_path, capfd, options, message):
    code, _, err = answered(capfd, "tune", graph, "--trials", 1, *options, "--out", tmp_path / "r")
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1h30s", 3630),
        ("90s", 90),
        ("30m", 1800),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("2d", 172800),
    ],
)
def test_spans_of_time(text, seconds):
    assert seconds_in(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0", "-3m", "3x", "1.2.3s", "30m1h", "1h30"])
def test_what_is_no_span_of_time(text):
    with pytest.raises(UserError, match="expected a time such as"):
        seconds_in(text)


def test_time_left_in_words():
    assert [time_in_words(s) for s in (-3, 65, 3723)] == ["0:00", "1:05", "1:02:03"]


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill -9"])
def test_a_tuning_that_was_ended_resumes_to_the_same_settings(graph, tmp_path, end, capfd):
    options = ["--trials", "12", "--set", "epochs=40", "--set", "dimension=8", "--set", "patience=0"]
    command = ["tune", str(graph), *options]
    _, whole, _ = answered(capfd, *command, "--out", tmp_path / "whole")
    cut = tmp_path / "cut"
    code, err = ended(*command, "--out", cut, at=cut / "settings.toml", times=2, end=end)
    assert code == (130 if end == signal.SIGINT else -9)
    if end == signal.SIGINT:
        first, last = filter(None, err.splitlines())
        assert f"go on with: autosf tune {graph}" in first
        assert first.endswith("--resume")
        assert last == "autosf: interrupted"
    code, result, _ = answered(capfd, *command, "--out", cut, "--resume")
    assert code == 0
    assert (result["settings"], result["trials"]) == (whole["settings"], 12)
    assert result["best"]["valid_mrr"] == whole["best"]["valid_mrr"]


def test_two_tunings_of_one_folder_do_not_meet(graph, tmp_path, capfd):
    (tmp_path / "run").mkdir()
    with held(tmp_path / "run" / "tuning.lock"):
        code, _, err = answered(capfd, "tune", graph, "--trials", 1, *SMALL, "--out", tmp_path / "run")
    assert (code, err.count("\n")) == (2, 1)
    assert "a tuning is running here already" in err
