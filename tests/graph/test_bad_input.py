"""Every mistake in the user's files is told in one line: place, what was expected and found, what to do."""

import gzip
import os
import re

import numpy as np
import pytest

from autosf.errors import UserError
from autosf.graph.negatives import read_negatives
from autosf.graph.reading import read_graph

GOOD = b"a\tr\tb\nb\tr\tc\nc\tr\ta\n"
SPLITS = {"valid.txt": b"a\tr\tc\n", "test.txt": b"b\tr\ta\n"}
OPENKE = {
    "entity2id.txt": b"2\na\t0\nb\t1\n",
    "relation2id.txt": b"1\nr\t0\n",
    "train2id.txt": b"2\n0 1 0\n1 0 0\n",
    "valid2id.txt": b"1\n0 0 0\n",
    "test2id.txt": b"1\n1 1 0\n",
}
DICT = {"entities.dict": b"0\ta\n1\tb\n2\tc\n", "relations.dict": b"0\tr\n"}
LIBKGE = {
    "entity_ids.del": b"0\ta\n1\tb\n",
    "relation_ids.del": b"0\tr\n",
    "train.del": b"0\t0\t1\n",
    "valid.del": b"1\t0\t0\n",
    "test.del": b"1\t0\t1\n",
}


def train(content, name="train.txt", **others):
    return {name: content, **SPLITS, **others}


# what is wrong: the folder's files, the file and line that must be named, and what the message must say
MISTAKES = {
    "empty file": (train(b""), "train.txt", "expected triples, found an empty file"),
    "empty gzip": (train(gzip.compress(b""), "train.txt.gz"), "train.txt.gz", "found an empty file"),
    "blank lines only": (train(b"\n\r\n\n"), "train.txt", "expected triples, found only blank lines"),
    "header only": (train(b"head\trelation\ttail\n"), "train.txt", "expected triples, found only a header"),
    "binary file": (
        train(b"\x89PNG\r\n\x1a\n\x00\x00"),
        "train.txt",
        "expected a text file, found a binary one",
    ),
    "zip archive": (train(b"PK\x03\x04abc"), "train.txt", "found a zip archive; unpack it first"),
    "utf-16": (train("a\tr\tb\n".encode("utf-16")), "train.txt", "UTF-16 text; save it as UTF-8"),
    "parquet under another name": (train(b"PAR1\x15.."), "train.txt", "parquet file; name it .parquet"),
    "text named parquet": (train(GOOD, "train.parquet"), "train.parquet", "expected a parquet file"),
    "too few columns": (
        train(GOOD + b"a\tr\n"),
        "train.txt:4",
        "expected 3 tab-separated fields, found 2; mend",
    ),
    "too many columns": (
        train(GOOD + b"a\tr\tb\tx\n"),
        "train.txt:4",
        "expected 3 tab-separated fields, found 4",
    ),
    "one column": (train(b"abc\ndef\n"), "train.txt:1", "expected 3 tab-separated fields, found 1"),
    "two columns": (train(b"a\tb\nc\td\n"), "train.txt:1", "expected 3 tab-separated fields, found 2"),
    "two columns of labels with spaces": (
        train(b"New York\tLos Angeles\nSan Jose\tNew Delhi\n"),
        "train.txt:1",
        "expected 3 tab-separated fields, found 2",
    ),
    "four columns": (
        train(b"a\tr\tb\t1\n" * 3),
        "train.txt:1",
        r"found 4; say .*: autosf data split FILE --columns 0,1,2 --out DIR \(Python: columns=\(0, 1, 2\)\)",
    ),
    "mixed delimiters": (
        train(GOOD + b"a,r,b\n"),
        "train.txt:4",
        r"expected 3 tab-separated fields, found 1 \(but 3 separated by comma\); use one delimiter",
    ),
    "json": (
        train(b'[{"head": "a", "relation": "r", "tail": "b"}]\n'),
        "train.txt",
        "found JSON; of JSON an object",
    ),
    "json over several lines": (train(b'[\n  {"head": "a"}\n]\n'), "train.txt", "found JSON"),
    "json of lists": (train(b'["a", "r", "b"]\n["b", "r", "c"]\n'), "train.txt", "found JSON"),
    "json, a row a line": (train(b'[["a", "r", "b"],\n["b", "r", "c"]]\n'), "train.txt", "found JSON"),
    "a stray tab": (
        train(b"a r b\nc r d\ne f\tr g\nh r i\n"),
        "train.txt:3",
        "expected tabs in all lines or in none, found one here; mend the line",
    ),
    "json lines with a list for a label": (
        train(
            b'{"head": "a", "relation": "r", "tail": "b", "w": 1}\n'
            b'{"head": ["a"], "relation": "r", "tail": "b", "w": [1]}\n',
            "train.jsonl",
        ),
        "train.jsonl:2",
        r'expected a label in "head", found "\[',
    ),
    "json lines under another name": (
        train(b'{"head": "a", "relation": "r", "tail": "b"}\n'),
        "train.txt",
        "found JSON; .*named .jsonl",
    ),
    "json lines with another line": (
        train(b'{"head": "a", "relation": "r", "tail": "b"}\n\n["a", "r", "b"]\n', "train.jsonl"),
        "train.jsonl:3",
        r'expected a JSON object, found "\[',
    ),
    "json lines without a tail": (
        train(
            b'{"head": "a", "relation": "r", "tail": "b"}\n{"head": "a", "relation": "r"}\n', "train.jsonl"
        ),
        "train.jsonl",
        'row 2: expected a label in "tail", found an empty one',
    ),
    "json lines of other names": (
        train(b'{"id": 1, "a": "a", "r": "r", "b": "b"}\n', "train.jsonl"),
        "train.jsonl",
        "expected 3 columns, found 4: .*; say which are head, relation and tail: autosf data split",
    ),
    "empty json lines": (train(b"", "train.jsonl"), "train.jsonl", "expected triples, found an empty file"),
    "blank json lines": (
        train(b"\n\n", "train.jsonl"),
        "train.jsonl",
        "expected a JSON object a line, found none",
    ),
    "json lines with invalid utf-8": (
        train(b'{"head": "caf\xe9", "relation": "r", "tail": "b"}\n', "train.jsonl"),
        "train.jsonl:1",
        "expected UTF-8 text",
    ),
    "json lines with a fraction": (
        train(b'{"head": 1.5, "relation": "r", "tail": "b"}\n', "train.jsonl"),
        "train.jsonl",
        "expected a column of text or whole numbers",
    ),
    "invalid utf-8": (
        train(GOOD + b"caf\xe9\tr\tb\n"),
        "train.txt:4",
        "expected UTF-8 text, found byte 0xe9 at column 4; save the file as UTF-8",
    ),
    "invalid utf-8 far down": (
        train(GOOD * 100_000 + b"\xff\tr\tb\n"),
        "train.txt:300001",
        "byte 0xff at column 1",
    ),
    "empty label": (
        train(GOOD + b"a\t\tb\n"),
        "train.txt:4",
        "expected a label in field 2, found an empty one",
    ),
    "empty last label": (
        train(GOOD + b"a\tr\t\n"),
        "train.txt:4",
        "expected a label in field 3, found an empty one",
    ),
    "three empty labels": (
        train(GOOD + b"\t\t\n"),
        "train.txt:4",
        "expected a label in field 1, found an empty one",
    ),
    "empty quoted label": (
        train(b'a,r,b\na,"",c\n', "train.csv"),
        "train.csv:2",
        "expected a label in field 2",
    ),
    "open quote": (
        train(b'a,r,b\n"a,r,c\n', "train.csv"),
        "train.csv:2",
        "a quote is opened and never closed",
    ),
    "open quote on the first line": (
        train(b'"a","r","b\n"c","r","d"\n', "train.csv"),
        "train.csv:1",
        "found .*; the quote that opens field 3 is not closed on its line; close it there",
    ),
    "open quote that nothing closes": (
        train(b'"a","r","b\nc,r,d\n', "train.csv"),
        "train.csv:1",
        "a quote is opened and never closed; close or remove it",
    ),
    "text after a quote": (
        train(b'a,r,b\n"a"x,r,c\n', "train.csv"),
        "train.csv:2",
        'expected a delimiter or the line\'s end after a closing quote, found "x,r,c"',
    ),
    "header twice": (
        train(b"head,relation,tail\na,r,b\nhead,relation,tail\nc,r,d\n", "train.csv"),
        "train.csv:3",
        "expected a triple, found the header again.*; remove the line",
    ),
    "one name twice in the header": (
        train(b"head,relation,head\na,r,b\n", "train.csv"),
        "train.csv:1",
        'the header is duplicated: "head" and "head" both name the head; rename one',
    ),
    "truncated gzip": (
        train(gzip.compress(os.urandom(3000).hex().encode())[:-30], "train.txt.gz"),
        "train.txt.gz",
        "the gzip file is truncated; fetch or pack it again",
    ),
    "damaged gzip": (
        train(gzip.compress(GOOD)[:-8] + b"\0" * 8, "train.txt.gz"),
        "train.txt.gz",
        "the gzip file is damaged",
    ),
    "no valid split": (
        {"train.txt": GOOD, "test.txt": b"a\tr\tb\n"},
        "",
        "no valid split; expected valid or validation or dev or val beside train and test; make_valid=0.1",
    ),
    "no train split": (SPLITS, "", 'no train split; expected train, valid and test, found only "test.txt"'),
    "folder without triples": (
        {"readme.md": b"hello"},
        "",
        'no triples here; expected train, valid and test as .*found "readme.md"',
    ),
    "empty folder": ({}, "", "no triples here; .*found no files"),
    "triples one folder down": ({"inside/train.txt": GOOD}, "", 'did you mean its folder "inside"'),
    "two files for a split": (
        train(GOOD, **{"train.csv": GOOD}),
        "",
        'expected one file for train, found "train.txt" and',
    ),
    "valid and dev": (
        train(GOOD, **{"dev.txt": GOOD}),
        "",
        'one file for valid, found "valid.txt" and "dev.txt"',
    ),
    "count line that lies": (
        OPENKE | {"train2id.txt": b"3\n0 1 0\n1 0 0\n"},
        "train2id.txt:1",
        "the count line says 3, found 2 lines after it; correct the count or complete the file",
    ),
    "count line that lies about labels": (
        OPENKE | {"entity2id.txt": b"1\na\t0\nb\t1\n"},
        "entity2id.txt:1",
        "the count line says 1, found 2 lines",
    ),
    "no count line": (
        OPENKE | {"train2id.txt": b"0 1 0\n1 0 0\n"},
        "train2id.txt:1",
        'expected the number of lines that follow, found "0 1 0"',
    ),
    "enormous count line": (
        OPENKE | {"train2id.txt": b"9" * 5000 + b"\n0 1 0\n"},
        "train2id.txt:1",
        "count line says",
    ),
    "id out of range": (
        OPENKE | {"train2id.txt": b"2\n0 1 0\n1 7 0\n"},
        "train2id.txt:3",
        'expected an id from 0 to 1 as in "entity2id.txt", found "7"',
    ),
    "relation id out of range": (
        OPENKE | {"valid2id.txt": b"1\n0 1 4\n"},
        "valid2id.txt:2",
        'expected an id from 0 to 0 as in "relation2id.txt", found "4"',
    ),
    "label where an id belongs": (LIBKGE | {"test.del": b"0\t0\t1\na\t0\t1\n"}, "test.del:2", 'found "a"'),
    "negative id": (LIBKGE | {"train.del": b"0\t0\t-1\n"}, "train.del:1", 'found "-1"'),
    "id given twice": (
        LIBKGE | {"entity_ids.del": b"0\ta\n0\tb\n"},
        "entity_ids.del:1",
        'expected the ids 0 to 1, each once, found "0"; number the lines anew',
    ),
    "id beyond the labels": (LIBKGE | {"entity_ids.del": b"0\ta\n9\tb\n"}, "entity_ids.del:2", 'found "9"'),
    "label given twice": (
        LIBKGE | {"entity_ids.del": b"0\ta\n1\ta\n"},
        "entity_ids.del:1",
        'the label "a" has two ids',
    ),
    "label that the dict lacks": (
        train(GOOD + b"a\tr\tz\n", **DICT),
        "train.txt:4",
        'expected a label of "entities.dict", found "z"; add it there or remove the line',
    ),
    "id that the dict lacks": (
        {"train.txt": b"0\t0\t1\n", "valid.txt": b"0\t0\t5\n", "test.txt": b"1\t0\t1\n", **DICT},
        "valid.txt:1",
        'expected an id from 0 to 2 as in "entities.dict", found "5"',
    ),
    "broken n-triples": (
        train(b"<http://a> <http://r> <http://b> .\n<http://a> oops\n", "train.nt"),
        "train.nt:2",
        "",
    ),
    "broken xml": (train(b"<rdf><", "train.rdf"), "train.rdf:1", ""),
    "literals only": (
        train(b'<http://a> <http://r> "x" .\n', "train.nt"),
        "train.nt",
        "found none and 1 literal",
    ),
}


def make_folder(folder, files):
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_that_names_the_place(tmp_path, mistake):
    files, place, expected = MISTAKES[mistake]
    folder = make_folder(tmp_path / "graph", files)
    if any(name.endswith((".nt", ".rdf")) for name in files):
        pytest.importorskip("pyoxigraph")
    with pytest.raises(UserError) as raised:
        read_graph(folder)
    message = str(raised.value)
    assert message.startswith(f"{folder}/{place}: " if place else f"{folder}: ")
    assert re.search(expected, message), message
    assert "\n" not in message
    assert len(message.removeprefix(str(folder))) < 260


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((0, 1, 1), "columns: expected three different ones, found place 1 twice"),
        (("tail", "edge label", "tail"), 'columns: expected three different ones, found "tail" twice'),
        (("head", "link", "tail"), 'no column "link" in "head", "edge label", "tail"'),
        ((0, 1, 9), "columns asks for place 9, found places 0 to 2"),
        ((0, 1), "columns: expected three names or places"),
        ("head", "columns: expected three names or places"),
    ],
)
def test_columns_that_are_not_there_are_refused(tmp_path, columns, expected):
    file = tmp_path / "all.csv"
    file.write_text("head,edge label,tail\na,r,b\n")
    with pytest.raises(UserError, match=re.escape(expected)):
        read_graph(file, columns=columns)


def test_an_open_quote_is_told_where_the_delimiter_is_given(tmp_path):
    file = tmp_path / "all.txt"
    file.write_text('"a,r,b\nc,r,d\n')
    with pytest.raises(UserError, match=r"all.txt:1: a quote is opened and never closed"):
        read_graph(file, delimiter=",")


@pytest.mark.parametrize("delimiter", ["", "ab", "é", '"', "\n"])
def test_a_delimiter_is_one_plain_character(tmp_path, delimiter):
    file = tmp_path / "all.txt"
    file.write_bytes(GOOD)
    with pytest.raises(UserError, match="delimiter: expected one plain character"):
        read_graph(file, delimiter=delimiter)


def test_a_layout_must_be_known_and_complete(tmp_path):
    folder = make_folder(tmp_path / "graph", train(GOOD))
    with pytest.raises(UserError, match='unknown layout "openkee"; did you mean "openke"'):
        read_graph(folder, layout="openkee")
    with pytest.raises(UserError, match=r"the layout dict needs train, entities.dict, relations.dict; found"):
        read_graph(folder, layout="dict")
    with pytest.raises(UserError, match="expected train, valid and test in the layout libkge"):
        read_graph(folder, layout="libkge")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (42, "triples: expected a folder, a file, a name, a frame, .* found int"),
        ([], "triples: expected triples, found none"),
        ([("a", "r")], r"triples: row 1: expected a triple \(head, relation, tail\), found"),
        ([("a", "r", "b"), "arb"], "triples: row 2: expected a triple"),
        ([{"a", "r", "b"}], "triples: row 1: expected a triple"),
        ([{"head": "a", "relation": "r", "tail": "b"}], "triples: row 1: expected a triple"),
        ([np.array(1)], "triples: row 1: expected a triple"),
        ([("a", "r", ["b"])], "triples: (row 1: )?expected"),
        ([("a", "r", "b"), ("a", "", "b")], 'triples: row 2: expected a label in "1", found an empty one'),
        ([("a", "r", "b"), ("a", None, "b")], 'triples: row 2: expected a label in "1", found an empty one'),
        ([("a", "r", 1.5)], "triples: expected a column of text or whole numbers, found Float64"),
        (
            [("a", "r", object())],
            "triples: (row 1: expected text or a whole number|expected a column of text)",
        ),
        ([("a", "r", "\udcff")], "triples: row 1: expected text or a whole number, found"),
        ({}, "splits: expected train, valid and test, found an empty dict"),
        ({"trian": []}, 'splits: expected train, valid and test, found "trian" instead'),
        ({"valid": [("a", "r", "b")], "dev": []}, 'found "dev" again'),
        ({"valid": [("a", "r", "b")]}, "splits: no train split; found valid"),
        ({"train": [("a", "r", "b")]}, "splits: no valid split"),
        ("no/such/folder", "no/such/folder: there is no such file or folder"),
        ("", 'expected a graph: a folder, a file or a name, found ""'),
        ({"train": ""}, 'expected a graph: a folder, a file or a name, found ""'),
        ("x" * 5000, "unknown graph"),
        ("a\0b", "unknown graph"),
    ],
)
def test_a_source_that_is_no_graph_is_refused(source, expected):
    with pytest.raises(UserError, match=expected) as raised:
        read_graph(source)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {"make_valid": "0.1"},
            'make_valid: expected a share below 1 or a whole number of triples, found "0.1"',
        ),
        ({"make_test": [1]}, "make_test: expected a share below 1 or a whole number of triples, found [1]"),
        ({"make_valid": 1.5}, "expected a share below 1 or a whole number of triples, found 1.5"),
        ({"make_valid": 0.6, "make_test": 0.6}, "valid 0.6, test 0.6: expected less than all of 2 triples"),
        ({"make_valid": 2, "make_test": 0}, "valid 2, test 0: expected less than all of 2 triples"),
        ({"seed": "a"}, 'seed: expected a whole number from 0, found "a"'),
        ({"seed": -1}, "seed: expected a whole number from 0, found -1"),
        ({"seed": 0.5}, "seed: expected a whole number from 0, found 0.5"),
    ],
)
def test_sizes_and_seeds_that_are_no_numbers_are_refused(options, expected):
    with pytest.raises(UserError, match=re.escape(expected)):
        read_graph([("a", "r", "b"), ("b", "r", "c")], **options)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UserError, match=r"(?i)FB15k-237"):
        read_graph("fb15k-273")


def test_an_unreadable_file_is_named(tmp_path):
    folder = make_folder(tmp_path / "graph", train(GOOD))
    (folder / "train.txt").unlink()
    (folder / "train.txt").symlink_to(folder / "nowhere")
    with pytest.raises(UserError, match="no train split"):
        read_graph(folder)


def test_a_test_triple_that_is_also_in_train_is_warned_of_with_the_count(tmp_path):
    files = {
        "train.txt": GOOD,
        "valid.txt": b"c\tr\ta\n",
        "test.txt": b"a\tr\tb\nb\tr\tc\na\tr\tb\na\tr\tc\n",
    }
    graph = read_graph(make_folder(tmp_path / "graph", files))
    assert graph.warnings == (
        "1 of 1 valid triple is also in train",
        "3 of 4 test triples are also in train",
    )


def test_a_missing_valid_split_is_made_on_request(tmp_path):
    rows = "".join(f"{a}\tr\t{b}\n" for a in range(5) for b in range(5))
    folder = make_folder(tmp_path / "graph", {"train.txt": rows.encode(), "test.txt": b"0\tq\t1\n"})
    graph = read_graph(folder, make_valid=5)
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (20, 5, 1)
    assert "split the triples into 20 train, 5 valid (seed 0)" in graph.warnings
    without = read_graph(folder, make_valid=0)
    assert (len(without.train), len(without.valid)) == (25, 0)
    assert read_graph(folder, make_valid=0, make_test=0).digest == without.digest
    with pytest.raises(UserError, match="make_test: there is a test split already"):
        read_graph(folder, make_valid=5, make_test=5)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a\tr\tb\t2\n", r'valid_neg.tsv:2: expected the label 1 or -1 in field 4, found "2"'),
        (b"a\tr\tz\t1\n", r'valid_neg.tsv:2: unknown entity "z"'),
        (b"a\tr\tb\n", r"valid_neg.tsv:2: expected 4 tab-separated fields, found 3"),
    ],
)
def test_labelled_triples_are_checked_line_by_line(tmp_path, line, expected):
    folder = make_folder(tmp_path / "graph", train(GOOD) | {"valid_neg.tsv": b"a\tr\tb\t1\n" + line})
    with pytest.raises(UserError, match=expected):
        read_negatives(folder, read_graph(folder))


def test_missing_labelled_triples_are_told(tmp_path):
    folder = make_folder(tmp_path / "graph", train(GOOD) | {"valid_neg.tsv": b"a\tr\tb\t1\nb\tr\tb\t-1\n"})
    with pytest.raises(UserError, match=r"no labelled triples for test; expected test_neg.tsv"):
        read_negatives(folder, read_graph(folder))
