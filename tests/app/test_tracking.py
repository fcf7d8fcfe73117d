"""Trainings and searches reach real TensorBoard files and a real MLflow store, and no tracker can end them."""

import json
import sys

import pytest

import autosf
from autosf.app import tracking
from autosf.app.cli import run
from autosf.app.tracking import Tracker, tracked
from autosf.errors import UserError
from autosf.graph.synthetic import patterned_graph
from autosf.graph.writing import write_graph

# Of SQLAlchemy and others below MLflow; not ours to mend.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"
)


@pytest.fixture
def graph(tmp_path):
    made = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1, test=0.1)
    return write_graph(made, tmp_path / "rules")


@pytest.fixture
def store(tmp_path, monkeypatch):
    """An MLflow database of its own, which reports to nobody."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


def scalars(folder) -> dict[str, list[tuple[int, float]]]:
    """All numbers in a folder's TensorBoard files: (step, value) by name."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(point.step, point.value) for point in events.Scalars(tag)] for tag in events.Tags()["scalars"]
    }


def texts(folder) -> list[str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return [event.tensor_proto.string_val[0].decode() for event in events.Tensors("settings/text_summary")]


def only_run(store: str):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=store)
    (found,) = client.search_runs([client.get_experiment_by_name("autosf").experiment_id])
    return client, found


SMALL = ["--dimension", "8", "--set", "validate_every=2"]


@pytest.mark.slow
def test_a_training_is_in_tensorboard_files(graph, tmp_path, capfd):
    words = ["train", str(graph), "--epochs", "4", *SMALL, "--out", str(tmp_path / "m")]
    assert run([*words, "--track", f"tensorboard:{tmp_path / 'boards'}", "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    found = scalars(tmp_path / "boards" / "m")
    assert found["loss"] == [(n, pytest.approx(e["loss"])) for n, e in enumerate(result["curve"], 1)]
    assert [step for step, _ in found["valid_mrr"]] == [2, 4]
    assert found["valid/mrr"] == [(4, pytest.approx(result["valid"]["mrr"]))]
    with tracked([f"tensorboard:{tmp_path / 'boards'}"], "words", {"graph": "umls"}) as tracker:
        tracker.words({"winner": "[[1,2],[-2,1]]"})
    assert texts(tmp_path / "boards" / "words")[-1].splitlines()[2:] == [
        "| graph | umls |",
        "| winner | [[1,2],[-2,1]] |",
    ]
    autosf.train(str(graph), epochs=2, dimension=8, track=f"tensorboard:{tmp_path / 'python'}")
    assert [step for step, _ in scalars(tmp_path / "python" / "rules")["loss"]] == [1, 2]


@pytest.mark.slow
def test_a_search_is_in_an_mlflow_store(graph, tmp_path, store, capfd):
    words = [
        "search",
        str(graph),
        "--strategy",
        "random",
        "--trials",
        "2",
        "--epochs",
        "2",
        *SMALL,
        "--workers",
        "1",
    ]
    assert run([*words, "--out", str(tmp_path / "run"), "--track", f"mlflow:{store}", "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    client, found = only_run(store)
    assert (found.info.run_name, found.info.status) == ("run", "FINISHED")
    assert {"graph": "rules", "strategy": "random", "dimension": "8"}.items() <= found.data.params.items()
    assert found.data.params["winner"] == json.dumps(result["best"]["structure"], separators=(",", ":"))
    history = client.get_metric_history(found.info.run_id, "trial_valid_mrr")
    assert [point.step for point in history] == [1, 2]
    assert found.data.metrics["best_valid_mrr"] == pytest.approx(result["best"]["valid_mrr"])
    assert [point.step for point in client.get_metric_history(found.info.run_id, "winner_loss")] == [1, 2]


@pytest.mark.slow
def test_an_interrupted_run_is_marked_as_such(store):
    def cut():
        with tracked([f"mlflow:{store}"], "cut", {"graph": "umls"}) as tracker:
            tracker.numbers(1, {"loss": 0.5, "valid_mrr": None, "worse": float("nan")})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut()
    _, found = only_run(store)
    assert found.info.status == "KILLED"
    assert found.data.metrics == {"loss": 0.5}


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ("tensorbord:x", 'found "tensorbord:x"; did you mean "tensorboard"?'),
        ("mlflow", 'expected tensorboard:FOLDER or mlflow:ADDRESS, found "mlflow"'),
        ("tensorboard:", "expected tensorboard:FOLDER"),
        ("tensorboard:rules/train.tsv", "cannot write there"),
        ("mlflow:nonsense://x", 'MLflow, "nonsense://x"'),
    ],
)
@pytest.mark.parametrize("command", ["train", "search"])
def test_a_tracker_that_cannot_be_opened_stops_the_start(
    graph, store, tmp_path, capfd, command, wish, message
):
    assert run([command, str(graph), "--epochs", "1", *SMALL, "--out", "made", "--track", wish]) == 2
    err = capfd.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rules"]


@pytest.mark.parametrize(
    ("module", "wish", "extra"),
    [
        ("mlflow", "mlflow:sqlite:///x.db", "mlflow"),
        ("torch.utils.tensorboard", "tensorboard:x", "tensorboard"),
    ],
)
def test_a_missing_extra_is_named_with_the_command_to_get_it(
    graph, store, capfd, monkeypatch, module, wish, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    assert run(["train", str(graph), "--epochs", "1", *SMALL, "--track", wish]) == 2
    assert f'needs the extra "{extra}": pip install "autosf[{extra}]"\n' in capfd.readouterr().err


def test_a_tracker_that_fails_is_told_once_and_ends_nothing(graph, tmp_path, monkeypatch, capfd):
    def refuse(*_):
        raise ConnectionError("the server is gone")

    failing = Tracker(lambda _: None, refuse, refuse)
    monkeypatch.setitem(tracking.TRACKERS, "failing", lambda _place, _name: failing)
    words = [
        "train",
        str(graph),
        "--epochs",
        "3",
        *SMALL,
        "--out",
        str(tmp_path / "m"),
        "--track",
        "failing:x",
    ]
    assert run(words) == 0
    assert capfd.readouterr().err == 'autosf: failing:x: no longer tracked ("the server is gone")\n'
    assert (tmp_path / "m" / "model.json").exists()


def test_what_was_opened_is_closed_when_another_cannot_be(monkeypatch):
    closed = []
    monkeypatch.setitem(tracking.TRACKERS, "one", lambda *_: Tracker(print, print, closed.append))
    with pytest.raises(UserError), tracked(["one:x", "other:y"], "name", {}):
        pass
    assert closed == [False]
