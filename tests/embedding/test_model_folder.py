"""A model folder comes back as it was saved, or is refused in one line; nothing in between."""

import hashlib
import json
import pickle
import struct
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from autosf.embedding import sealed_folder
from autosf.embedding.model_folder import is_model_folder, load_model, save_model
from autosf.embedding.trained_model import with_graph
from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph
from random_models import STRANGE_LABELS, random_graph, random_model
from strategies import structures

FILES = ["model.json", "model.safetensors", "entities.parquet", "relations.parquet", "triples.parquet"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_model(tmp_path / "model", random_model(random_graph()))


def refused(folder: Path, *words: str) -> str:
    """The one line with which opening the folder is refused."""
    with pytest.raises(UserError) as caught:
        load_model(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 600
    for word in words:
        assert word in message
    return message


def forge(folder: Path, **changes: object) -> None:
    """Change the manifest and make every checksum hold again, as somebody who means harm would."""
    path = folder / "model.json"
    record = json.loads(path.read_text()) | changes
    for name in record["files"]:
        data = (folder / name).read_bytes()
        record["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    record["seal"] = sealed_folder._seal(record)
    path.write_text(json.dumps(record))


def same(left, right) -> None:
    assert left.model.structure == right.model.structure
    assert left.model.reciprocal == right.model.reciprocal
    assert torch.equal(left.model.entities, right.model.entities)
    assert torch.equal(left.model.relations, right.model.relations)
    assert left.model.entities.dtype == right.model.entities.dtype
    assert left.entities.labels.to_list() == right.entities.labels.to_list()
    assert left.relations.labels.to_list() == right.relations.labels.to_list()
    assert left.facts == right.facts


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(st.integers(0, 999), structures(), st.booleans(), st.sampled_from([4, 16]))
def test_a_model_comes_back_as_it_was_saved(tmp_path, seed, structure, reciprocal, dimension):
    graph = random_graph(seed)
    trained = random_model(graph, seed, structure=structure, dimension=dimension, reciprocal=reciprocal)
    loaded = load_model(save_model(tmp_path / "model", trained))
    same(loaded, trained)
    for (_, ours), (_, theirs) in zip(loaded.graph.splits(), graph.splits(), strict=True):
        assert np.array_equal(ours, theirs)
        assert ours.dtype == np.int32
        assert not ours.flags.writeable
    assert loaded.graph.digest == graph.digest
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_double_precision_and_parts_of_larger_tensors_come_back(tmp_path):
    trained = random_model(random_graph())
    wide = torch.randn(20, 16, dtype=torch.float64)
    model = replace(trained.model, entities=wide[:, ::2], relations=trained.model.relations.double())
    model.relations.requires_grad_()
    trained = replace(trained, model=model)
    same(load_model(save_model(tmp_path / "model", trained)), trained)


@pytest.mark.parametrize("label", STRANGE_LABELS, ids=ascii)
def test_any_label_comes_back(tmp_path, label):
    graph = KnowledgeGraph.from_ids("g", [label, "other"], [label], {"train": [[0, 0, 1]]})
    loaded = load_model(save_model(tmp_path / "model", random_model(graph)))
    assert label in loaded.entities.labels.to_list()
    assert loaded.relations.id(label) == 0


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=2, unique=True))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_all_texts_are_labels(tmp_path, labels):
    graph = KnowledgeGraph.from_ids("g", labels, labels, {"train": [[i, i, i] for i in range(len(labels))]})
    loaded = load_model(save_model(tmp_path / "model", random_model(graph)))
    assert set(loaded.entities.labels) == set(labels)


def test_other_tools_open_the_files(folder):
    assert load_file(folder / "model.safetensors")["entities"].shape == (20, 8)
    assert pl.read_parquet(folder / "entities.parquet").columns == ["label"]
    triples = pl.read_parquet(folder / "triples.parquet")
    assert triples["split"].unique().sort().to_list() == ["test", "train", "valid"]
    record = json.loads((folder / "model.json").read_text())
    assert record["structure"] == [[1, 0, 3, 0], [0, 2, 0, 4], [-3, 0, 1, 0], [0, -4, 0, 2]]
    assert record["graph"]["name"] == "random-0"
    assert sorted([*record["files"], "model.json"]) == sorted(FILES)


def test_all_files_have_the_same_permissions(folder):
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1


def test_facts_of_any_number_type_are_kept_as_json(tmp_path):
    facts = {
        "metrics": {"mrr": np.float64(0.25), "mean_rank": float("nan"), "count": np.int32(3)},
        "source": Path("a") / "b",
        "shape": (1, 2),
        "undecodable": "\udcff",
    }
    trained = replace(random_model(random_graph()), facts=facts)
    loaded = load_model(save_model(tmp_path / "model", trained))
    assert loaded.facts["metrics"] == {"mrr": 0.25, "mean_rank": None, "count": 3}
    assert loaded.facts["source"] == str(Path("a") / "b")
    assert loaded.facts["shape"] == [1, 2]
    assert loaded.facts["undecodable"] == "\udcff"


def test_triples_may_be_left_out_and_given_back(tmp_path):
    trained = random_model(random_graph())
    folder = save_model(tmp_path / "model", trained, with_triples=False)
    assert not (folder / "triples.parquet").exists()
    loaded = load_model(folder)
    assert loaded.graph is None
    assert with_graph(loaded, random_graph()).graph.digest == trained.graph.digest
    with pytest.raises(UserError, match="not the one the model was trained on"):
        with_graph(loaded, random_graph(1))


def test_a_graph_with_spare_labels_takes_the_models_numbers():
    graph = random_graph()
    labels = ["aaa-unused", *graph.entities.labels]
    spare = KnowledgeGraph.from_columns("spare", {split: graph.columns(split) for split, _ in graph.splits()})
    wider = replace(
        spare,
        entities=type(graph.entities)(pl.Series("label", labels)),
        **{split: part + np.array([1, 0, 1], np.int32) for split, part in spare.splits()},
    )
    assert wider.digest == graph.digest
    found = with_graph(random_model(graph), wider).graph
    assert np.array_equal(found.train, graph.train)


# Replacing


def test_a_model_replaces_a_model_and_the_users_own_files_stay(folder):
    (folder / "notes.txt").write_text("mine")
    other = random_model(random_graph(7), 7)
    save_model(folder, other)
    same(load_model(folder), other)
    assert (folder / "notes.txt").read_text() == "mine"
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_folder_of_other_things_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "model.json").write_text("{}")
    with pytest.raises(UserError, match="holds other files and no model folder; name a new folder"):
        save_model(tmp_path / "thesis", random_model(random_graph()))
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="found a file"):
        save_model(tmp_path / "file", random_model(random_graph()))
    assert (tmp_path / "thesis" / "model.json").read_text() == "{}"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "thesis"]


def test_an_empty_folder_and_folders_that_do_not_exist_yet_are_filled(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in ("empty", "a/b/c"):
        assert is_model_folder(save_model(tmp_path / place, random_model(random_graph())))


def test_a_link_keeps_pointing_at_the_model(folder):
    link = folder.with_name("link")
    link.symlink_to(folder)
    save_model(link, random_model(random_graph(3), 3))
    assert link.is_symlink()
    assert load_model(folder).facts["seed"] == 3


@pytest.mark.parametrize("failing", ["write_parquet", "rename"])
def test_a_failed_save_leaves_the_earlier_model(folder, monkeypatch, failing):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    calls = []
    rename = Path.rename

    def full_disk(self, *rest, **options):
        calls.append(self)
        if (
            failing == "rename" and len(calls) != 2
        ):  # the first sets the earlier model aside, the second fails
            return rename(self, *rest, **options)
        raise OSError(28, "No space left on device")

    owner = Path if failing == "rename" else pl.DataFrame
    monkeypatch.setattr(owner, failing, full_disk)
    with pytest.raises(UserError, match="cannot write the model folder"):
        save_model(folder, random_model(random_graph(5), 5))
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def test_a_save_killed_between_the_renames_is_told_with_the_place_of_the_earlier_model(folder):
    folder.rename(folder.with_name(".model.previous"))
    refused(folder, "there is no such folder", ".model.previous")
    (folder.with_name(".model.previous") / "notes.txt").write_text("the user's")
    for _ in range(2):
        save_model(folder, random_model(random_graph()))
        assert [path.name for path in folder.parent.iterdir()] == ["model"]
        assert (folder / "notes.txt").read_text() == "the user's"


def test_a_diverged_model_is_not_saved(tmp_path):
    trained = random_model(random_graph())
    trained.model.entities[3, 3] = float("nan")
    with pytest.raises(UserError, match="entities holds numbers that are not finite"):
        save_model(tmp_path / "model", trained)
    assert list(tmp_path.iterdir()) == []


# Refusing


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused(folder, name):
    (folder / name).unlink()
    refused(folder, name)


@pytest.mark.parametrize("name", FILES)
def test_any_flipped_byte_is_refused(folder, name):
    whole = (folder / name).read_bytes()
    for place in np.linspace(0, len(whole) - 2, 25).astype(int):
        changed = bytearray(whole)
        changed[place] ^= 0x15  # turns spaces into printable signs, so that JSON cannot overlook it
        (folder / name).write_bytes(changed)
        refused(folder, name)


@pytest.mark.parametrize("name", FILES)
def test_any_truncation_is_refused(folder, name):
    whole = (folder / name).read_bytes()
    for length in np.linspace(0, len(whole) - 3, 25).astype(int):
        (folder / name).write_bytes(whole[:length])
        refused(folder, name)


def test_what_is_no_model_folder_is_refused(tmp_path):
    refused(tmp_path / "nothing", "there is no such folder")
    refused(tmp_path, "not a model folder: it has no model.json")
    (tmp_path / "model.json").write_text('{"model_type": "bert"}')
    refused(tmp_path, "not a model folder")
    refused(tmp_path / "model.json", "expected a model folder, found a file")


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 100_000, '{"format": "autosf model"}', "\x80", "{"])
def test_a_manifest_that_is_none_is_refused(folder, text):
    (folder / "model.json").write_text(text, encoding="latin-1")
    refused(folder, "model.json")


def test_deep_nesting_in_a_manifest_is_refused(folder):
    deep = '{"format": "autosf model", "version": 1, "x": ' + "[" * 900 + "]" * 900 + "}"
    (folder / "model.json").write_text(deep)
    refused(folder, "model.json")


def test_a_newer_format_says_to_update(folder):
    forge(folder, version=2)
    refused(folder, "expected format version 1 or older, found 2", "update autosf")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"structure": [[1, 2], [3]]}, "structure, row 2"),
        ({"structure": "complex"}, "expected rows"),
        ({"structure": None}, "expected rows"),
        ({"reciprocal": 1}, "expected true or false as reciprocal"),
        ({"reciprocal": True}, "expected relations of shape [8, 8], found [4, 8]"),
        ({"dimension": 6}, "a dimension that 4 parts divide"),
        ({"dimension": 0}, "a dimension that 4 parts divide"),
        ({"dimension": 16}, "expected entities of shape [20, 16], found [20, 8]"),
        ({"dimension": True}, "expected a count as dimension"),
        ({"entities": 10**12}, "expected entities of shape"),
        ({"entities": -1}, "expected a count as entities"),
        ({"relations": "4"}, "expected a count as relations"),
        ({"triples": []}, "expected counts of train, valid, test as triples"),
        ({"triples": {"train": 1, "valid": 0, "test": 0}}, "expected 1 rows"),
        ({"version": 0}, "seal is broken"),
        ({"version": "1"}, "seal is broken"),
    ],
)
def test_a_manifest_that_contradicts_the_files_is_refused(folder, change, words):
    forge(folder, **change)
    refused(folder, words)


def test_a_manifest_without_checksums_is_refused(folder):
    record = json.loads((folder / "model.json").read_text())
    for files in ({}, None, {"model.safetensors": 3}):
        record["files"] = files
        record["seal"] = sealed_folder._seal(record)
        (folder / "model.json").write_text(json.dumps(record))
        refused(folder)


ROWS = {"entities": torch.randn(20, 8), "relations": torch.randn(4, 8)}


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"entities": ROWS["entities"]}, "expected the tensors entities and relations"),
        ({**ROWS, "extra": torch.zeros(1)}, "expected the tensors entities and relations"),
        ({**ROWS, "entities": torch.randn(19, 8)}, "found [19, 8]"),
        ({**ROWS, "entities": torch.randn(160)}, "found [160]"),
        ({**ROWS, "relations": torch.zeros(4, 8, dtype=torch.int32)}, "found I32"),
        ({**ROWS, "relations": torch.zeros(4, 8, dtype=torch.float16)}, "found F16"),
        ({**ROWS, "relations": torch.full((4, 8), float("inf"))}, "not finite"),
    ],
)
def test_forged_tensors_are_refused(folder, tensors, words):
    save_file(tensors, folder / "model.safetensors")
    forge(folder)
    refused(folder, "model.safetensors", words)


class Harmful:
    """What a pickle could do on opening."""

    def __reduce__(self):
        return (pytest.fail, ("opening a model executed code",))


@pytest.mark.parametrize("name", FILES)
def test_a_pickle_in_the_place_of_a_file_is_refused_and_not_executed(folder, name):
    (folder / name).write_bytes(pickle.dumps(Harmful()))
    if name != "model.json":
        forge(folder)
    refused(folder, name)


@pytest.mark.parametrize("length", [2, 10**8, 2**40, 2**63])
def test_headers_that_claim_too_much_are_refused(folder, length):
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", length) + path.read_bytes()[8:])
    forge(folder)
    refused(folder, "model.safetensors")


@pytest.mark.parametrize("shape", [[2**40, 2**40], [20, 2**62], [-1, 8], ["20", 8]])
def test_tensors_that_claim_too_much_are_refused(folder, shape):
    header = {
        "entities": {"dtype": "F32", "shape": shape, "data_offsets": [0, 640]},
        "relations": {"dtype": "F32", "shape": [4, 8], "data_offsets": [640, 768]},
    }
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(768))
    forge(folder)
    refused(folder, "model.safetensors")


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("entities.parquet", {"label": [f"e{i}" for i in range(19)]}, "expected 20 rows, found 19"),
        ("entities.parquet", {"label": ["same"] * 20}, "distinct labels in ascending order"),
        ("entities.parquet", {"label": [None] * 20}, "expected the columns label"),
        ("entities.parquet", {"label": [None, *"abcdefghijklmnopqrs"]}, "found nulls"),
        ("entities.parquet", {"label": list(range(20))}, "expected the columns label"),
        ("relations.parquet", {"label": list("abcd"), "x": list("abcd")}, "expected the columns label"),
        ("relations.parquet", {"name": list("abcd")}, "expected the columns label"),
    ],
)
def test_forged_vocabularies_are_refused(folder, name, table, words):
    pl.DataFrame(table).write_parquet(folder / name)
    forge(folder)
    refused(folder, name, words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (pl.lit(20, pl.Int32).alias("tail"), "expected ids of the model's entities"),
        (pl.lit(-1, pl.Int32).alias("head"), "expected ids of the model's entities"),
        (pl.lit(4, pl.Int32).alias("relation"), "expected ids of the model's entities"),
        (pl.lit("train").alias("split"), "triples by split"),
        (pl.col("head").cast(pl.Int64), "expected the columns split, head, relation, tail"),
    ],
)
def test_forged_triples_are_refused(folder, change, words):
    table = pl.read_parquet(folder / "triples.parquet").with_columns(change)
    table.write_parquet(folder / "triples.parquet")
    forge(folder)
    refused(folder, "triples.parquet", words)


@pytest.mark.parametrize("name", [name for name in FILES if name != "model.json"])
def test_damage_with_forged_checksums_never_ends_in_a_traceback(folder, name):
    """Whatever the bytes, with checksums that hold: a model comes back or one line is raised."""
    whole = (folder / name).read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(60):
        changed = bytearray(whole)
        for place in generator.integers(0, len(whole), 3):
            changed[place] = generator.integers(256)
        (folder / name).write_bytes(changed)
        forge(folder)
        with suppress(UserError):
            load_model(folder)


def test_a_folder_whose_name_is_a_pattern_is_a_folder(tmp_path):
    trained = random_model(random_graph())
    same(load_model(save_model(tmp_path / "mo*[a]{b}?=x", trained)), trained)
