"""The commands on models: the keys programs rely on, tables for people, one line for a mistake."""

import json
import os
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import click
import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.numpy import save_file

from autosf.app.commands.models import classify, evaluate, export, predict
from autosf.app.predicting import AskableModel, load
from autosf.embedding.model_folder import save_model
from autosf.errors import UserError
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank_plainly
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.reading import read_graph
from autosf.graph.writing import write_graph
from random_models import STRANGE_LABELS, random_graph, random_model

METRICS = {"mrr", "hits_at_1", "hits_at_3", "hits_at_10", "mean_rank", "count"}
COMMANDS = [evaluate, classify, predict, export]


@pytest.fixture(scope="module")
def trained():
    return random_model(random_graph())


@pytest.fixture
def folder(tmp_path, trained):
    return str(save_model(tmp_path / "model", trained))


@pytest.fixture
def bare(tmp_path, trained):
    return str(save_model(tmp_path / "bare", trained, with_triples=False))


def text(command: click.Command, *arguments: object) -> str:
    done = CliRunner().invoke(command, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def result(command: click.Command, *arguments: object) -> dict:
    return json.loads(text(command, *arguments, "--json"))


def refused(command: click.Command, *arguments: object) -> str:
    with pytest.raises((UserError, click.UsageError)) as caught:
        command.main([*map(str, arguments)], standalone_mode=False)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_has_a_sentence_an_example_and_json(command):
    sentence = command.get_short_help_str(200)
    assert sentence.endswith(".")
    assert not sentence.endswith("...")
    assert command.epilog.startswith(f"Example: autosf {command.name}")
    assert any(parameter.name == "as_json" for parameter in command.params)


def test_evaluate_has_the_keys_programs_rely_on_and_the_numbers_of_ranking(folder, trained):
    found = result(evaluate, folder)
    assert METRICS | {"unseen_count", "groups"} <= set(found)
    ranks = rank_plainly(trained.model, trained.graph.test, AskableModel(trained).known_answers())
    assert found["mrr"] == pytest.approx(summarise(ranks).mrr)
    assert found["count"] == len(trained.graph.test)
    assert found["groups"] == {}
    assert found["mrr_interval"][0] <= found["mrr"] <= found["mrr_interval"][1]
    shown = text(evaluate, folder)
    assert "AMRI" in shown
    assert f"{found['adjusted_mean_rank_index']:.4f}" in shown


def test_evaluate_says_when_ranks_are_estimates(folder, trained):
    found, exact = result(evaluate, folder, "--candidates", 6), result(evaluate, folder)
    assert (found["sampled"], found["candidates"]) == (True, 6)
    assert (exact["sampled"], exact["candidates"]) == (False, len(trained.entities))
    assert found["mrr"] != exact["mrr"]
    assert result(evaluate, folder, "--candidates", 10**9) == exact
    assert "ranks estimated from 6 candidates" in text(evaluate, folder, "--candidates", 6)
    assert "estimated" not in text(evaluate, folder)


@pytest.mark.parametrize("by", ["relation", "pattern", "side", "category"])
def test_evaluate_by_groups(folder, by):
    found = result(evaluate, folder, "--by", by, "--split", "valid")
    assert found["groups"]
    assert all(set(group) >= METRICS for group in found["groups"].values())
    if by != "side":
        assert sum(group["count"] for group in found["groups"].values()) == found["count"]
    assert f"By {by}" in text(evaluate, folder, "--by", by)


def test_evaluate_needs_triples_and_takes_them_from_the_graph(bare, tmp_path, folder):
    assert "--graph" in refused(evaluate, bare)
    write_graph(random_graph(), tmp_path / "graph")
    assert result(evaluate, bare, "--graph", tmp_path / "graph")["mrr"] == result(evaluate, folder)["mrr"]
    write_graph(random_graph(1), tmp_path / "other")
    assert "not the one the model was trained on" in refused(evaluate, bare, "--graph", tmp_path / "other")


def test_a_split_without_triples_is_refused(tmp_path):
    graph = KnowledgeGraph.from_ids("g", ["a", "b"], ["r"], {"train": [[0, 0, 1]]})
    folder = save_model(tmp_path / "model", random_model(graph))
    told = 'graph "g": its test split has no triples to rank; --split train ranks those of train'
    assert refused(evaluate, folder) == told
    assert result(evaluate, folder, "--split", "train")["count"] == 1


def test_classify_has_the_keys_programs_rely_on(folder):
    found = result(classify, folder)
    assert {"accuracy", "thresholds", "fallback_count"} <= set(found)
    assert 0 <= found["accuracy"] <= 1
    assert set(found["thresholds"]) <= {f"r{i}" for i in range(4)}
    assert found["negatives"] == "made, seed 0"
    assert found == result(classify, folder, "--seed", 0)
    assert "accuracy" in text(classify, folder)


def test_classify_without_a_split_says_which_and_what_to_do(tmp_path):
    graph = KnowledgeGraph.from_ids("g", ["a", "b"], ["r"], {"train": [[0, 0, 1]], "valid": [[1, 0, 0]]})
    folder, negatives = save_model(tmp_path / "model", random_model(graph)), tmp_path / "own"
    told = refused(classify, folder)
    assert told.startswith('graph "g": expected triples in valid and test')
    assert "found none in test; --negatives FOLDER" in told
    negatives.mkdir()
    for split in ("valid", "test"):
        (negatives / f"{split}_neg.tsv").write_text("b\tr\ta\t1\na\tr\ta\t-1\n")
    assert result(classify, folder, "--negatives", negatives)["count"] == 2


def test_classify_uses_the_negatives_of_the_graph(folder, tmp_path):
    for split in ("valid", "test"):
        rows = [("e1", "r1", "e2", 1), ("e2", "r1", "e1", -1), ("e1", "r2", "e2", 1)]
        lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
        (tmp_path / f"{split}_neg.tsv").write_text(lines)
    found = result(classify, folder, "--negatives", tmp_path)
    assert found["count"] == 3
    assert found["fallback_count"] == 1
    assert list(found["thresholds"]) == ["r1"]
    assert found["negatives"] == str(tmp_path)


def test_python_measures_as_the_commands_do(folder, tmp_path):
    asked = load(folder)
    assert asked.evaluate() == result(evaluate, folder)
    found = result(evaluate, folder, "--split", "valid", "--by", "relation", "--candidates", 6)
    assert asked.evaluate("valid", by="relation", candidates=6) == found
    assert asked.classify(seed=3) == result(classify, folder, "--seed", 3)
    graph = write_graph(random_graph(), tmp_path / "graph")
    for split in ("valid", "test"):
        (graph / f"{split}_neg.tsv").write_text("e1\tr1\te2\t1\ne2\tr1\te1\t-1\n")
    assert asked.classify(graph) == result(classify, folder, "--negatives", graph)
    assert load(folder, graph=graph).classify() == result(classify, folder, "--graph", graph)
    assert load(folder, graph=graph).classify()["count"] == 2


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda asked: asked.evaluate("tset"), 'split: unknown value "tset"; did you mean "test"?'),
        (lambda asked: asked.evaluate(by="relations"), 'by "relations"; did you mean "relation"'),
        (lambda asked: asked.evaluate(candidates=1), "candidates: expected a number from 2, found 1"),
        (lambda asked: asked.classify(seed=-1), "seed: expected a number from 0, found -1"),
    ],
)
def test_measuring_in_python_tells_mistakes_in_one_line(folder, ask, words):
    with pytest.raises(UserError, match=words) as caught:
        ask(load(folder))
    assert "\n" not in str(caught.value)


def test_predict_has_the_keys_programs_rely_on(folder):
    asked = load(folder)
    tails = result(predict, folder, "--head", "e3", "--relation", "r1", "--top", 4)["predictions"]
    assert tails == asked.predict_tails("e3", "r1", 4).to_dicts()
    assert set(tails[0]) == {"entity", "score", "known"}
    heads = result(predict, folder, "--relation", "r1", "--tail", "e3", "--hide-known")["predictions"]
    assert heads == asked.predict_heads("r1", "e3", known="hide").to_dicts()
    relations = result(predict, folder, "--head", "e1", "--tail", "e3")["predictions"]
    assert set(relations[0]) == {"relation", "score", "known"}
    assert len(relations) == 4


def test_predict_judges_a_triple(folder):
    question = ("--head", "e1", "--relation", "r1", "--tail", "e2")
    (row,) = result(predict, folder, *question)["predictions"]
    assert row == load(folder).judge([("e1", "r1", "e2")]).to_dicts()[0]
    shown = text(predict, folder, *question)
    assert "e1  r1  e2" in shown
    assert f"{row['probability']:.2f} among as many true as false" in shown
    assert "tail's place" in shown


def test_predict_finds_neighbours_and_new_facts(folder):
    asked = load(folder)
    near = result(predict, folder, "--near", "e3", "--top", 2)["predictions"]
    assert near == asked.neighbours("e3", 2).to_dicts()
    facts = result(predict, folder, "--new-facts", "--relation", "r2", "--each", 1, "--all-pairs")[
        "predictions"
    ]
    assert set(facts[0]) == {"head", "relation", "tail", "score", "known"}
    assert len({(row["head"], row["relation"]) for row in facts}) == 10
    assert {row["relation"] for row in facts} == {"r2"}
    assert "New facts" in text(predict, folder, "--new-facts")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "expected two of --head, --relation and --tail"),
        (["--head", "e1"], "expected two of"),
        (["--head", "e1", "--relation", "r1", "--tail", "e2", "--new-facts"], "expected two of"),
        (["--head", "e1", "--relation", "r1", "--tail", "e2x"], 'unknown entity "e2x"'),
        (["--head", "e1", "--new-facts"], "expected two of"),
        (["--near", "e1", "--head", "e1"], "expected two of"),
        (["--head", "e1", "--relation", "r1", "--each", "2"], "go with --new-facts"),
        (["--new-facts", "--each", "0"], "0 is not in the range x>=1"),
        (["--head", "e1", "--relation", "r1", "--top", "0"], "top: expected a number from 1"),
        (["--near", "e1", "--hide-known"], "--hide-known goes with two of --head, --relation and --tail"),
        (["--new-facts", "--hide-known"], "--hide-known goes with two of"),
        (
            ["--head", "e1", "--relation", "r1", "--tail", "e2", "--hide-known"],
            "--hide-known goes with two of",
        ),
        (["--head", "e1", "--relation", "r1", "--tail", "e2", "--top", "3"], "--top goes with questions"),
        (["--head", "e1x", "--relation", "r1"], 'unknown entity "e1x"; did you mean'),
        (["--head", "e1", "--relation", "r11"], 'did you mean "r1"'),
    ],
)
def test_mistaken_questions_are_told_in_one_line(folder, options, words):
    assert words in refused(predict, folder, *options)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_what_is_no_model_is_refused_in_one_line(command, tmp_path):
    rest = {predict: ["--near", "x"], export: ["--to", "npz", tmp_path / "out"]}.get(command, [])
    assert "there is no such folder" in refused(command, tmp_path / "nothing", *rest)
    assert "not a model folder" in refused(command, tmp_path, *rest)


def test_strange_labels_are_shown_as_they_are_and_never_obeyed(tmp_path):
    graph = random_graph(labels=STRANGE_LABELS, entities=20, relations=len(STRANGE_LABELS), triples=200)
    folder = save_model(tmp_path / "model", random_model(graph))
    shown = text(predict, folder, "--head", "[red]markup[/red]", "--relation", "tab\there", "--top", 20)
    assert "[red]markup[/red]" in shown
    assert "line\\nbreak" in shown
    assert "\u202e" not in shown
    rows = result(predict, folder, "--head", "line\nbreak", "--relation", "🦊 emoji", "--top", 20)[
        "predictions"
    ]
    assert {row["entity"] for row in rows} == set(graph.entities.labels)
    assert text(evaluate, folder, "--by", "relation", "--split", "train")


@pytest.mark.parametrize("reciprocal", [False, True])
def test_exported_files_open_with_other_tools(tmp_path, reciprocal):
    trained = random_model(random_graph(), reciprocal=reciprocal)
    folder = save_model(tmp_path / "model", trained)
    entities, labels = trained.model.entities.numpy(), trained.entities.labels.to_list()

    assert result(export, folder, "--to", "npz", tmp_path / "a.npz")["path"] == str(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["entities"], entities)
        assert np.array_equal(arrays["relations"], trained.model.relations.numpy()[:4])
        assert ("reciprocal_relations" in arrays) == reciprocal
        assert arrays["entity_labels"].tolist() == labels
        assert arrays["relation_labels"].tolist() == trained.relations.labels.to_list()

    text(export, folder, "--to", "safetensors", tmp_path / "a.safetensors")
    with safe_open(tmp_path / "a.safetensors", framework="np") as file:
        assert np.array_equal(file.get_tensor("entities"), entities)
        assert json.loads(file.metadata()["entity_labels"]) == labels
        assert json.loads(file.metadata()["structure"])[0] == [1, 0, 3, 0]

    text(export, folder, "--to", "parquet", tmp_path / "a.parquet")
    table = pl.read_parquet(tmp_path / "a.parquet")
    assert (
        table["kind"].unique().sort().to_list()
        == ["entity", "reciprocal", "relation"][:: 1 if reciprocal else 2]
    )
    rows = table.filter(pl.col("kind") == "entity")
    assert rows["label"].to_list() == labels
    assert np.array_equal(np.array(rows["vector"].to_list(), np.float32), entities)

    text(export, folder, "--to", "word2vec", tmp_path / "a.txt")
    lines = (tmp_path / "a.txt").read_text().splitlines()
    assert lines[0] == "20 8"
    assert [line.split(" ")[0] for line in lines[1:]] == labels
    assert np.array_equal(np.array([line.split(" ")[1:] for line in lines[1:]], np.float32), entities)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    assert len({path.stat().st_mode for path in tmp_path.glob("a.*")}) == 1


@pytest.mark.slow
def test_gensim_opens_what_is_exported_as_word2vec(tmp_path):
    """With labels that hold white space and characters of other scripts."""
    from gensim.models import KeyedVectors

    names = ["new york", "東京", "é\u2003x", "#1", *(f"e{number}" for number in range(16))]
    triples = [[number, 0, (number + 1) % 20] for number in range(20)]
    graph = KnowledgeGraph.from_ids("g", names, ["r"], {"train": triples})
    trained = random_model(graph)
    folder = save_model(tmp_path / "model", trained)
    text(export, folder, "--to", "word2vec", tmp_path / "a.txt")
    vectors = KeyedVectors.load_word2vec_format(str(tmp_path / "a.txt"), binary=False)
    assert {"new_york", "東京", "é_x", "#1"} <= set(vectors.index_to_key)
    for label, row in zip(trained.entities.labels, trained.model.entities.numpy(), strict=True):
        assert np.array_equal(vectors["_".join(label.split())], row)
    assert len(vectors.most_similar("new_york", topn=3)) == 3


def test_labels_that_a_form_cannot_hold_are_refused_and_nothing_is_left(tmp_path):
    graph = KnowledgeGraph.from_ids("g", ["a b", "a_b", "c\0"], ["r"], {"train": [[0, 0, 1], [1, 0, 2]]})
    folder = save_model(tmp_path / "model", random_model(graph))
    assert "word2vec cannot hold" in refused(export, folder, "--to", "word2vec", tmp_path / "x")
    assert "ends in a zero byte" in refused(export, folder, "--to", "npz", tmp_path / "x")
    assert "found a folder" in refused(export, folder, "--to", "npz", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    text(export, folder, "--to", "parquet", tmp_path / "x")
    assert pl.read_parquet(tmp_path / "x")["label"].to_list() == ["a b", "a_b", "c\0", "r"]


def test_a_model_of_a_large_vocabulary_of_long_labels_is_refused_for_npz(tmp_path):
    labels = ["x" * 1_000_000, *(f"e{i}" for i in range(400))]
    graph = KnowledgeGraph.from_ids("g", labels, ["r"], {"train": [[i, 0, 0] for i in range(401)]})
    folder = save_model(tmp_path / "model", random_model(graph))
    assert "too long for a numpy array" in refused(export, folder, "--to", "npz", tmp_path / "x")


@pytest.mark.parametrize("form", ["safetensors", "npz", "word2vec", "parquet"])
def test_export_replaces_its_own_files_and_others_only_by_force(folder, tmp_path, form):
    out = tmp_path / "x"
    out.touch()
    for _ in range(2):
        text(export, folder, "--to", form, out)
    written = out.read_bytes()
    out.write_text("a letter\n")
    assert "found another file; name another, or add --force" in refused(export, folder, "--to", form, out)
    assert out.read_text() == "a letter\n"
    text(export, folder, "--to", form, out, "--force")
    assert out.read_bytes()[:9] == written[:9]
    assert "--force goes with files" in refused(export, folder, "--to", "pykeen", tmp_path / "y", "--force")


def others_of_a_form(folder: Path) -> dict[str, Path]:
    """Files of other people's that begin as an export of the form does."""
    found = {form: folder / f"other.{form}" for form in ("safetensors", "npz", "word2vec", "parquet")}
    save_file({"entities": np.zeros((2, 2), np.float32)}, found["safetensors"])
    with ZipFile(found["npz"], "w") as backup:
        backup.writestr("letter.txt", "dear all")
    found["word2vec"].write_text("12 3\n4 17\n")
    pl.DataFrame({"head": ["a"], "relation": ["r"], "tail": ["b"]}).write_parquet(found["parquet"])
    return found


@pytest.mark.parametrize("form", ["safetensors", "npz", "word2vec", "parquet"])
def test_export_replaces_no_file_of_its_form_that_it_did_not_write(folder, tmp_path, form):
    out = others_of_a_form(tmp_path)[form]
    before = out.read_bytes()
    assert "found another file" in refused(export, folder, "--to", form, out)
    out.write_bytes(before[: len(before) // 2])
    assert "found another file" in refused(export, folder, "--to", form, out)
    assert out.read_bytes() == before[: len(before) // 2]


@pytest.mark.parametrize("text_of_ids", ["7 1\n8 2\n", "3 2\na b c\n", "3 2\n"])
def test_export_to_word2vec_replaces_no_table_of_ids(folder, tmp_path, text_of_ids):
    (tmp_path / "ids").write_text(text_of_ids)
    assert "found another file" in refused(export, folder, "--to", "word2vec", tmp_path / "ids")


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_export_never_replaces_a_file_of_a_model(folder, tmp_path, force):
    (tmp_path / "link").symlink_to(Path(folder, "model.safetensors"))
    for out in (*Path(folder).iterdir(), tmp_path / "link"):
        before, form = out.read_bytes(), "parquet" if out.suffix == ".parquet" else "safetensors"
        assert "is a file of a model" in refused(export, folder, "--to", form, out, *force)
        assert out.read_bytes() == before
    text(export, folder, "--to", "npz", Path(folder, "vectors.npz"), *force)
    assert load(folder)


def test_export_follows_links_and_leaves_alone_what_is_no_file(folder, tmp_path):
    (tmp_path / "link").symlink_to("target.npz")
    text(export, folder, "--to", "npz", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(np.load(tmp_path / "target.npz")["entities"]) == 20
    os.mkfifo(tmp_path / "pipe")
    assert "found a device or a pipe" in refused(export, folder, "--to", "npz", tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_predict_says_of_whom_nothing_was_learnt(tmp_path):
    graph = random_graph()
    train = graph.train[(graph.train[:, [0, 2]] != 3).all(1)]
    lonely = replace(graph, train=train, test=np.array([[3, 0, 4]], dtype=np.int32))
    folder, label = str(save_model(tmp_path / "model", random_model(lonely))), graph.entities.label(3)
    for question in (["--head", label, "--relation", graph.relations.label(0)], ["--near", label]):
        done = CliRunner().invoke(predict, [folder, *question], catch_exceptions=False)
        assert done.exit_code == 0
        assert f'"{label}" is in no train triple' in done.stderr
    known = graph.entities.label(int(train[0, 0]))
    assert CliRunner().invoke(predict, [folder, "--near", known]).stderr == ""


QUESTIONS = [("?", "r0", "e1"), ("e2", "?", "e3"), ("e0", "r1", "?"), ("?", "r2", "e4")]


def written(path, rows, header=""):
    path.write_text(header + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_questions_of_a_file_are_answered_as_one_by_one(folder, tmp_path):
    file = written(tmp_path / "questions.tsv", QUESTIONS, "head\trelation\ttail\n")
    rows = result(predict, folder, "--from", file, "--top", 3)["predictions"]
    asked = load(folder)
    singly = [
        asked.predict_heads("r0", "e1", 3),
        asked.predict_relations("e2", "e3", 3),
        asked.predict_tails("e0", "r1", 3),
        asked.predict_heads("r2", "e4", 3),
    ]
    for number, (question, answers) in enumerate(zip(QUESTIONS, singly, strict=True), 1):
        mine = [row for row in rows if row["question"] == number]
        role = ("head", "relation", "tail")[question.index("?")]
        assert {row["asked"] for row in mine} == {role}
        assert [row[role] for row in mine] == answers.to_series(0).to_list()
        assert [row["score"] for row in mine] == pytest.approx(answers["score"].to_list())
    assert [row["question"] for row in rows] == sorted(row["question"] for row in rows)
    assert "question" in text(predict, folder, "--from", file)


def test_triples_of_a_file_are_judged(folder, tmp_path):
    triples = [("e0", "r1", "e2"), ("e3", "r0", "e1")]
    file = written(tmp_path / "triples.tsv", triples)
    assert result(predict, folder, "--from", file)["predictions"] == load(folder).judge(triples).to_dicts()
    for option in (["--top", 3], ["--hide-known"]):
        told = refused(predict, folder, "--from", file, *option)
        assert f"triples.tsv: {option[0]} goes with questions, found none with a ?" in told


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("e0", "r1", "?"), ("?", "r1", "?")], "questions.tsv:2: expected one ?, found several"),
        (
            [("e0", "r1", "?"), ("e0", "r1", "e1")],
            "questions.tsv:2: expected a ? as in other rows, found none",
        ),
        ([("e0", "r1", "?"), ("e0", "nope", "?")], 'questions.tsv:2: unknown relation "nope"'),
        ([("e0", "r1", "?"), ("", "r1", "?")], "questions.tsv:2: expected a label in field 1"),
    ],
)
def test_a_wrong_line_of_a_file_of_questions_is_named(folder, tmp_path, rows, message):
    assert message in refused(predict, folder, "--from", written(tmp_path / "questions.tsv", rows))


def test_questions_from_a_pipe_or_a_device_are_told_as_such(folder, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", "/dev/null"):
        assert f"{place}: expected a file, found a device or a pipe" in refused(
            predict, folder, "--from", place
        )
    assert "nowhere: there is no such file" in refused(predict, folder, "--from", tmp_path / "nowhere")


def test_a_wrong_row_of_parquet_is_named(folder, tmp_path):
    rows = [("e0", "r1", "?"), ("e0", "r1", "nobody")]
    pl.DataFrame(rows, ("head", "relation", "tail"), orient="row").write_parquet(tmp_path / "q.parquet")
    assert "q.parquet: row 2: " in refused(predict, folder, "--from", tmp_path / "q.parquet")


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet", "jsonl", "ndjson"])
def test_answers_that_are_written_can_be_asked_about(tmp_path, ending):
    labels = [
        'say "hi"',
        '"quoted"',
        "a, b",
        "it's",
        "\U0001f98a",
        " spaces ",
        *(["two\nlines"] * (ending != "tsv")),
    ]
    graph = random_graph(labels=labels, entities=20, relations=len(labels), triples=100)
    folder, out = save_model(tmp_path / "model", random_model(graph)), tmp_path / f"facts.{ending}"
    result(predict, folder, "--new-facts", "--top", 400, "--out", out)
    found = load(folder).new_facts(400).drop("score")
    judged = result(predict, folder, "--from", out)["predictions"]
    assert judged == load(folder).judge(found).to_dicts()
    assert '"quoted"' in found["head"]


@pytest.mark.parametrize("label", ["tab\there", "line\nbreak", "carriage\rreturn"])
def test_labels_that_would_tear_a_tsv_apart_are_refused(tmp_path, label):
    graph = random_graph(labels=[label])
    folder = save_model(tmp_path / "model", random_model(graph))
    told = refused(predict, folder, "--near", "e1", "--top", 20, "--out", tmp_path / "near.tsv")
    assert "a label with a tab or a line end does not go into a .tsv; name a .csv" in told
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "ndjson"])
def test_questions_of_a_table_ask_for_what_is_null(folder, tmp_path, ending):
    file = tmp_path / f"questions.{ending}"
    rows = [("e0", "r1", None), ("?", "r2", "e4")]
    frame = pl.DataFrame(rows, ("head", "relation", "tail"), orient="row")
    frame.write_parquet(file) if ending == "parquet" else frame.write_ndjson(file)
    found = result(predict, folder, "--from", file)["predictions"]
    assert found == load(folder).predict_many(rows).to_dicts()


def test_a_file_that_is_no_json_is_told_in_one_line(folder, tmp_path):
    (tmp_path / "q.jsonl").write_text("e0\tr1\t?\n")
    assert "q.jsonl: expected a jsonl file, found something else" in refused(
        predict, folder, "--from", tmp_path / "q.jsonl"
    )


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet", "jsonl"])
def test_answers_are_written_to_a_file(folder, tmp_path, ending):
    out = tmp_path / "new" / f"answers.{ending}"
    told = result(predict, folder, "--new-facts", "--top", 5, "--out", out)
    assert told == {"path": str(out), "count": 5}
    readers = {"parquet": pl.read_parquet, "jsonl": pl.read_ndjson, "csv": pl.read_csv}
    found = readers.get(ending, lambda path: pl.read_csv(path, separator="\t"))(out)
    rows = result(predict, folder, "--new-facts", "--top", 5)["predictions"]
    assert found["tail"].to_list() == [row["tail"] for row in rows]
    assert found["score"].to_list() == pytest.approx([row["score"] for row in rows])
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_a_form_that_nobody_writes_is_refused_before_anything_is_asked(folder, tmp_path):
    message = refused(predict, folder, "--new-facts", "--out", tmp_path / "answers.docx")
    assert 'found ".docx"' in message
    assert not list(tmp_path.glob("answers*"))


def test_labels_that_train_never_shows_are_counted(tmp_path, capsys):
    columns = {
        "train": [("a", "r", "b"), ("b", "r", "c")],
        "valid": [("a", "r", "c")],
        "test": [("x", "r", "y")],
    }
    graph = read_graph(columns)
    folder = save_model(tmp_path / "model", random_model(graph))
    file = written(tmp_path / "q.tsv", [("x", "r", "?"), ("?", "r", "y"), ("a", "r", "?")])
    predict.main([str(folder), "--from", str(file), "--json"], standalone_mode=False)
    assert 'labels in no train triple: "x" and 1 more' in capsys.readouterr().err
