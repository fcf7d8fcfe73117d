"""`autosf compare`: its keys, what each word stands for, transfer between graphs, and going on after a kill."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from autosf.app.cli import run
from autosf.app.compare_tables import comparison_for_people
from autosf.app.comparing import Meeting, arena_of
from autosf.app.contestants import contestants_in, split_outside_brackets
from autosf.embedding.model_folder import plain as plain_json
from autosf.embedding.model_folder import save_model
from autosf.embedding.settings import TrainingSettings
from autosf.graph.registry import packaged_folders
from autosf.graph.writing import write_graph
from autosf.runs.task import digest
from random_models import random_graph, random_model

needs_pykeen = pytest.mark.skipif(not packaged_folders(), reason="pykeen is not installed")
SMALL = ["--epochs", "2", "--dimension", "8"]


@pytest.fixture
def graph(tmp_path):
    folder = tmp_path / "graph"
    write_graph(random_graph(3, entities=25, triples=160), folder)
    return folder


def compared(capfd, *arguments):
    code = run(["compare", *map(str, arguments), "--json"])
    out, err = capfd.readouterr()
    return code, json.loads(out) if code == 0 else None, err


def test_the_keys_programs_rely_on(graph, capfd):
    code, result, _ = compared(capfd, graph, "--models", "complex,simple,rules", *SMALL)
    assert code == 0
    assert [row["model"] for row in result["rows"]] == ["complex", "simple", "rules"]
    for row in result["rows"]:
        for split in ("valid", "test"):
            assert 0 < row[split]["mrr"] <= 1
            assert row[split]["count"] == 20
        assert row["seconds"] > 0


def test_a_figure_is_that_of_train_and_evaluate(graph, capfd, tmp_path):
    _, result, _ = compared(capfd, graph, "--models", "simple", "--seed", 7, *SMALL)
    model = str(tmp_path / "m")
    assert run(["train", str(graph), "--structure", "simple", "--seed", "7", *SMALL, "--out", model]) == 0
    capfd.readouterr()
    assert run(["evaluate", model, "--json"]) == 0
    test = json.loads(capfd.readouterr().out)
    assert result["rows"][0]["test"]["mrr"] == pytest.approx(test["mrr"])
    _, again, _ = compared(capfd, graph, "--models", model)
    assert again["rows"][0]["test"]["mrr"] == pytest.approx(test["mrr"])
    assert again["rows"][0]["kind"] == "model"


def test_means_and_spread_are_over_the_seeds(graph, capfd):
    _, result, _ = compared(capfd, graph, "--models", "complex,rules", "--seeds", 3, "--seed", 5, *SMALL)
    ours, rules = result["rows"]
    values = [one["test"]["mrr"] for one in ours["runs"]]
    assert [one["seed"] for one in ours["runs"]] == [5, 6, 7]
    assert ours["test"]["mrr"] == pytest.approx(sum(values) / 3)
    assert ours["spread"]["test"] > 0
    assert (rules["seeds"], rules["spread"]["test"]) == (1, None)


def test_the_test_split_can_be_left_out_altogether(graph, capfd, tmp_path):
    """Another test split, the same figures: it is not even left out of a ranking."""
    options = ["--models", "complex,rules", "--split", "valid", *SMALL]
    _, result, _ = compared(capfd, graph, *options)
    other = tmp_path / "other"
    shutil.copytree(graph, other)
    test = next(other.glob("test*"))
    test.write_text("\n".join(test.read_text().splitlines()[:3]) + "\n")
    _, without, _ = compared(capfd, other, *options)
    assert [row["test"] for row in result["rows"]] == [None, None]
    assert [row["valid"] for row in result["rows"]] == [row["valid"] for row in without["rows"]]


def test_the_general_approximator_takes_part(graph, capfd):
    _, result, _ = compared(capfd, graph, "--models", "gen-approx,distmult", *SMALL)
    network, ours = result["rows"]
    assert (network["model"], network["kind"], network["epochs"]) == ("gen-approx", "network", ours["epochs"])
    assert network["parameters"] > ours["parameters"]
    assert 0 < network["test"]["mrr"] <= 1


def test_a_killed_comparison_goes_on_with_what_is_missing(graph, capfd, tmp_path, monkeypatch):
    import autosf.app.contestants as contestants

    out, trained = tmp_path / "out", contestants.trained_result
    calls = []

    def dies_at_the_third(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return trained(*arguments)

    monkeypatch.setattr(contestants, "trained_result", dies_at_the_third)
    options = ["--models", "complex,simple", "--seeds", 2, "--out", out, *SMALL]
    assert compared(capfd, graph, *options)[0] == 130
    assert len(list((out / "finished").iterdir())) == 2
    code, result, _ = compared(capfd, graph, *options)
    assert (code, len(calls)) == (0, 5)  # two kept, the third again, and the fourth
    assert [[one["kept"] for one in row["runs"]] for row in result["rows"]] == [[True, True], [False, False]]
    assert json.loads((out / "comparison.json").read_text()) == result
    compared(capfd, graph, *options)
    assert len(calls) == 5
    compared(capfd, graph, *options, "--set", "dropout=0.35")
    assert len(calls) == 9  # other settings are other results


def test_a_find_is_carried_to_other_graphs_in_a_matrix(graph, capfd, tmp_path):
    """As in the paper's Table V: a run stands for the structure it has found, wherever that was."""
    found = tmp_path / "run"
    search = ["search", str(graph), "--out", str(found), "--strategy", "random", "--trials", "2", *SMALL]
    assert run([*search, "--workers", "1"]) == 0
    other = tmp_path / "second"
    write_graph(random_graph(4, entities=30, triples=160), other)
    capfd.readouterr()
    code, result, _ = compared(capfd, graph, other, "--models", f"{found},distmult", *SMALL)
    assert code == 0
    assert result["graphs"] == ["graph", "second"]
    assert len(result["rows"]) == 4
    assert result["rows"][0]["found_on"] == "graph"
    by_row = [[row["test"]["mrr"] for row in result["rows"] if row["model"] == m] for m in result["models"]]
    assert result["matrix"] == by_row


def test_published_figures_are_marked_and_only_where_there_are_some(graph, capfd, tmp_path):
    _, _, err = compared(capfd, graph, "--models", "published:holex")
    assert "no figures were published for graph; there are some for WN18, FB15k" in err
    named = tmp_path / "WN18"
    shutil.copytree(graph, named)
    models = "published:holex,published:neural-lp,complex"
    code, result, _ = compared(capfd, named, graph, "--models", models, *SMALL)
    assert code == 0
    holex, neural, ours = (row for row in result["rows"] if row["graph"] == "WN18")
    assert (holex["test"]["mrr"], holex["test"]["hits_at_1"], holex["published"]) == (0.938, 0.93, True)
    assert (neural["test"]["mrr"], neural["test"]["hits_at_1"]) == (0.94, None)
    assert ours["published"] is False
    assert result["matrix"][0] == [0.938, None]
    told = " ".join(str(piece) for piece in comparison_for_people(result))
    assert "as published" in told


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("complx", 'unknown structure "complx"; did you mean "complex"?'),
        ("complx", "; a RUN, a MODEL, rules, gen-approx, pykeen:NAME and published:NAME take part, too"),
        ("neural-lp", 'unknown structure "neural-lp"; did you mean "published:neural-lp"?'),
        ("complex,complex", '"complex" is there twice'),
        ("published:transx", "no published figures of"),
        ("[[1,0,0],[0,2,0],[0,0,3]]", "expected"),
        ("[[1,0,0,0,0,0],[0,2,0,0,0,0],[0,0,3,0,0,0],[0,0,0,4,0,0],[0,0,0,0,5,0],[0,0,0,0,0,6]]", "6 parts"),
    ],
)
def test_mistakes_are_told_in_one_line_before_anything_is_trained(graph, capfd, tmp_path, models, message):
    code, _, err = compared(capfd, graph, "--models", f"distmult,{models}", *SMALL, "--out", tmp_path / "out")
    assert code == 2
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="has CUDA")
def test_a_device_that_is_not_there_is_a_mistake(graph, capfd):
    code, _, err = compared(capfd, graph, "--models", "complex", *SMALL, "--device", "cuda")
    assert (code, err.count("\n")) == (2, 1)
    assert "device: cuda is not available here" in err
    assert compared(capfd, graph, "--models", "complex", *SMALL, "--device", "cpu")[0] == 0


def test_a_row_says_where_it_was_measured(graph, capfd, tmp_path):
    models = "complex,gen-approx,rules,published:holex"
    shutil.copytree(graph, tmp_path / "WN18")
    _, result, _ = compared(capfd, tmp_path / "WN18", "--models", models, *SMALL, "--device", "cpu")
    assert [row["device"] for row in result["rows"]] == ["cpu", "cpu", "cpu", None]


def test_a_result_of_another_device_is_another_result(tmp_path):
    settings = TrainingSettings(dimension=8, epochs=2)
    arena = arena_of(random_graph(), settings, "test", "cpu")
    ours, rules = contestants_in(["complex,rules"])
    files = {
        (one.name, device): Meeting(replace(arena, device=device), one, 3).file(tmp_path)
        for one in (ours, rules)
        for device in ("cpu", "cuda")
    }
    assert files["complex", "cpu"] != files["complex", "cuda"]
    assert files["rules", "cpu"] == files["rules", "cuda"]  # they are mined by the CPU anyway
    of_old = {"format": 1, "graph": arena.digest, "splits": ["valid", "test"], "seed": 3}
    of_old |= {"structure": ours.facts["structure"], **settings.as_dict()}
    assert files["complex", "cpu"].stem == digest(plain_json(of_old))[:32]


def test_a_model_is_ranked_on_the_device_of_the_comparison(tmp_path):
    """On one that holds no numbers nothing can be ranked."""
    graph = random_graph()
    (model,) = contestants_in([str(save_model(tmp_path / "m", random_model(graph)))])
    arena = arena_of(graph, TrainingSettings(), "valid", "cpu")
    assert model.measure(arena, 0)["valid"]["mrr"] > 0
    with pytest.raises((RuntimeError, NotImplementedError), match="meta"):
        model.measure(replace(arena, device="meta"), 0)


def test_no_model_is_a_mistake(graph, capfd):
    code, _, err = compared(capfd, graph, "--models", ",")
    assert code == 2
    assert "expected names separated by commas" in err


def test_two_graphs_of_one_name_are_refused(graph, capfd):
    code, _, err = compared(capfd, graph, graph, "--models", "complex")
    assert code == 2
    assert 'two graphs are called "graph"' in err


def test_a_damaged_result_is_measured_again(graph, capfd, tmp_path):
    options = ["--models", "complex", "--out", tmp_path / "out", *SMALL]
    _, first, _ = compared(capfd, graph, *options)
    (file,) = (tmp_path / "out" / "finished").iterdir()
    file.write_text("{")
    _, again, _ = compared(capfd, graph, *options)
    assert again["rows"][0]["test"] == first["rows"][0]["test"]
    assert not again["rows"][0]["runs"][0]["kept"]


def test_a_model_of_another_graph_is_refused(graph, capfd, tmp_path):
    save_model(tmp_path / "m", random_model(random_graph(9)))
    code, _, err = compared(capfd, graph, "--models", tmp_path / "m")
    assert code == 2
    assert "name its structure to have it trained" in err


def test_a_folder_with_other_files_is_refused(graph, capfd, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").touch()
    code, _, err = compared(capfd, graph, "--models", "complex", *SMALL, "--out", tmp_path / "mine")
    assert code == 2
    assert "holds other files" in err


def test_one_that_diverges_is_told_in_its_row_and_the_others_go_on(graph, capfd):
    wild = ["--batch-size", "8", "--set", "optimiser=sgd", "--set", "learning_rate=1e30", *SMALL]
    code, result, _ = compared(capfd, graph, "--models", "complex,rules", *wild)
    assert code == 0
    ours, rules = result["rows"]
    assert "diverged" in ours["failed"]
    assert ours["test"] is None
    assert rules["test"]["mrr"] > 0
    assert "diverged" in " ".join(str(piece) for piece in comparison_for_people(result))


def test_one_that_diverges_before_it_was_validated_has_no_figures(graph, capfd):
    wild = ["--set", "optimiser=sgd", "--set", "learning_rate=1e30", "--epochs", "20", "--dimension", "8"]
    whole = ["--batch-size", "512", "--set", "validate_every=5", "--set", "start_scale=1.0"]
    code, result, _ = compared(capfd, graph, "--models", "complex,rules", *wild, *whole)
    assert code == 0
    assert "diverged in" in result["rows"][0]["failed"]
    assert result["rows"][0]["test"] is None


def test_rows_have_commas_of_their_own():
    assert split_outside_brackets("complex, [[1,0],[0,2]],runs/a ,") == [
        "complex",
        "[[1,0],[0,2]]",
        "runs/a",
    ]


@needs_pykeen
def test_a_table_for_people_names_the_best_and_the_time(capfd):
    assert run(["compare", "nations", "--models", "complex,rules", *SMALL]) == 0
    out = capfd.readouterr().out
    assert "nations, test, filtered, both sides" in out.lower()  # however the folder is called
    assert "valid MRR" in out
