"""The live view follows a run through its session, a kill, and its end, from the files alone."""

import json

import pytest

from autosf.app.final_model import final_model
from autosf.app.live_file import NAME
from autosf.app.request import Request
from autosf.app.searching import begun, served
from autosf.app.web import watching
from autosf.app.web.site import Site
from autosf.app.web.watching import Watch
from autosf.embedding.settings import TrainingSettings
from autosf.graph.synthetic import patterned_graph
from autosf.runs.ledger import held

SETTINGS = TrainingSettings(epochs=4, dimension=8, learning_rate=0.3)


@pytest.fixture(scope="module")
def graph():
    return patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1)


@pytest.fixture
def run(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.0)
    return begun(graph, Request("", SETTINGS, strategy="random", trials=3), tmp_path / "run")


@pytest.fixture
def client(run, client_of, monkeypatch):
    monkeypatch.setattr("autosf.app.web.site.LOOK_SECONDS", 0.0)
    return client_of(Site("run", run.model, Watch(run)))


def test_a_search_is_seen_from_its_first_trial_to_its_model(run, graph, client):
    seen = []
    before = client.get("/api/status").json()
    assert (before["search"]["state"], before["search"]["trials"], before["model"]) == ("stopped", 0, None)
    assert client.get("/api/leaderboard").json()["leaderboard"] == []
    assert client.get("/api/entities").status_code == 409
    assert client.get("/", follow_redirects=False).headers["location"] == "/live"
    served(run, workers=1, progress=lambda _: seen.append(client.get("/api/status").json()["search"]))
    assert {status["state"] for status in seen} == {"running"}
    assert [status["trials"] for status in seen] == sorted(status["trials"] for status in seen)
    assert any(status["running"] for status in seen)
    seen.clear()
    final_model(run, graph, "cpu", lambda _: seen.append(client.get("/api/status").json()["search"]))
    assert {status["state"] for status in seen} == {"training"}
    assert seen[0]["running"][0]["worker"] is None
    after = client.get("/api/leaderboard").json()
    assert (after["state"], after["ending"], len(after["leaderboard"])) == (
        "ended",
        "all 3 trials are done",
        3,
    )
    assert after["best"]["valid_mrr"] == after["leaderboard"][0]["valid_mrr"]
    assert eventually_ready(client)
    assert client.get("/api/entities", params={"q": "e0"}).json()["entities"]
    for name in ("search", "curves"):
        drawn = client.get(f"/drawings/{name}.svg")
        assert drawn.headers["content-type"] == "image/svg+xml"
        assert drawn.text.startswith("<svg")


def eventually_ready(client) -> bool:
    import time

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if client.get("/api/status").json()["model_state"] == "ready":
            return True
        time.sleep(0.05)
    return False


def test_what_a_kill_has_left_is_not_shown_as_running(run, client):
    rows = [
        {
            "slot": 0,
            "structure": "[[1,0],[0,2]]",
            "epochs": 9,
            "seed": 0,
            "epoch": 3,
            "valid_mrr": None,
            "at": 0,
        }
    ]
    (run.folder / NAME).write_text(json.dumps({"running": rows}))
    assert client.get("/api/status").json()["search"]["running"] == []
    with held(run.lock):
        (trial,) = client.get("/api/status").json()["search"]["running"]
        assert (trial["epoch"], trial["epochs"], trial["names"]) == (3, 9, [])


def test_the_ledger_is_read_again_only_after_it_has_changed(run):
    watch = Watch(run)
    first = watch.sight()
    assert watch.sight().outcome is first.outcome
    assert watch.sight().version == first.version
    served(run, workers=1)
    later = watch.sight()
    assert later.version != first.version
    assert len(later.outcome.records) == 3
    assert watch.sight().outcome is later.outcome, "looking is no change"


def test_a_run_that_is_gone_is_told_without_its_place(run, client):
    run.ledger.rename(run.folder / "elsewhere")
    answer = client.get("/api/leaderboard")
    assert (answer.status_code, answer.json()["error"]) == (409, "the run cannot be read at the moment")
    assert str(run.folder) not in answer.text
