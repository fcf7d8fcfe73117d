"""PyKEEN's data sets by `pykeen:NAME`, with those that ship inside it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autosf.app.cli import run
from autosf.app.graphs import graph_of
from autosf.app.interop.pykeen_data import is_of_pykeen
from autosf.errors import UserError
from autosf.graph.reading import read_graph
from autosf.graph.registry import packaged_folders

needs_pykeen = pytest.mark.skipif(not packaged_folders(), reason="pykeen is not installed")


@needs_pykeen
@pytest.mark.parametrize("name", ["nations", "UMLS", "kinships"])
def test_a_data_set_is_the_graph_of_its_own_files_under_its_usual_name(name):
    by_name, by_files = graph_of(f"pykeen:{name}"), graph_of(str(packaged_folders()[0] / name.lower()))
    assert by_name.digest == by_files.digest
    assert by_name.name == {"nations": "Nations", "UMLS": "UMLS", "kinships": "Kinships"}[name]


@needs_pykeen
def test_triples_whose_entities_train_does_not_show_are_kept(tmp_path, monkeypatch):
    """PyKEEN's own factories drop them."""
    from pykeen.datasets import Nations

    files = {"train": "a\tr\tb\nb\tr\tNA\n", "valid": "a\tr\tnew\n", "test": "007\tr\ta\n"}
    for split, rows in files.items():
        (tmp_path / f"{split}.txt").write_text(rows, encoding="utf-8")

    def elsewhere(self):
        words = {"training": "train", "validation": "valid", "testing": "test"}
        for word, split in words.items():
            setattr(self, f"{word}_path", tmp_path / f"{split}.txt")
        self.load_triples_kwargs = None

    monkeypatch.setattr(Nations, "__init__", elsewhere)
    graph = graph_of("pykeen:nations")
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (2, 1, 1)
    assert graph.entities.labels.to_list() == ["007", "NA", "a", "b", "new"]


@needs_pykeen
def test_a_data_set_that_leaves_no_files_is_taken_from_its_factories_with_a_warning():
    from pykeen.datasets import EagerDataset, Nations

    from autosf.app.interop.pykeen_data import _labelled

    whole = Nations()
    rows, warning = _labelled(EagerDataset(whole.training, whole.testing, whole.validation))
    assert read_graph(rows).digest == graph_of("pykeen:nations").digest
    assert "whose entities train does not show" in warning


@needs_pykeen
def test_a_data_set_that_cannot_be_had_is_told_in_one_line(monkeypatch):
    from pykeen.datasets import Nations

    def without_network(self):
        raise ConnectionError("no route to host\nand more")

    monkeypatch.setattr(Nations, "__init__", without_network)
    with pytest.raises(
        UserError, match=r"pykeen:nations: PyKEEN could not get it \(no route to host and more\)"
    ):
        graph_of("pykeen:nations")


@needs_pykeen
def test_every_command_takes_the_name(capfd, tmp_path):
    assert run(["data", "stats", "pykeen:nations", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["entities"] == 14
    options = ["--epochs", "1", "--dimension", "8", "--out", str(tmp_path / "m"), "--json"]
    assert run(["train", "pykeen:nations", *options]) == 0
    assert json.loads(capfd.readouterr().out)["graph"] == "Nations"


@needs_pykeen
def test_a_misspelt_name_is_told_with_the_nearest():
    with pytest.raises(UserError, match='unknown data set "pykeen:nation"; did you mean "nations"'):
        graph_of("pykeen:nation")


def test_a_missing_pykeen_is_told_in_one_line_with_what_to_install(tmp_path):
    """In an interpreter that does not find it."""
    script = (
        "import importlib.util as u, sys; found = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'pykeen' else found(name, *more)\n"
        "from autosf.app.cli import main; main(['train', 'pykeen:nations'])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == 'autosf: pykeen:nations needs the extra "pykeen": pip install "autosf[pykeen]"\n'


def test_only_the_prefix_makes_a_name_one_of_pykeen():
    assert is_of_pykeen("pykeen:x")
    assert not is_of_pykeen("pykeen")
    assert not is_of_pykeen(Path("pykeen:x"))
