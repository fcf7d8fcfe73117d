"""`autosf train`: its keys, its mistakes in one line, and resumption after any kind of end."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from threading import Timer

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import autosf
from autosf.algebra.zoo import named
from autosf.app.cli import run
from autosf.app.interrupting import stopping
from autosf.app.run_results import structure_given
from autosf.app.training import Job, run_training, starting_state, threads_for, told_if_too_large
from autosf.embedding.checkpoints import save_checkpoint
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.state import Epoch
from autosf.embedding.training import start
from autosf.errors import UserError
from autosf.evaluation.metrics import summarise
from autosf.graph.reading import read_graph
from ending import ended


@pytest.fixture
def graph(tmp_path):
    """A small graph with a rule: r1 is r0 reversed."""
    rng = np.random.default_rng(0)
    pairs = {(int(a), int(b)) for a, b in rng.integers(0, 40, (160, 2))}
    rows = [f"e{a:02}\tr0\te{b:02}" for a, b in sorted(pairs)] + [
        f"e{b:02}\tr1\te{a:02}" for a, b in sorted(pairs)
    ]
    folder = tmp_path / "rules"
    folder.mkdir()
    rng.shuffle(rows)
    for split, part in (("valid", rows[:20]), ("test", rows[20:40]), ("train", rows[40:])):
        (folder / f"{split}.tsv").write_text("\n".join(part) + "\n", encoding="utf-8")
    return folder


def trained(capfd, *arguments):
    code = run(["train", *map(str, arguments), "--json"])
    out, err = capfd.readouterr()
    return code, json.loads(out) if code == 0 else None, err


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_the_structure_may_be_that_of_a_model(graph, tmp_path, capfd):
    small = ("--epochs", 1, "--dimension", 8)
    trained(capfd, graph, "--structure", "[[1,2],[2,1]]", *small, "--out", tmp_path / "one")
    _, result, _ = trained(capfd, graph, "--structure", tmp_path / "one", *small, "--out", tmp_path / "two")
    assert result["structure"] == [[1, 2], [2, 1]]


def test_the_keys_programs_rely_on(graph, tmp_path, capfd):
    code, result, _ = trained(
        capfd, graph, "--epochs", 4, "--dimension", 8, "--out", tmp_path / "m", "--seed", 3
    )
    assert code == 0
    assert {"valid", "epochs", "train_seconds", "seconds", "settings", "model"} <= set(result)
    assert result["epochs"] == 4
    assert 0 < result["valid"]["mrr"] <= 1
    assert result["settings"]["dimension"] == 8
    assert result["model"] == str(tmp_path / "m")
    assert weights(tmp_path / "m")["entities"].shape == (40, 8)
    assert not (tmp_path / "m.checkpoint").exists()


def test_on_disk_the_model_is_the_same_and_no_scratch_stays(graph, tmp_path, capfd):
    options = [graph, "--epochs", 4, "--dimension", 8, "--set", "loss=sampled-softmax"]
    options += ["--set", "validate_every=1", "--set", "validation_candidates=10"]
    for name, more in (("memory", []), ("disk", ["--on-disk"])):
        code, result, _ = trained(capfd, *options, "--out", tmp_path / name, *more)
        assert (code, result["valid_candidates"]) == (0, 10)
    one, other = (weights(tmp_path / name) for name in ("memory", "disk"))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert {path.name for path in tmp_path.iterdir()} == {"rules", "memory", "disk"}
    code, _, said = trained(capfd, graph, "--epochs", 1, "--on-disk", "--out", tmp_path / "no")
    assert code == 2
    assert "the multiclass loss changes all rows in every step" in said


def test_a_log_gets_a_line_now_and_then(graph, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("autosf.app.commands.training.LINE_SECONDS", -1.0)
    _, _, err = trained(capfd, graph, "--epochs", 2, "--dimension", 8, "--out", tmp_path / "m")
    assert [line.partition(", loss")[0] for line in err.splitlines()] == [
        "autosf: epoch 1 of 2",
        "autosf: epoch 2 of 2",
    ]


def test_without_any_option_the_model_is_named_after_the_graph(graph, tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, result, _ = trained(capfd, graph, "--epochs", 1)
    assert (code, result["model"]) == (0, "rules-complex")
    assert (tmp_path / "rules-complex" / "model.json").exists()


def test_options_win_over_the_file_and_the_file_over_the_preset(graph, tmp_path, capfd):
    file = tmp_path / "settings.toml"
    file.write_text('epochs = 9\noptimiser = "sgd"\ndimension = 16\n', encoding="utf-8")
    options = ["--settings", file, "--epochs", 1, "--set", "reciprocal=true", "--set", "regulariser=l2"]
    _, result, _ = trained(capfd, graph, *options, "--out", tmp_path / "m")
    expected = {"epochs": 1, "optimiser": "sgd", "dimension": 16, "reciprocal": True, "regulariser": "l2"}
    assert expected.items() <= result["settings"].items()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dimension", "10"], "expected a multiple of the structure's 4 parts, found 10; 8 would do"),
        (["--structure", "complx"], 'unknown structure "complx"; did you mean "complex"?'),
        (["--set", "epoch=3"], 'unknown setting "epoch"; did you mean "epochs"?'),
        (["--set", "epochs"], '--set: expected name=value, found "epochs"'),
        (["--set", "decay=3"], "setting decay: expected a number from 0 to 1, found 3"),
        (["--set", "margin=inf"], "setting margin: expected a number from 0, found inf"),
        (
            ["--set", "loss=logistic", "--set", "negatives=100000000000"],
            "negatives: expected a number from 1 to",
        ),
        (["--settings", "nowhere.toml"], "nowhere.toml"),
        (
            ["--learning-rate", "1e30", "--batch-size", "8", "--set", "optimiser=sgd"],
            "diverged in its first epoch",
        ),
    ],
)
def test_mistakes_are_told_in_one_line_and_leave_nothing(graph, tmp_path, capfd, options, message):
    code, _, err = trained(capfd, graph, *options, "--out", tmp_path / "m")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "m").exists()


def command(graph, out, *more):
    options = ["--epochs", "60", "--dimension", "8", "--seed", "1", "--set", "patience=0", "--threads", "1"]
    return [sys.executable, "-m", "autosf", "train", str(graph), *options, "--out", str(out), *more]


@pytest.mark.slow
@pytest.mark.parametrize(
    "end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["ctrl-c", "kill", "kill -9"]
)
def test_a_training_that_was_ended_resumes_to_the_same_weights(graph, tmp_path, end, monkeypatch):
    """Every epoch writes a checkpoint, and the third of them is where it ends."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command(graph, whole), check=True, capture_output=True)
    modules = "import autosf.app.training as t, autosf.embedding.checkpoints as c"
    often = f"{modules}; t.CHECKPOINT_SECONDS = c.SELDOM = -1"
    checkpoint = tmp_path / "cut.checkpoint"
    code, err = ended(*command(graph, cut)[3:], at=checkpoint, times=3, end=end, before=often)
    assert code == (-9 if end == signal.SIGKILL else 130)
    if end != signal.SIGKILL:
        kept, last = filter(None, err.splitlines())
        assert kept == "autosf: what was trained is kept; the same command with --resume goes on"
        assert last == "autosf: interrupted"
    assert not cut.exists()
    refused = subprocess.run(command(graph, cut), capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "add --resume to go on" in refused.stderr
    goes_on = command(graph, cut, "--resume", "--json")
    first = subprocess.run(goes_on, check=True, capture_output=True, text=True)
    one, other = weights(whole), weights(cut)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not checkpoint.exists()
    again = subprocess.run(goes_on, check=True, capture_output=True, text=True)
    assert again.stderr == "autosf: this training has ended: what it came to is told again\n"
    assert json.loads(again.stdout) == json.loads(first.stdout) | {"seconds": 0.0}
    refused = subprocess.run([*goes_on, "--seed", "5"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "the model there is of another training" in refused.stderr


@pytest.mark.parametrize(
    "changes",
    [{"loss": "sampled-softmax"}, {"loss": "logistic"}, {"loss": "hinge", "sampler": "cache"}],
    ids=lambda changes: changes.get("sampler", changes["loss"]),
)
def test_ctrl_c_waits_for_the_epoch_where_training_changes_weights_in_place(graph, tmp_path, changes):
    settings = TrainingSettings(dimension=8, epochs=6, negatives=4, validate_every=2, patience=0)
    whole, cut = (
        Job(
            read_graph(graph),
            named("complex").structure,
            settings.changed(changes),
            1,
            "cpu",
            tmp_path / name,
        )
        for name in ("whole", "cut")
    )
    run_training(whole, False, lambda _: None, "")

    def interrupted(state):
        if state.epochs == 2:
            Timer(0.001, os.kill, (os.getpid(), signal.SIGINT)).start()
        if state.epochs == 5:
            time.sleep(5)  # for the signal, however slow the machine

    with pytest.raises(KeyboardInterrupt):
        run_training(cut, False, interrupted, "")
    assert cut.checkpoint.exists()
    run_training(cut, True, lambda _: None, "")
    one, other = weights(whole.out), weights(cut.out)
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_a_second_ctrl_c_does_not_wait(capfd):
    with stopping(waits=True) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    assert not stop.between
    assert "stopping after this epoch" in capfd.readouterr().err


def test_a_checkpoint_of_other_settings_is_refused(graph, tmp_path, capfd, monkeypatch):
    import autosf.app.training as training

    def ended(*_args, **_options):
        raise RuntimeError("the machine is gone")

    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", -1)
    monkeypatch.setattr(training, "save_model", ended)
    with pytest.raises(RuntimeError, match="gone"):
        run(["train", str(graph), "--epochs", "2", "--dimension", "8", "--out", str(tmp_path / "m")])
    monkeypatch.undo()
    capfd.readouterr()
    for options, message in (
        (["--dimension", "16"], "the checkpoint has dimension 8, now it is 16"),
        (["--seed", "5", "--dimension", "8"], "the checkpoint is of another seed"),
    ):
        code, _, err = trained(capfd, graph, "--epochs", 2, *options, "--out", tmp_path / "m", "--resume")
        assert code == 2
        assert message in err
    (tmp_path / "m.checkpoint").write_bytes(b"no tensors")
    code, _, err = trained(capfd, graph, "--epochs", 2, "--dimension", 8, "--out", tmp_path / "m", "--resume")
    assert code == 2
    assert "damaged" in err


def test_a_folder_that_cannot_take_the_model_is_refused_before_anything_is_trained(
    graph, tmp_path, capfd, monkeypatch
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    monkeypatch.chdir(tmp_path / "mine")
    for out, why in ((".", "is the folder you are in"), ("../mine/.", "is the folder you are in")):
        code, _, err = trained(capfd, graph, "--epochs", 200, "--out", out)
        assert (code, err.count("\n"), why in err) == (2, 1, True)
    monkeypatch.chdir(tmp_path.parent)
    code, _, err = trained(capfd, graph, "--epochs", 200, "--out", tmp_path / "mine")
    assert (code, err.count("\n")) == (2, 1)
    assert "holds other files and no model folder" in err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_checkpoints_go_beside_a_model_folder_whose_own_folder_is_new(graph, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr("autosf.app.training.CHECKPOINT_SECONDS", -1.0)
    out = tmp_path / "new" / "folder" / "m"
    code, _, err = trained(capfd, graph, "--epochs", 2, "--dimension", 8, "--out", out)
    assert (code, "cannot be written" in err) == (0, False)
    assert [path.name for path in out.parent.iterdir()] == ["m"]


def test_training_goes_on_without_a_checkpoint_that_cannot_be_written(graph, tmp_path, capfd, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("autosf.app.training.CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("autosf.app.training.save_checkpoint", full)
    code, _, err = trained(capfd, graph, "--epochs", 2, "--dimension", 8, "--out", tmp_path / "m")
    assert code == 0
    assert "cannot be written, a kill would lose this training" in err


@pytest.mark.parametrize("option", [["--seed", -1], ["--threads", 0], ["--epochs", 0], ["--dimension", -4]])
def test_numbers_that_cannot_be_are_refused(graph, tmp_path, capfd, option):
    code, _, err = trained(capfd, graph, "--out", tmp_path / "m", *option)
    assert (code, err.count("\n")) == (2, 1)
    assert option[0] in err


def test_the_threads_that_are_asked_for_are_used_on_a_small_graph_too(graph, tmp_path, capfd, monkeypatch):
    seen, before = [], torch.get_num_threads()
    monkeypatch.setattr(
        "autosf.app.training.summarise",
        lambda ranks: seen.append(torch.get_num_threads()) or summarise(ranks),
    )
    try:
        for given in ([], ["--threads", 2]):
            trained(capfd, graph, "--epochs", 1, "--dimension", 8, "--out", tmp_path / "m", *given)
    finally:
        torch.set_num_threads(before)
    assert set(seen[: len(seen) // 2]) == {1}
    assert set(seen[len(seen) // 2 :]) == {2}


def test_ctrl_c_in_python_stops_the_program(graph, monkeypatch):
    def interrupted(_model):
        raise KeyboardInterrupt

    monkeypatch.setattr("autosf.app.training.summarise", interrupted)
    with pytest.raises(KeyboardInterrupt):
        autosf.train(graph, epochs=2, dimension=8, validate_every=1)


def test_seeds_below_zero_and_weights_that_are_no_numbers_are_told_in_python(graph):
    with pytest.raises(UserError, match="seed: expected a number from 0, found -1"):
        autosf.train(graph, seed=-1)
    with pytest.raises(UserError, match=r'seed: expected a whole number, found "a" \(str\)'):
        autosf.train(graph, seed="a")
    with pytest.raises(UserError, match=r"diverged in .*epoch"):
        autosf.train(
            graph,
            epochs=9,
            dimension=8,
            learning_rate=1e30,
            loss="sampled-softmax",
            validate_every=0,
            optimiser="sgd",
        )


def test_a_training_that_diverges_before_it_was_validated_leaves_no_model(graph, tmp_path, capfd):
    wild = ("--set", "optimiser=sgd", "--set", "learning_rate=1e30", "--set", "start_scale=1.0")
    code, _, err = trained(
        capfd, graph, *wild, "--batch-size", 512, "--dimension", 8, "--out", tmp_path / "m"
    )
    assert code == 2
    assert "training diverged in epoch 2: loss or weights are not finite" in err
    assert not (tmp_path / "m").exists()


def test_memory_that_is_not_there_is_told_in_one_line():
    with pytest.raises(UserError, match="not enough memory for a step; lower negatives"), told_if_too_large():
        np.empty(1 << 56)
    with pytest.raises(UserError, match="not enough memory for a step"), told_if_too_large():
        torch.empty(1 << 58)
    with pytest.raises(RuntimeError, match="another"), told_if_too_large():
        raise RuntimeError("another")


def test_python_saves_the_model_that_the_command_saves(graph, tmp_path, capfd):
    assert trained(capfd, graph, "--epochs", 2, "--dimension", 8, "--out", tmp_path / "command")[0] == 0
    model = autosf.train(graph, epochs=2, dimension=8, out=tmp_path / "new" / "python")
    ours, its = weights(tmp_path / "new" / "python"), weights(tmp_path / "command")
    assert all(np.array_equal(ours[name], its[name]) for name in its)
    assert autosf.load(tmp_path / "new" / "python").facts["graph"] == model.facts["graph"]
    with pytest.raises(UserError):
        autosf.train(graph, epochs=2, dimension=8, out=graph)


def test_python_takes_settings_from_a_file_a_folder_or_a_mapping(graph, tmp_path):
    (tmp_path / "settings.toml").write_text("epochs = 1\ndimension = 16\n", encoding="utf-8")
    for settings in (tmp_path, str(tmp_path / "settings.toml"), {"epochs": 1, "dimension": 16}):
        used = autosf.train(graph, settings=settings, dimension=8).facts["settings"]
        assert (used["epochs"], used["dimension"]) == (1, 8)
    with pytest.raises(
        UserError, match="settings: expected a TOML file or the folder of a tuning, or a mapp"
    ):
        autosf.train(graph, settings=3)


def test_python_uses_the_threads_that_are_asked_for(graph):
    before, seen = torch.get_num_threads(), []
    read = read_graph(graph)
    for threads in (None, 2):
        with threads_for(read, TrainingSettings(), threads):
            seen.append(torch.get_num_threads())
    assert (seen, torch.get_num_threads()) == ([1, 2], before)
    with pytest.raises(UserError, match="threads: expected a number from 1, found 0"):
        autosf.train(graph, threads=0)


def test_a_model_that_is_replaced_and_a_training_that_cannot_be_resumed_are_told(graph, tmp_path, capfd):
    asked = [graph, "--epochs", 2, "--dimension", 8, "--out", tmp_path / "m"]
    code, _, err = trained(capfd, *asked, "--resume")
    assert (code, "there is none to go on from" in err, "replaced" in err) == (0, True, False)
    assert "the model there will be replaced" in trained(capfd, *asked)[2]


def test_fewer_epochs_than_are_done_are_refused(graph, tmp_path):
    settings = TrainingSettings(dimension=8, epochs=6)
    job = Job(read_graph(graph), named("complex").structure, settings, 0, "cpu", tmp_path / "m")
    state = replace(start(job.graph, settings, 0), curve=tuple(Epoch(n, 1.0, 0.1) for n in range(1, 7)))
    save_checkpoint(job.checkpoint, state, job.who)
    assert starting_state(job, True, print).epochs == 6
    fewer = replace(job, settings=replace(settings, epochs=3))
    with pytest.raises(UserError, match="has 6 epochs, more than the 3 asked for; give --epochs 6 or more"):
        starting_state(fewer, True, print)


def test_rows_are_a_structure_in_python(graph):
    model = autosf.train(str(graph), [[1, 2], [-2, 1]], dimension=4, epochs=1)
    assert str(model.structure) == "[[1,2],[-2,1]]"
    assert repr(model).startswith("<model of ")
    assert len(repr(model)) < 200
    with pytest.raises(UserError):
        autosf.train(str(graph), [[1, 2], [3]], dimension=4, epochs=1)


def test_a_structure_in_python_may_be_an_array_or_the_path_of_a_model(graph, tmp_path):
    rows = np.array([[1, 2], [-2, 1]])
    first = autosf.train(graph, rows, dimension=4, epochs=1, out=tmp_path / "model")
    assert str(first.structure) == "[[1,2],[-2,1]]"
    assert autosf.train(graph, tmp_path / "model", dimension=4, epochs=1).structure == first.structure
    assert structure_given(first.structure) is first.structure
    for wrong, message in ((rows[0], "found a flat list"), (3, "expected rows"), (rows * 0.5, "structure")):
        with pytest.raises(UserError, match=message):
            autosf.train(graph, wrong)
