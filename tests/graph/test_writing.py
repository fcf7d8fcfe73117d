"""Written graphs: nothing is left half-done, and what a layout cannot hold is refused."""

import numpy as np
import pytest

from autosf.errors import UserError
from autosf.graph.reading import read_graph
from autosf.graph.writing import LAYOUTS, write_graph

PARTS = {"train": [("a", "r", "b"), ("b", "r", "a")], "valid": [("a", "r", "a")], "test": [("b", "r", "b")]}
TEXT = ["none", "txt", "txt.gz", "tsv", "tsv.gz", "dict", "dict-ids", "openke", "libkge"]


def with_label(label):
    return read_graph(PARTS | {"test": [("a", "r", label)]})


@pytest.mark.parametrize("layout", TEXT)
@pytest.mark.parametrize("label", ["tab\tinside", "line\nbreak", "ends in\r", "zero\0byte"])
def test_a_label_that_would_break_a_line_is_refused_and_nothing_is_left(tmp_path, layout, label):
    with pytest.raises(UserError, match=r"which this layout cannot write; use (csv or )?parquet"):
        write_graph(with_label(label), tmp_path / "graph", layout)
    assert list(tmp_path.iterdir()) == []


def test_csv_refuses_a_zero_byte_and_parquet_holds_it(tmp_path):
    graph = with_label("zero\0byte")
    with pytest.raises(UserError, match="use parquet"):
        write_graph(graph, tmp_path / "csv", "csv")
    assert read_graph(write_graph(graph, tmp_path / "parquet", "parquet")).digest == graph.digest


def test_rdf_refuses_what_is_no_iri_and_nothing_is_left(tmp_path):
    pytest.importorskip("pyoxigraph")
    with pytest.raises(UserError, match='expected IRIs for RDF, found the label "a"'):
        write_graph(read_graph(PARTS), tmp_path / "graph", "nt")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_not_touched(tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(UserError, match="exists already; name a new folder"):
        write_graph(read_graph(PARTS), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_empty_folder_is_filled_and_missing_parents_are_made(tmp_path):
    (tmp_path / "empty").mkdir()
    assert read_graph(write_graph(read_graph(PARTS), tmp_path / "empty")).name == "empty"
    assert read_graph(write_graph(read_graph(PARTS), str(tmp_path / "new" / "deep"))).name == "deep"


def test_an_unknown_layout_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(UserError, match='unknown layout "parket"; did you mean "parquet"'):
        write_graph(read_graph(PARTS), tmp_path / "graph", "parket")


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("nt", "ttl", "rdf")])
def test_a_split_without_triples_is_left_out(tmp_path, layout):
    graph = read_graph({"train": PARTS["train"], "test": PARTS["test"]}, make_valid=0)
    folder = write_graph(graph, tmp_path / "graph", layout)
    assert not any(path.name.startswith("valid") for path in folder.iterdir())
    again = read_graph(folder, make_valid=0)
    assert again.digest == graph.digest
    assert again.valid.shape == (0, 3)


def test_packed_files_of_one_graph_are_the_same_bytes(tmp_path):
    one, two = (write_graph(read_graph(PARTS), tmp_path / name, "tsv.gz") for name in ("one", "two"))
    assert (one / "train.tsv.gz").read_bytes() == (two / "train.tsv.gz").read_bytes()


def test_ids_on_disk_are_the_ids_of_the_graph(tmp_path):
    graph = read_graph(PARTS)
    folder = write_graph(graph, tmp_path / "graph", "libkge")
    assert np.array_equal(np.loadtxt(folder / "train.del", dtype=int), graph.train)
