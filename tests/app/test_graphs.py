"""Graphs as programs give them to `autosf.read_graph`, `autosf.train` and `autosf.search`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import autosf
from autosf.app.commands.training import train

TRIPLES = [(f"e{a}", "r", f"e{b}") for a in range(6) for b in range(6)]
TOLD = "split the triples into 28 train, 4 valid, 4 test (seed 0)"


def test_what_reading_warns_of_is_issued_at_the_line_of_the_program():
    with pytest.warns(UserWarning, match="split|repeated") as told:
        graph = autosf.read_graph([*TRIPLES, TRIPLES[0]])
    assert (
        [str(warning.message) for warning in told]
        == [*graph.warnings]
        == [TOLD, "1 repeated triple left out"]
    )
    assert {warning.filename for warning in told} == {__file__}


@pytest.mark.parametrize("door", [autosf.train, autosf.search])
def test_training_and_searching_tell_it_too(tmp_path: Path, door):
    sizes = {"dimension": 8, "epochs": 1}
    few = {"strategy": "random", "trials": 1, "workers": 1, "playoff": 1}
    options = sizes if door is autosf.train else {"out": tmp_path / "run", **sizes, **few}
    with pytest.warns(UserWarning, match="split the triples into") as told:
        door(TRIPLES, **options)
    assert [(str(warning.message), warning.filename) for warning in told] == [(TOLD, __file__)]


def test_a_graph_is_what_it_is_and_told_of_once():
    with pytest.warns(UserWarning, match="split"):
        graph = autosf.read_graph(TRIPLES)
    assert autosf.read_graph(graph) is graph


def test_the_command_says_it_once(tmp_path: Path):
    (tmp_path / "all.tsv").write_text("".join("\t".join(triple) + "\n" for triple in TRIPLES))
    sizes = ["--dimension", "8", "--epochs", "1", "--out", str(tmp_path / "model")]
    ran = CliRunner().invoke(train, [str(tmp_path / "all.tsv"), *sizes], catch_exceptions=False)
    assert ran.stderr.count(TOLD) == 1
    assert "; 1 epoch in " in ran.stdout
