"""A model exported for PyKEEN: it opens where autosf cannot be imported, and scores the same."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from autosf.algebra.zoo import structure_from
from autosf.app.cli import run
from autosf.app.graphs import graph_of
from autosf.app.interop.pykeen_export import export_to_pykeen, pykeen_relations
from autosf.embedding.model import Model
from autosf.embedding.model_folder import save_model
from autosf.embedding.trained_model import TrainedModel
from autosf.graph.registry import packaged_folders
from random_models import STRANGE_LABELS, random_graph, random_model

needs_pykeen = pytest.mark.skipif(not packaged_folders(), reason="pykeen is not installed")

CHECK = """
import sys, warnings
sys.modules["autosf"] = None  # whoever imports it now fails
warnings.simplefilter("ignore")
import numpy as np, torch
for folder in sys.argv[1:]:
    sys.path.insert(0, folder)
    sys.modules.pop("load", None)
    from load import load
    model, dataset = load()
    triples = torch.cat([f.mapped_triples for f in (dataset.training, dataset.validation, dataset.testing)])
    with torch.no_grad():
        tails = model.predict_t(triples[:, :2]).gather(1, triples[:, 2:])[:, 0]
        heads = model.predict_h(triples[:, 1:]).gather(1, triples[:, :1])[:, 0]
        plain = model.predict_hrt(triples)[:, 0]
    np.savez(folder + "/scores.npz", tails=tails, heads=heads, plain=plain, ids=triples)
    open(folder + "/labels.txt", "w", newline="").write("|".join(dataset.entity_to_id))
    sys.path.remove(folder)
"""


def opened_by_pykeen(*folders) -> None:
    subprocess.run([sys.executable, "-c", CHECK, *map(str, folders)], check=True)


def model_of_umls(structure: str, *, reciprocal: bool) -> TrainedModel:
    graph = graph_of("umls")
    rng = torch.Generator().manual_seed(1)
    relations = len(graph.relations) * (1 + reciprocal)
    entities, links = (torch.randn(n, 32, generator=rng) * 0.5 for n in (len(graph.entities), relations))
    return TrainedModel(
        Model(structure_from(structure), entities, links, reciprocal),
        graph.entities,
        graph.relations,
        {"graph": {"name": graph.name, "digest": graph.digest}},
        graph,
    )


@needs_pykeen
@pytest.mark.slow
def test_scores_of_every_triple_of_umls_are_ours_where_autosf_cannot_be_imported(tmp_path):
    plain = model_of_umls("autosf-wn18rr", reciprocal=False)
    both_ways = model_of_umls("quate", reciprocal=True)
    strange = random_model(random_graph(labels=STRANGE_LABELS), structure="[[1,2],[-2,1]]")
    models = {"plain": plain, "reciprocal": both_ways, "strange": strange}
    for name, trained in models.items():
        export_to_pykeen(trained, tmp_path / name)
    opened_by_pykeen(*(tmp_path / name for name in models))
    for name, trained in models.items():
        assert_scores_equal(np.load(tmp_path / name / "scores.npz"), trained)
        labels = (tmp_path / name / "labels.txt").read_bytes().decode()
        assert labels == "|".join(trained.entities.labels)


def assert_scores_equal(found, trained: TrainedModel) -> None:
    model, graph = trained.model, trained.graph
    triples = np.concatenate([graph.train, graph.valid, graph.test])
    np.testing.assert_array_equal(found["ids"], triples)
    heads, relations, tails = torch.from_numpy(triples.astype(np.int64)).T
    forward = (model.tail_query(heads, relations) * model.entities[tails]).sum(1)
    backward = (model.head_query(relations, tails) * model.entities[heads]).sum(1)
    np.testing.assert_allclose(found["tails"], forward, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found["heads"], backward, atol=1e-5, rtol=0)
    np.testing.assert_allclose(found["plain"], forward, atol=1e-5, rtol=0)
    ours = model.score(heads, relations, tails)
    np.testing.assert_allclose((found["tails"] + found["heads"]) / 2, ours, atol=1e-5, rtol=0)


def test_a_relation_and_its_reciprocal_lie_side_by_side():
    model = random_model(random_graph(), reciprocal=True).model
    rows, count = pykeen_relations(model), model.relation_count
    assert torch.equal(rows[0::2], model.relations[:count])
    assert torch.equal(rows[1::2], model.relations[count:])


def test_nothing_in_the_folder_needs_pickle(tmp_path):
    trained = random_model(random_graph(labels=STRANGE_LABELS))
    export_to_pykeen(trained, tmp_path / "out")
    kept = json.loads((tmp_path / "out" / "model.json").read_text(encoding="utf-8"))
    assert kept["entities"] == trained.entities.labels.to_list()
    with np.load(tmp_path / "out" / "arrays.npz", allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files}
    assert found["entity_representations.0._embeddings.weight"].shape == (20, 2)
    assert "torch.load" not in (tmp_path / "out" / "load.py").read_text(encoding="utf-8")


def test_the_command_writes_the_folder_and_again_in_its_place(tmp_path, capfd):
    save_model(tmp_path / "model", random_model(random_graph()))
    for _ in range(2):
        assert run(["export", str(tmp_path / "model"), "--to", "pykeen", str(tmp_path / "out")]) == 0
    assert {"model.json", "arrays.npz", "load.py", "README.md", "export.json"} == {
        p.name for p in (tmp_path / "out").iterdir()
    }
    assert capfd.readouterr().out.count("written to") == 2


def test_a_folder_with_other_files_is_not_overwritten(tmp_path, capfd):
    save_model(tmp_path / "model", random_model(random_graph()))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    assert run(["export", str(tmp_path / "model"), "--to", "pykeen", str(tmp_path / "mine")]) == 2
    assert "holds other files" in capfd.readouterr().err
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
