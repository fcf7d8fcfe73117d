"""Fuzzed readers: any bytes give a graph or a UserError, any labels survive, fast and exact reading agree."""

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autosf.errors import UserError
from autosf.graph.frames import table_of
from autosf.graph.knowledge_graph import SPLITS, KnowledgeGraph
from autosf.graph.reading import read_graph
from autosf.graph.tables import checked_records, read_fields
from autosf.graph.text_lines import Dialect
from autosf.graph.writing import LAYOUTS, write_graph

TOKENS = [
    b"a",
    b"b",
    b"r",
    b"0",
    b"1",
    b"-1",
    b"\t",
    b"\t",
    b"\t",
    b",",
    b";",
    b" ",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
]
ODD = [
    b'"',
    b'""',
    b"\xef\xbb\xbf",
    b"\xff",
    b"\0",
    b"\xc3\xa9",
    b"x^",
    b"head\trelation\ttail\n",
    b"\xe2\x80\xa8",
    b"#",
]
soup = st.lists(st.sampled_from(TOKENS + ODD), max_size=30).map(b"".join)
tidy = st.lists(
    st.sampled_from([b"a\tr\tb\n", b"b,r,c\n", b"a r b\n", b"0\t0\t1\n", b"2\n", b"\n", b"a\t0\n"])
).map(b"".join)
content = st.one_of(
    st.binary(max_size=60), soup, tidy, soup.map(gzip.compress), soup.map(lambda b: gzip.compress(b)[:-3])
)
SUFFIXES = ["", ".txt", ".tsv", ".csv", ".parquet", ".nt", ".ttl", ".rdf", ".txt.gz", ".csv.gz"]
NUMBERED = {
    "openke": ("entity2id.txt", "relation2id.txt", "train2id.txt", "valid2id.txt", "test2id.txt"),
    "libkge": ("entity_ids.del", "relation_ids.del", "train.del", "valid.del", "test.del"),
    "dict": ("entities.dict", "relations.dict", "train.txt", "valid.txt", "test.txt"),
}


def read_or_refuse(files, **options):
    """The graph that files make, or None where they are refused in one line that names the place."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in files.items():
            (folder / file).write_bytes(text)
        try:
            graph = read_graph(folder, **options)
        except UserError as refused:
            message = str(refused)
            return None if message.startswith(name) and "\n" not in message else pytest.fail(message)
        assert isinstance(graph, KnowledgeGraph)
        assert "" not in graph.entities.labels.to_list()
        assert len(graph.digest) == 64
        return graph


@given(content, st.sampled_from(SUFFIXES))
@example(b"x^\tr\tb\n", ".txt")  # taken for a compressed stream by its first two bytes
@example(b"x\x01\tr\tb\n", ".txt")
@example(b"0\tr", ".txt")
@example(b'"', ".csv")
@example(b"\x1f\x8b", ".txt")
@example(b"PAR1PAR1", ".parquet")
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_graph_or_refused_in_one_line(text, suffix):
    good = b"a\tr\tb\n"
    read_or_refuse({f"train{suffix}": text, "valid.txt": good, "test.txt": good})


@given(
    st.sampled_from(sorted(NUMBERED)),
    st.lists(content, min_size=5, max_size=5),
    st.sets(st.integers(0, 4), max_size=2),
)
@settings(max_examples=120, deadline=None)
def test_any_bytes_in_numbered_layouts_are_a_graph_or_refused(layout, texts, spoilt):
    graph = read_graph({"train": [("a", "r", "b")], "valid": [("b", "r", "b")], "test": [("b", "q", "a")]})
    with tempfile.TemporaryDirectory() as name:
        folder = write_graph(graph, Path(name) / "graph", "dict-ids" if layout == "dict" else layout)
        files = {file: (folder / file).read_bytes() for file in NUMBERED[layout]}
    files |= {NUMBERED[layout][at]: texts[at] for at in spoilt}
    read = read_or_refuse(files, layout=layout)
    if not spoilt:
        assert read.digest == graph.digest


def test_a_text_that_starts_like_a_compressed_stream_is_text(tmp_path):
    for start in ("x^", "x\x01", "BZh", "PK", "PAR1", "CD001", "{"):
        file = tmp_path / "all.txt"
        file.write_text(f"{start}\tr\tb\n")
        graph = read_graph(file, make_valid=0, make_test=0)
        assert start in graph.entities.labels.to_list()


cells = st.text(st.sampled_from('ab"\t,; \r\n\ufeffé'), max_size=4)
DIALECTS = [
    Dialect("\t"),
    Dialect(",", quoted=True),
    Dialect(";", quoted=True),
    Dialect("\t", quoted=True),
    Dialect(" "),
]


@given(
    st.lists(st.one_of(cells, st.sampled_from([",", "\t", "\n", '"', '""', "a,b,c\n", "a\tb\tc\r\n"]))),
    st.sampled_from(DIALECTS),
)
@settings(max_examples=600, deadline=None)
@example(['a"b,r,c\n', 'd"e,r,f\n'], Dialect(",", quoted=True))
@example(['"a\n', '"",r,c\n'], Dialect(",", quoted=True))
@example(["a\tb\tc\r", "\r\n"], Dialect("\t"))
@example([";\r", "\t;", "\t;"], Dialect("\t"))
@example(['";"', "\r,;,;"], Dialect(",", quoted=True))
@example(["a\tb\tc\n", "a\tb\tc\t"], Dialect("\t"))
@example([';,;,"";"'], Dialect(",", quoted=True))
@example(["a, b ,\tc\n", " \t\n", "a , ,c\n"], Dialect(",", quoted=True))
@example(['a, "b" ,"c"\n'], Dialect(",", quoted=True))
@example(['a," b ", c\n'], Dialect(",", quoted=True))
@example(["a, b,\tc\n"], Dialect("\t", quoted=True))
@example(["a,b, \r\n", "a,b,c \r\n"], Dialect(",", quoted=True))
@example(["a,b,c\n", 'a,b,"c",'], Dialect(",", quoted=True))
def test_fast_reading_and_exact_reading_agree(pieces, dialect):
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "file"
        path.write_bytes("".join(pieces).encode())
        try:
            exact = [tuple(record.fields) for record in checked_records(path, dialect, 3, filled=(0, 1, 2))]
        except UserError:
            with pytest.raises(UserError):
                read_fields(path, dialect, 3, filled=(0, 1, 2))
        else:
            assert read_fields(path, dialect, 3, filled=(0, 1, 2)).rows() == exact


any_label = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
odd_label = st.text(st.sampled_from('ab"\t,; \r\n\ufeffé\0\x85\u2028'), min_size=1, max_size=4)
known_label = st.sampled_from(
    ["head", "relation", "tail", "h", "r", "t", "s", "p", "o", "0", "1", "2", "train", "split", "#"]
)
label = st.one_of(any_label, odd_label, known_label)
triples = st.lists(st.tuples(label, label, label), min_size=1, max_size=6)
TABULAR = [name for name in LAYOUTS if name not in ("nt", "ttl", "rdf")]


@given(st.tuples(triples, triples, triples), st.sampled_from(TABULAR))
@settings(max_examples=250, deadline=None)
@example(([("head", "relation", "tail")],) * 3, "txt")
@example(([("\ufeff", "\ufeff", "\ufeff")],) * 3, "txt")
@example(([("\r", "\r", "\r")],) * 3, "csv")
@example(([("s", "p", "s")],) * 3, "tsv")
@example(([("1", "0", "0")],) * 3, "dict-ids")
@example(([("1", "0", "2"), ("0", "0", "0")],) * 3, "dict-ids")
def test_any_labels_survive_every_layout_that_can_write_them(parts, layout):
    columns = {split: table_of(part, split).columns for split, part in zip(SPLITS, parts, strict=True)}
    graph = KnowledgeGraph.from_columns("graph", columns)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "graph"
        try:
            write_graph(graph, folder, layout)
        except UserError:
            assert layout != "parquet"
            assert any(set(text) & set("\t\n\0\r") for part in parts for triple in part for text in triple)
            assert list(Path(name).iterdir()) == []
            return
        again = read_graph(folder, ids=True if layout == "dict-ids" else None)
        for split in SPLITS:
            assert [c.to_list() for c in again.columns(split)] == [c.to_list() for c in graph.columns(split)]
        assert again.digest == graph.digest


iris = st.sampled_from(
    ["http://e/a", "http://e/é", "urn:x:1", "_:b1", "http://e/a#b?c=d&e=<"[:-1], "mailto:a@b"]
)
links = st.sampled_from(["http://e/r", "http://e/q#p"])


@given(st.lists(st.tuples(iris, links, iris), min_size=1, max_size=6), st.sampled_from(["nt", "ttl", "rdf"]))
@settings(deadline=None)
def test_iris_survive_rdf(rows, layout):
    pytest.importorskip("pyoxigraph")
    graph = read_graph(dict.fromkeys(SPLITS, rows))
    with tempfile.TemporaryDirectory() as name:
        assert read_graph(write_graph(graph, Path(name) / "g", layout)).digest == graph.digest


@given(
    st.lists(
        st.one_of(label, st.none(), st.integers(), st.floats(), st.binary(max_size=3), st.lists(st.none())),
        max_size=9,
    )
)
@settings(deadline=None)
def test_any_objects_are_a_graph_or_refused_in_one_line(values):
    rows = [values[at : at + 3] for at in range(0, len(values), 3)]
    for source in (rows, values, {"train": rows, "valid": rows, "test": rows}):
        try:
            read_graph(source)
        except UserError as refused:
            one_line = "\n" not in str(refused)
        else:
            one_line = True
        assert one_line


@given(st.lists(st.tuples(label, label, label), min_size=1, max_size=30), st.randoms())
def test_a_digest_knows_neither_the_order_of_rows_nor_that_of_ids(rows, random):
    shuffled = random.sample(rows, len(rows))
    one = KnowledgeGraph.from_columns("one", {"train": table_of(rows, "").columns})
    entities, relations = (sorted({*labels}, key=lambda _: random.random()) for labels in sides(rows))
    ids = [(entities.index(h), relations.index(r), entities.index(t)) for h, r, t in shuffled]
    two = KnowledgeGraph.from_ids("two", [*entities, "\0spare"], relations, {"train": ids})
    assert one.digest == two.digest
    assert one.entities.labels.to_list() == two.entities.labels.to_list()


@given(triples, triples, st.data())
def test_a_digest_changes_with_any_triple_and_its_split(train, test, data):
    def digest(**parts):
        columns = {split: table_of(part, split).columns for split, part in parts.items() if part}
        return KnowledgeGraph.from_columns("graph", columns).digest

    before = digest(train=train, test=test)
    at = data.draw(st.integers(0, len(train) - 1))
    other = data.draw(st.tuples(label, label, label).filter(lambda triple: triple != train[at]))
    assert digest(train=[*train[:at], other, *train[at + 1 :]], test=test) != before
    assert digest(train=[*train, other], test=test) != before
    assert digest(train=train[:at] + train[at + 1 :], test=[*test, train[at]]) != before
    assert digest(train=train, valid=test) != before


def sides(rows):
    return [label for h, _, t in rows for label in (h, t)], [r for _, r, _ in rows]
