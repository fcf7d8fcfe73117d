"""The API answers as the model does from Python, and refuses in one line what it cannot answer."""

from dataclasses import replace

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal

from autosf.app.predicting import AskableModel
from autosf.app.web import explorer
from random_models import STRANGE_LABELS, random_graph, random_model


@pytest.mark.parametrize("known", ["mark", "hide"])
@pytest.mark.parametrize("absent", ["head", "relation", "tail"])
def test_predictions_are_those_of_the_model(client, asked, absent, known):
    entities, relations = asked.trained.entities.labels, asked.trained.relations.labels
    for place in range(6):
        labels = {"head": entities[place], "relation": relations[place], "tail": entities[place + 7]}
        del labels[absent]
        found = client.get("/api/predict", params={**labels, "top": 7, "known": known}).json()["predictions"]
        many = asked.predict_many({role: [label] for role, label in labels.items()}, 7, known)
        told = pl.DataFrame([{key: row[key] for key in row if key != "probability"} for row in found])
        assert_frame_equal(told, many.drop(*labels), check_dtypes=False)
        answers = [row["entity" if absent != "relation" else "relation"] for row in found]
        triples = [
            [{**labels, absent: answer}[role] for role in ("head", "relation", "tail")] for answer in answers
        ]
        expected = asked.predict_proba(triples)["probability"].to_list()
        assert [row["probability"] for row in found] == pytest.approx(expected)


def test_many_questions_are_answered_in_their_order(client):
    queries = [
        {"head": "plain", "relation": "it's"},
        {"relation": "plain", "tail": "🦊 emoji"},
        {"head": "plain", "tail": "../../etc/passwd"},
    ]
    answer = client.post("/api/predict", json={"queries": queries, "top": 3, "known": "hide"}).json()
    for query, result in zip(queries, answer["results"], strict=True):
        alone = client.get("/api/predict", params={**query, "top": 3, "known": "hide"}).json()
        assert result == {**query, **alone}


def test_a_verdict_has_probability_rank_and_whether_it_is_known(client, asked):
    head, relation, tail = (column[0] for column in asked.graph.columns("train"))
    verdict = client.get("/api/classify", params={"head": head, "relation": relation, "tail": tail}).json()
    row = asked.predict_proba([[head, relation, tail]]).to_dicts()[0]
    assert verdict["probability"] == pytest.approx(row["probability"])
    assert verdict["likely"] == (row["probability"] >= 0.5)
    assert verdict["known"] is True
    hidden = client.get(
        "/api/predict", params={"head": head, "relation": relation, "top": 100, "known": "hide"}
    )
    better = [answer for answer in hidden.json()["predictions"] if answer["score"] > verdict["score"]]
    assert verdict["tail_rank"] == len(better) + 1
    triples = [{"head": head, "relation": relation, "tail": tail}] * 2
    several = client.post("/api/classify", json={"triples": triples}).json()["results"]
    assert several[0] == pytest.approx(verdict)


def test_neighbours_are_the_facts_of_the_graph(client, asked):
    label = "<script>alert(1)</script>"
    found = client.get("/api/neighbours", params={"entity": label, "limit": 100}).json()
    told = set()
    for side in found["facts"]:
        assert side["count"] == len(side["entities"])
        for other in side["entities"]:
            triple = (label, side["relation"], other)
            told.add(triple if side["direction"] == "out" else triple[::-1])
    rows = {row for split, _ in asked.graph.splits() for row in zip(*asked.graph.columns(split), strict=True)}
    assert told == {row for row in rows if label in (row[0], row[2])}
    near = asked.neighbours(label, 100)
    assert [row["entity"] for row in found["similar"]] == near["entity"].to_list()
    assert [row["similarity"] for row in found["similar"]] == pytest.approx(
        near["similarity"].to_list(), abs=1e-6
    )


def test_every_label_comes_back_as_it_is(client):
    for label in STRANGE_LABELS:
        found = client.get("/api/neighbours", params={"entity": label})
        assert (found.status_code, found.json()["entity"]) == (200, label)
        assert found.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/api/predict?head=plain", 400, "expected two of head, relation and tail"),
        ("/api/predict?head=plain&relation=plain&tail=plain", 400, "expected two of"),
        ("/api/predict?head=plain&relation=plain&top=0", 400, "top: expected a whole number from 1 to 100"),
        ("/api/predict?head=plain&relation=plain&top=1e3", 400, "top: expected a whole number"),
        ("/api/predict?head=plain&relation=plain&known=no", 400, 'known: expected "mark" or "hide"'),
        ("/api/predict?hed=plain&relation=plain", 400, 'unknown parameter "hed"; did you mean "head"?'),
        ("/api/predict?head=plain&head=plain&relation=plain", 400, "head: expected once"),
        ("/api/predict?head=plian&relation=plain", 404, 'head: unknown entity "plian"'),
        ("/api/classify?head=plain&relation=plain", 400, "expected head, relation and tail"),
        ("/api/neighbours", 400, "entity: expected a label, found none"),
        ("/api/entities?limit=many", 400, "limit: expected a whole number from 1 to 200"),
        ("/api/leaderboard", 409, "a model is served here, not a search"),
        ("/drawings/structure.svg?rows=[[1,0]]", 400, "structure"),
        ("/assets/../server.py", 404, "not found"),
        ("/assets/%2e%2e/server.py", 404, "not found"),
        ("/etc/passwd", 404, "not found"),
    ],
)
def test_mistakes_are_told_in_one_line(client, path, status, message):
    answer = client.get(path)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "suggestions"})
    assert message in answer.json()["error"]
    assert "\n" not in answer.json()["error"]


def test_a_misspelt_label_is_answered_with_the_nearest(client):
    answer = client.get("/api/classify", params={"head": "plian", "relation": "plain", "tail": "🦊 emoij"})
    assert answer.json()["suggestions"] == ["plain"]
    answer = client.get("/api/neighbours", params={"entity": "🦊 emoij"})
    assert answer.json()["suggestions"] == ["🦊 emoji"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "body: expected a JSON object"),
        (b"[]", 400, "body: expected a JSON object, found another"),
        (b'{"quries": []}', 400, 'unknown key "quries"; did you mean "queries"?'),
        (b'{"queries": []}', 400, "queries: expected a list of 1 to 256 objects"),
        (b'{"queries": [{"head": 3, "tail": "plain"}]}', 400, "queries[0]: head: expected a label"),
        (b'{"queries": [{"head": "plain", "tail": "plain"}], "top": true}', 400, "top: expected a whole"),
        (b'{"queries": [{"head": "\\ud800", "tail": "plain"}]}', 404, 'head: unknown entity "\\ud800"'),
        (b'{"queries": ' + b"[" * 100_000, 400, "body: expected a JSON object"),
        (b" " * (300 << 10), 413, "body: expected at most 256 KiB"),
    ],
    ids=range(9),
)
def test_bodies_are_read_strictly(client, body, status, message):
    answer = client.post("/api/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert message in answer.json()["error"]


def test_a_body_of_another_kind_is_refused(client):
    assert client.post("/api/classify", content=b"{}").status_code == 415
    assert client.delete("/api/predict").status_code == 405


def test_a_model_without_triples_knows_no_facts(site_with, client_of, trained):
    client = client_of(site_with(trained, with_triples=False))
    status = client.get("/api/status").json()
    assert (status["model"]["knows_triples"], status["model"]["has_probabilities"]) == (False, False)
    answer = client.get("/api/predict", params={"head": "plain", "relation": "plain"}).json()
    assert {(row["known"], row["probability"]) for row in answer["predictions"]} == {(None, None)}
    hide = client.get("/api/predict", params={"head": "plain", "relation": "plain", "known": "hide"})
    assert (hide.status_code, "saved without its triples" in hide.json()["error"]) == (409, True)
    assert client.get("/api/neighbours", params={"entity": "plain"}).json()["facts"] == []
    assert (
        client.get("/api/classify", params={"head": "plain", "relation": "plain", "tail": "it's"}).json()[
            "likely"
        ]
        is None
    )


def test_scores_that_are_no_numbers_are_null(site_with, client_of):
    made = random_model(random_graph())
    rows = made.model.entities.clone()
    rows[3] = 3e38  # finite, as a folder must be, but its scores are not
    client = client_of(site_with(replace(made, model=replace(made.model, entities=rows))))
    answer = client.get("/api/predict", params={"head": "e1", "relation": "r1", "top": 100})
    assert answer.status_code == 200
    asked = AskableModel(made).trained.entities.label(3)
    for path in ("/api/classify?relation=r1&tail=e1&head=", "/api/neighbours?entity="):
        assert client.get(path + asked).status_code == 200


def test_our_own_mistakes_tell_nothing_of_our_insides(site_with, client_of, trained):
    site = site_with(trained)
    site._explorer = None
    site.explorer = lambda: 1 / 0
    answer = client_of(site).get("/api/entities")
    assert answer.status_code == 500
    assert answer.json() == {"error": "the server made a mistake; its log says more", "suggestions": []}
    assert "content-security-policy" in answer.headers


def test_pages_and_their_files_are_served_whole(client):
    assert client.get("/", follow_redirects=False).headers["location"] == "/explore"
    for path, kind in (("/live", "text/html"), ("/explore", "text/html"), ("/api", "text/html")):
        page = client.get(path)
        assert page.headers["content-type"].startswith(kind)
        for place in page.text.split('"/assets/')[1:]:
            assert client.get("/assets/" + place.partition('"')[0]).status_code == 200
    assert client.get("/api/openapi.json").json()["openapi"].startswith("3.1")


def test_no_page_names_another_server_or_carries_code_of_its_own(client):
    for path in ("/live", "/explore", "/api"):
        page = client.get(path).text
        assert "://" not in page
        assert page.count("<script") == page.count('<script type="module" src="/assets/')
        assert " style=" not in page
        assert " on" not in [part[:3] for part in page.split("<")]


def test_a_large_model_has_as_many_threads_as_cores_are_ours(asked, monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(explorer, "LARGE", 0)
    monkeypatch.setattr(explorer, "cores", lambda: 3)
    monkeypatch.setattr("os.cpu_count", lambda: 5)
    try:
        explorer.explorer_of(asked)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
