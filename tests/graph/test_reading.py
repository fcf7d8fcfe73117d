"""What `read_graph` takes, and that it says the same of a graph in every form."""

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from autosf.errors import UserError
from autosf.graph.knowledge_graph import SPLITS
from autosf.graph.negatives import read_negatives
from autosf.graph.reading import read_graph
from autosf.graph.writing import LAYOUTS, write_graph

TRAIN = [("a", "r", "b"), ("b", "r", "c"), ("c", "q", "a")]
VALID = [("a", "q", "c")]
TEST = [("b", "q", "d")]
PARTS = {"train": TRAIN, "valid": VALID, "test": TEST}
HOSTILE = [
    "tab\tinside",
    'quo"te',
    '"',
    '""',
    "<script>alert(1)</script>",
    "line\nbreak",
    "carriage\r\nreturn",
    "עברית العربية",
    "👩‍👩‍👧 🏳️‍🌈",
    "comma, semicolon; space",
    " leading and trailing ",
    "\u202ereversed",
    "\ufeffmark",
    "x^",
    "x\x01",
    "#comment",
    "NULL",
    "nan",
    "'; DROP TABLE triples; --",
    "../../etc/passwd",
    "=1+1",
    "\\N",
    "é",
    "e\u0301",
]


def labels(graph):
    """The triples of each split in labels, in order."""
    return {split: list(zip(*(c.to_list() for c in graph.columns(split)), strict=True)) for split in SPLITS}


def rows(triples, delimiter="\t", end="\n"):
    return "".join(delimiter.join(triple) + end for triple in triples)


def make_folder(folder, suffix=".txt", write=rows, words=SPLITS):
    folder.mkdir(parents=True)
    for word, triples in zip(words, PARTS.values(), strict=True):
        content = write(triples).encode()
        (folder / f"{word}{suffix}").write_bytes(
            gzip.compress(content) if suffix.endswith(".gz") else content
        )
    return folder


@pytest.fixture(scope="module")
def expected():
    return read_graph(PARTS)


def test_ids_are_places_in_one_sorted_vocabulary_over_all_splits(expected):
    assert expected.entities.labels.to_list() == ["a", "b", "c", "d"]
    assert expected.relations.labels.to_list() == ["q", "r"]
    assert expected.train.tolist() == [[0, 1, 1], [1, 1, 2], [2, 0, 0]]
    assert expected.test.tolist() == [[1, 0, 3]]
    assert labels(expected) == PARTS


@pytest.mark.parametrize(
    "suffix", ["", ".txt", ".tsv", ".csv", ".gz", ".txt.gz", ".tsv.gz", ".csv.gz", ".TXT"]
)
@pytest.mark.parametrize("delimiter", ["\t", ",", ";", " ", "   "])
def test_every_extension_and_delimiter_is_read(tmp_path, expected, suffix, delimiter):
    folder = make_folder(tmp_path / "graph", suffix, lambda triples: rows(triples, delimiter))
    assert read_graph(folder).digest == expected.digest


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("delimiter", [", ", " ,", "; ", ",\t", " , "])
def test_spaces_around_commas_and_semicolons_mean_nothing(tmp_path, expected, delimiter, quote):
    def write(triples):
        wrapped = [tuple(f"{quote}{label}{quote}" for label in row) for row in triples]
        return rows([("head", "relation", "tail"), *wrapped], delimiter, " \n") + " \n"

    assert read_graph(make_folder(tmp_path / "graph", ".csv", write)).digest == expected.digest


def test_spaces_inside_quotes_belong_to_the_label(tmp_path):
    (tmp_path / "all.csv").write_text('" a ", r , b\n')
    assert labels(read_graph(tmp_path / "all.csv", make_valid=0, make_test=0))["train"] == [(" a ", "r", "b")]


def test_labels_that_exist_with_and_without_a_space_are_counted_once_a_graph(tmp_path):
    triples = [("ann", " knows", "bob "), ("bob", "knows", " eve"), ("ann", "knows", " bob")]
    folder = tmp_path / "graph"
    folder.mkdir()
    for split in SPLITS:
        (folder / f"{split}.tsv").write_text(rows(triples))
    told = [warning for warning in read_graph(folder).warnings if "space" in warning]
    assert told == ["3 labels with a space before or after are there without it, too"]
    assert labels(read_graph(folder))["train"] == triples


@pytest.mark.parametrize("word", ["valid", "dev", "val", "validation", "VALID"])
def test_valid_has_several_names(tmp_path, expected, word):
    folder = make_folder(tmp_path / "graph", words=("train", word, "test"))
    assert read_graph(folder).digest == expected.digest


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("nt", "ttl", "rdf")])
def test_every_layout_has_the_same_digest_ids_and_order(tmp_path, expected, layout):
    graph = read_graph(write_graph(expected, tmp_path / "graph", layout))
    assert graph.digest == expected.digest
    assert labels(graph) == labels(expected)
    assert graph.name == "graph"
    assert graph.warnings == ()


@pytest.mark.parametrize("layout", ["nt", "ttl", "rdf"])
def test_rdf_has_the_digest_of_its_iris(tmp_path, layout):
    pytest.importorskip("pyoxigraph")
    prefix = "http://example.org/"
    parts = {
        split: [tuple(prefix + x for x in triple) for triple in triples] for split, triples in PARTS.items()
    }
    parts["train"].append((f"{prefix}a", f"{prefix}r", "_:blank"))
    graph = read_graph(parts)
    assert read_graph(write_graph(graph, tmp_path / "graph", layout)).digest == graph.digest


@pytest.mark.parametrize("layout", ["csv", "csv.gz", "parquet"])
def test_untrusted_labels_survive(tmp_path, layout):
    hostile = [*HOSTILE, "long" * 250_000]
    train = [(label, "r", other) for label, other in zip(hostile, hostile[1:] + hostile[:1], strict=True)]
    graph = read_graph({"train": train, "valid": train[:1], "test": [("\ufeffmark", "r\n", "x")]})
    again = read_graph(write_graph(graph, tmp_path / "graph", layout))
    assert again.digest == graph.digest
    assert labels(again) == labels(graph)


@pytest.mark.parametrize("layout", ["txt", "tsv.gz", "none", "dict", "dict-ids", "openke", "libkge"])
def test_untrusted_labels_survive_wherever_a_line_can_hold_them(tmp_path, layout):
    hostile = [label for label in HOSTILE if not set(label) & set("\t\n")]
    train = [(label, "r", label) for label in (*hostile, "long" * 250_000)]
    firsts = [("\ufeffmark", "r", "x"), ("x^", "r", "x"), ("x\x01", "r", "x"), train[-1]]
    for number, first in enumerate(firsts):
        graph = read_graph({"train": [first, *train], "valid": [first], "test": [first]})
        again = read_graph(write_graph(graph, tmp_path / str(number), layout))
        assert labels(again) == labels(graph)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_first_triple_that_looks_like_a_header_survives(tmp_path, layout):
    train = [
        ("head", "relation", "tail"),
        ("h", "r", "t"),
        ("subject", "predicate", "object"),
        ("a", "b", "a"),
    ]
    graph = read_graph({"train": train, "valid": train[:1], "test": train[2:3]}, header=False)
    if layout in ("nt", "ttl", "rdf"):
        with pytest.raises(UserError, match="expected IRIs"):
            write_graph(graph, tmp_path / "graph", layout)
    else:
        assert labels(read_graph(write_graph(graph, tmp_path / "graph", layout))) == labels(graph)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"),
        lambda text: text.removesuffix(b"\n"),
        lambda text: text + b"\n\n",
        lambda text: b"\n" + text.replace(b"\n", b"\n\n"),
        lambda text: text.replace(b"\n", b"\r\n\r\n"),
    ],
    ids=["mark", "crlf", "mark and crlf", "no last newline", "blank end", "blank lines", "blank crlf lines"],
)
def test_harmless_differences_are_accepted(tmp_path, expected, change):
    folder = make_folder(tmp_path / "graph")
    for file in folder.iterdir():
        file.write_bytes(change(file.read_bytes()))
    assert read_graph(folder).digest == expected.digest


@pytest.mark.parametrize("layout", ["openke", "libkge", "dict", "dict-ids"])
def test_numbered_layouts_may_have_windows_lines_and_be_packed(tmp_path, expected, layout):
    folder = write_graph(expected, tmp_path / "graph", layout)
    for file in list(folder.iterdir()):
        (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes().replace(b"\n", b"\r\n")))
        file.unlink()
    assert read_graph(folder).digest == expected.digest


def test_openke_writes_head_tail_relation(tmp_path):
    graph = read_graph(
        {"train": [("a", "r", "b"), ("b", "s", "c")], "valid": [("a", "s", "c")], "test": VALID}
    )
    folder = write_graph(graph, tmp_path / "graph", "openke")
    assert (folder / "train2id.txt").read_text() == "2\n0 1 1\n1 2 2\n"
    assert (folder / "entity2id.txt").read_text() == "3\na\t0\nb\t1\nc\t2\n"


def test_a_dict_whose_labels_are_numbers_is_read_as_labels_unless_told(tmp_path):
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "entities.dict").write_text("0\t1\n1\t0\n")
    (folder / "relations.dict").write_text("0\tr\n")
    for split in SPLITS:
        (folder / f"{split}.txt").write_text("0\tr\t1\n")
    assert labels(read_graph(folder))["train"] == [("0", "r", "1")]
    for split in SPLITS:
        (folder / f"{split}.txt").write_text("0\t0\t1\n")
    assert labels(read_graph(folder, ids=True))["train"] == [("1", "r", "0")]


def test_labels_that_no_triple_uses_are_left_out_and_told(tmp_path, expected):
    folder = write_graph(expected, tmp_path / "graph", "libkge")
    with (folder / "entity_ids.del").open("a") as file:
        file.write("4\tnever\n")
    graph = read_graph(folder)
    assert graph.digest == expected.digest
    assert graph.warnings == ("left out 1 entity label that no triple uses",)


HEADERS = [
    ("head\trelation\ttail", (0, 1, 2)),
    ("Subject\tPredicate\tObject", (0, 1, 2)),
    ("h\tr\tt", (0, 1, 2)),
    ("s\tp\to", (0, 1, 2)),
    ("source\ttarget\trelation", (0, 2, 1)),
    (":START_ID\t:TYPE\t:END_ID", (0, 1, 2)),
    ("from\tlabel\tto", (0, 1, 2)),
    ("from\tedge\tto\tweight", (0, 1, 2, 1)),
]


@pytest.mark.parametrize(("header", "order"), HEADERS)
def test_a_header_is_recognised_and_names_the_columns(tmp_path, expected, header, order):
    def write(triples):
        return header + "\n" + "".join("\t".join(triple[at] for at in order) + "\n" for triple in triples)

    assert read_graph(make_folder(tmp_path / "graph", write=write)).digest == expected.digest


def test_a_header_of_other_words_is_named_by_options(tmp_path, expected):
    def write(triples):
        return "who,how,whom,when\n" + "".join(f"{h},{r},{t},1999\n" for h, r, t in triples)

    folder = make_folder(tmp_path / "graph", ".csv", write)
    assert read_graph(folder, columns=("who", "how", "whom")).digest == expected.digest
    assert read_graph(folder, columns=(0, 1, 2), header=True).digest == expected.digest
    with pytest.raises(UserError, match="expected 3 comma-separated fields, found 4"):
        read_graph(folder)


def test_a_first_line_whose_labels_never_come_again_may_be_a_header_and_is_warned_of(tmp_path):
    file = tmp_path / "all.csv"
    triples = [(f"e{at % 5}", f"r{at % 2}", f"e{at % 7}") for at in range(20)]
    no_split = {"make_valid": 0, "make_test": 0}
    file.write_text(rows([("Person", "Does", "Thing"), *triples], ","))
    (told,) = read_graph(file, **no_split).warnings
    assert told == (
        f"{file}:1: taken for a triple, though none of its labels comes again; if it is a header: "
        "autosf data split FILE --header --out DIR (Python: header=True)"
    )
    assert read_graph(file, header=False, **no_split).warnings == ()
    assert read_graph(file, header=True, **no_split).warnings == ()
    for first in (("Person", "r0", "Thing"), ("e1", "Does", "Thing"), ("Person", "Does", "e1")):
        file.write_text(rows([first, *triples], ","))
        assert read_graph(file, **no_split).warnings == ()
    file.write_text(rows([("Person", "Does", "Thing"), *triples[:18]], ","))
    assert read_graph(file, **no_split).warnings == ()
    file.write_text(rows([("Person", "Does", "Thing"), *triples, ("e1", "only once", "e2")], ","))
    assert read_graph(file, **no_split).warnings == ()


def test_what_looks_like_a_header_can_be_a_triple(tmp_path):
    file = tmp_path / "all.txt"
    file.write_text("s\tp\to\na\tp\tb\n")
    assert len(read_graph(file, header=False, make_valid=0, make_test=0).train) == 2
    assert len(read_graph(file, make_valid=0, make_test=0).train) == 1


def test_columns_in_another_order_and_another_delimiter(tmp_path, expected):
    folder = make_folder(
        tmp_path / "graph", write=lambda triples: "".join(f"{h}|{t}|{r}\n" for h, r, t in triples)
    )
    assert read_graph(folder, delimiter="|", columns=(0, 2, 1)).digest == expected.digest


def test_a_column_can_tell_the_split(tmp_path, expected):
    words = {"train": "train", "valid": "dev", "test": "Test"}
    file = tmp_path / "all.csv"
    lines = [f"{h},{r},{t},{words[split]}" for split, triples in PARTS.items() for h, r, t in triples]
    file.write_text("head,relation,tail,split\n" + "\n".join(lines))
    assert read_graph(file).digest == expected.digest
    frame = pl.read_csv(file)
    assert read_graph(frame).digest == expected.digest
    assert read_graph(frame.to_pandas()).digest == expected.digest
    frame.write_parquet(tmp_path / "all.parquet")
    assert read_graph(tmp_path / "all.parquet").digest == expected.digest
    with pytest.raises(UserError, match='row 2: expected train, valid or test as the split, found "x"'):
        read_graph(frame.with_columns(split=pl.Series(["train", "x", "train", "dev", "test"])))


FORMS = {
    "polars": lambda triples: pl.DataFrame(triples, schema=["head", "relation", "tail"], orient="row"),
    "polars, other names": lambda triples: pl.DataFrame(triples, schema=["x", "y", "z"], orient="row"),
    "polars, other order": lambda triples: pl.DataFrame(
        [(t, h, r) for h, r, t in triples], schema=["object", "subject", "predicate"], orient="row"
    ),
    "polars lazy": lambda triples: pl.LazyFrame(triples, schema=["head", "relation", "tail"], orient="row"),
    "polars categorical": lambda triples: FORMS["polars"](triples).cast(pl.Categorical),
    "pandas": lambda triples: pd.DataFrame(triples, columns=["head", "relation", "tail"]),
    "pandas objects": lambda triples: pd.DataFrame(
        triples, columns=["head", "relation", "tail"], dtype=object
    ),
    "pandas unnamed": lambda triples: pd.DataFrame(triples),
    "array": lambda triples: np.array(triples),
    "array of objects": lambda triples: np.array(triples, dtype=object),
    "list": lambda triples: triples,
    "list of lists": lambda triples: [list(triple) for triple in triples],
}


@pytest.mark.parametrize("form", FORMS)
def test_what_is_in_memory_is_read_as_files_are(expected, form):
    assert (
        read_graph({split: FORMS[form](triples) for split, triples in PARTS.items()}).digest
        == expected.digest
    )


def test_whole_numbers_are_labels_in_decimal(tmp_path):
    array = np.array([[0, 0, 10], [10, 0, 2], [2, 1, 0]])
    parts = {"train": array, "valid": array[:1].astype(np.int32), "test": array[1:2].astype(np.uint8)}
    graph = read_graph(parts)
    assert graph.entities.labels.to_list() == ["0", "10", "2"]
    for split, part in parts.items():
        np.savetxt(tmp_path / f"{split}.txt", part, fmt="%d", delimiter=" ")
    assert read_graph(tmp_path).digest == graph.digest


def test_json_lines_are_read_as_frames_are(tmp_path, expected):
    folder = tmp_path / "graph"
    folder.mkdir()
    for split, triples in PARTS.items():
        answers = FORMS["polars"](triples).with_columns(score=0.5, known=pl.lit(None), more=pl.struct(x=1))
        answers.write_ndjson(folder / f"{split}.jsonl")
    assert read_graph(folder).digest == expected.digest
    whole = pl.concat(
        [FORMS["polars"](triples).with_columns(split=pl.lit(split)) for split, triples in PARTS.items()]
    )
    packed = tmp_path / "all.ndjson.gz"
    packed.write_bytes(
        gzip.compress(b"\xef\xbb\xbf" + whole.select(reversed(whole.columns)).write_ndjson().encode())
    )
    assert read_graph(packed).digest == expected.digest


@pytest.mark.parametrize(("one", "other"), [("[1]", "2"), ("1", "true"), ('"x"', '{"y": 1}')])
def test_json_lines_may_say_anything_beside_their_labels(tmp_path, one, other):
    file = tmp_path / "facts.jsonl"
    file.write_text(
        f'{{"head": "a", "relation": 7, "tail": "b", "w": {one}}}\n'
        f'{{"w": {other}, "head": "b", "relation": "7", "tail": "c"}}\n'
    )
    graph = read_graph(file, make_valid=0, make_test=0)
    assert labels(graph)["train"] == [("a", "7", "b"), ("b", "7", "c")]


@pytest.mark.parametrize(("name", "separator"), [("wiki.csv", ","), ("wiki.csv", ";"), ("wiki.txt", " ")])
def test_labels_in_brackets_are_no_json(tmp_path, name, separator):
    file, triple = tmp_path / name, ("[[Paris]]", "capital_of", "[[France]]")
    file.write_text(separator.join(triple) + "\n")
    assert labels(read_graph(file, make_valid=0, make_test=0))["train"] == [triple]


def test_json_lines_may_mix_text_and_whole_numbers(tmp_path):
    file = tmp_path / "all.jsonl"
    file.write_text('{"s": "a", "p": 7, "o": 3}\n\n{"o": "b", "p": 7, "s": 10}\n')
    graph = read_graph(file, make_valid=0, make_test=0)
    assert labels(graph)["train"] == [("a", "7", "3"), ("10", "7", "b")]


def test_a_dict_may_mix_files_and_frames(tmp_path, expected):
    folder = make_folder(tmp_path / "graph")
    parts = {"train": str(folder / "train.txt"), "dev": folder / "valid.txt", "test": FORMS["pandas"](TEST)}
    assert read_graph(parts).digest == expected.digest


@pytest.mark.parametrize("kind", ["polars", "pandas", "parquet"])
def test_a_frame_of_other_than_three_columns_says_which_they_are(tmp_path, kind):
    names = ["id", "head", "rel_name", "tail"]
    frame = pl.DataFrame([(0, *triple) for triple in TRAIN], schema=names, orient="row")
    frame.write_parquet(tmp_path / "all.parquet")
    source = {"polars": frame, "pandas": frame.to_pandas(), "parquet": tmp_path / "all.parquet"}[kind]
    found = (
        'expected 3 columns, found 4: "id", "head", "rel_name", "tail"; say which are head, relation and tail'
    )
    with pytest.raises(UserError, match=rf"{found}: .*columns=\(0, 1, 2\)"):
        read_graph(source)
    graph = read_graph(source, columns=("head", "rel_name", "tail"), make_valid=0, make_test=0)
    assert graph.warnings == ()
    assert graph.digest == read_graph(TRAIN, make_valid=0, make_test=0).digest


def test_a_frame_whose_third_column_tells_the_split_has_too_few():
    with pytest.raises(UserError, match="triples: expected 3 columns beside the split, found 2"):
        read_graph(pl.DataFrame({"x": ["a"], "y": ["b"], "split": ["train"]}))


def test_a_single_file_is_split_and_the_order_of_its_rows_does_not_matter(tmp_path):
    triples = [(f"e{a}", "r", f"e{b}") for a in range(12) for b in range(12)]
    digests = set()
    for name, order in (
        ("one.txt", triples),
        ("two.txt", triples[::-1]),
        ("three.txt", triples + triples[:30]),
    ):
        (tmp_path / name).write_text(rows(order))
        graph = read_graph(tmp_path / name)
        assert (len(graph.train), len(graph.valid), len(graph.test)) == (116, 14, 14)
        assert set(np.unique(graph.train[:, ::2])) == set(range(12))
        assert graph.warnings == (
            "split the triples into 116 train, 14 valid, 14 test (seed 0)",
            *(["30 repeated triples left out"] if name == "three.txt" else []),
        )
        digests.add(graph.digest)
    assert len(digests) == 1
    assert read_graph(tmp_path / "one.txt", seed=1).digest not in digests
    assert len(read_graph(str(tmp_path / "one.txt"), make_valid=3, make_test=0.25).test) == 36


def test_splits_that_cannot_be_had_are_told(tmp_path):
    (tmp_path / "chain.txt").write_text(rows([(f"e{i}", f"r{i}", f"e{i + 1}") for i in range(10)]))
    graph = read_graph(tmp_path / "chain.txt")
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (10, 0, 0)
    assert "2 triples fewer than asked for: train must show every entity and relation" in graph.warnings


def test_arrays_of_a_graph_cannot_be_written(tmp_path):
    (tmp_path / "all.txt").write_text(rows([(f"e{a}", "r", f"e{b}") for a in range(9) for b in range(9)]))
    for graph in (read_graph(PARTS), read_graph(tmp_path / "all.txt")):
        for _, triples in graph.splits():
            assert triples.dtype == np.int32
            with pytest.raises(ValueError, match="read-only"):
                triples[0, 0] = 1


def test_literals_are_left_out_and_counted(tmp_path):
    pytest.importorskip("pyoxigraph")
    turtle = """
    @prefix e: <http://e/> .
    e:a e:r e:b ; e:name "A", "a"@en ; e:age 7 .
    e:b e:r [ e:r e:c ] .
    """
    (tmp_path / "all.ttl").write_text(turtle)
    graphs = [read_graph(tmp_path / "all.ttl", make_valid=0, make_test=0) for _ in range(2)]
    assert sorted(labels(graphs[0])["train"]) == [
        ("_:unnamed-all-1", "http://e/r", "http://e/c"),
        ("http://e/a", "http://e/r", "http://e/b"),
        ("http://e/b", "http://e/r", "_:unnamed-all-1"),
    ]
    assert graphs[0].digest == graphs[1].digest
    assert graphs[0].warnings == (
        f"{tmp_path}/all.ttl: left out 3 triples whose object is a literal, not a resource",
    )


def test_rdf_without_its_package_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "all.nt").write_text("<http://a> <http://r> <http://b> .\n")
    with pytest.raises(UserError, match=r'reading RDF needs the extra "rdf": pip install "autosf\[rdf\]"'):
        read_graph(tmp_path / "all.nt")


def test_labelled_triples_are_read_in_the_ids_of_the_graph(tmp_path, expected):
    folder = make_folder(tmp_path / "graph")
    (folder / "dev_neg.tsv").write_text("a\tq\tc\t1\na\tq\td\t-1\n")
    (folder / "test_neg.txt.gz").write_bytes(gzip.compress(b"b\tq\td\t1\nb\tq\ta\t-1\n"))
    negatives = read_negatives(folder, expected)
    assert negatives.valid.triples.tolist() == [[0, 0, 2], [0, 0, 3]]
    assert negatives.valid.is_true.tolist() == negatives.test.is_true.tolist() == [True, False]


def test_a_folder_of_any_name_is_read(tmp_path, expected):
    for name in ("[a-z]*", "with space", "ünïcode", "{x}", "%20", "?"):
        assert read_graph(make_folder(tmp_path / name)).digest == expected.digest


def test_names_are_looked_up_in_the_search_path(tmp_path, expected):
    make_folder(tmp_path / "My-Graph")
    graph = read_graph("my graph", search_path=[tmp_path])
    assert graph.digest == expected.digest
    assert graph.name == "My-Graph"


def test_reading_prints_nothing_and_imports_neither_torch_nor_pandas(tmp_path):
    folder = make_folder(tmp_path / "graph")
    code = (
        "import sys; from autosf.graph.reading import read_graph; read_graph(sys.argv[1]);"
        "sys.exit(bool({'torch', 'pandas', 'pyarrow', 'pyoxigraph'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


COUNTS = {
    "WN18": (40_943, 18, 141_442, 5_000, 5_000),
    "WN18RR": (40_943, 11, 86_835, 3_034, 3_134),
    "FB15k-237": (14_541, 237, 272_115, 17_535, 20_466),
    "FB15k": (14_951, 1_345, 483_142, 50_000, 59_071),
    "CoDEx-S": (2_034, 42, 32_888, 1_827, 1_828),
    "NELL-995": (75_492, 200, 149_678, 543, 3_992),
    "Kinships": (104, 25, 8_544, 1_068, 1_074),
    "UMLS": (135, 46, 5_216, 652, 661),
    "Nations": (14, 55, 1_592, 199, 201),
    "YAGO3-10-quarter": (106_196, 37, 269_760, 5_000, 5_000),
}


@pytest.mark.data
@pytest.mark.parametrize("name", COUNTS)
def test_benchmark_graphs_have_their_published_sizes(data_folder: Path, name):
    graph = read_graph(data_folder / name)
    sizes = (len(graph.entities), len(graph.relations), *(len(triples) for _, triples in graph.splits()))
    assert sizes == COUNTS[name]


@pytest.mark.data
@pytest.mark.parametrize("name", ["CoDEx-S", "FB15k-237", "WN18RR", "FB15k"])
def test_benchmark_negatives_are_half_true(data_folder: Path, name):
    negatives = read_negatives(data_folder / name, read_graph(data_folder / name))
    assert negatives.valid.is_true.mean() == negatives.test.is_true.mean() == 0.5


def test_a_graph_may_do_without_a_test_split_and_says_so(tmp_path):
    (tmp_path / "train.txt").write_text("a\tr\tb\nb\tr\tc\n")
    (tmp_path / "valid.txt").write_text("a\tr\tc\n")
    graph = read_graph(tmp_path)
    assert (len(graph.train), len(graph.valid), len(graph.test)) == (2, 1, 0)
    assert any("no test split" in warning for warning in graph.warnings)
    assert read_graph(tmp_path, make_test=0).warnings == ()
