"""The graph and its vocabularies: ids, labels, digest."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.errors import UserError
from autosf.graph.digest import sorted_rows
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.vocabulary import Vocabulary

words = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5), min_size=1)


@given(words)
def test_ids_are_places_in_the_order_of_utf8_bytes(labels):
    vocabulary = Vocabulary.of([pl.Series(labels), pl.Series(labels[:1])])
    assert vocabulary.labels.to_list() == sorted(set(labels), key=lambda label: label.encode())
    ids = vocabulary.encode(pl.Series(labels))
    assert ids.dtype == np.int32
    assert [vocabulary.label(id_) for id_ in ids] == labels
    assert vocabulary.ids(labels) == ids.tolist()


@pytest.mark.parametrize("ask", [lambda v: v.id("spian"), lambda v: v.encode(pl.Series(["france", "spian"]))])
def test_an_unknown_label_is_answered_with_the_nearest(ask):
    vocabulary = Vocabulary.of([pl.Series(["spain", "france"])])
    with pytest.raises(UserError, match='unknown entity "spian"; did you mean "spain"'):
        ask(vocabulary)


@pytest.mark.parametrize("label", ["", "zzz", "\udcff", "\0", "a" * 1_000_000])
def test_any_unknown_label_is_the_users_mistake(label):
    many = pl.Series([f"entity{i}" for i in range(3_000)])
    for vocabulary in (Vocabulary.of([pl.Series(["spain"])]), Vocabulary.of([]), Vocabulary.of([many])):
        with pytest.raises(UserError, match="unknown entity"):
            vocabulary.id(label)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("spainn", "spain"),
        ("/m/zebr", "/m/zebra"),
        ("/m/050000x", "/m/050000"),
        ("usa", "USA"),
        ("FRANC", "France"),
    ],
)
@pytest.mark.parametrize("size", [0, 60_000])
def test_the_nearest_are_found_in_any_case_and_in_a_large_vocabulary(asked, meant, size):
    labels = ["spain", "/m/zebra", "/m/050000", "USA", "France", *(f"/m/{i:06}" for i in range(size))]
    with pytest.raises(UserError, match=f'did you mean "{meant}"'):
        Vocabulary.of([pl.Series(labels)]).id(asked)


def test_a_graph_without_triples_has_a_digest():
    empty = KnowledgeGraph.from_columns("empty", {})
    assert empty.digest == KnowledgeGraph.from_ids("other", [], [], {}).digest
    assert empty.train.shape == (0, 3)


def test_a_digest_does_not_depend_on_name_warnings_or_spare_labels():
    parts = {"train": [[0, 0, 1]], "test": [[1, 0, 1]]}
    graph = KnowledgeGraph.from_ids("one", ["b", "a"], ["r"], parts)
    other = KnowledgeGraph.from_ids("two", ["b", "a", "spare"], ["r", "spare"], parts).with_warnings(
        "careful"
    )
    kept = KnowledgeGraph(
        "three",
        Vocabulary(pl.Series(["a", "aa", "b"])),
        Vocabulary(pl.Series(["q", "r"]), "relation"),
        np.array([[2, 1, 0]], np.int32),
        np.empty((0, 3), np.int32),
        np.array([[0, 1, 0]], np.int32),
    )
    assert graph.digest == other.digest == kept.digest
    assert other.warnings == ("careful",)


def test_labels_cannot_pretend_to_be_others_in_a_digest():
    one = KnowledgeGraph.from_ids("g", ["ab", "c"], ["r"], {"train": [[0, 0, 1]]})
    two = KnowledgeGraph.from_ids("g", ["a", "bc"], ["r"], {"train": [[0, 0, 1]]})
    assert one.digest != two.digest


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=30))
def test_rows_are_sorted_the_same_with_and_without_packing(rows):
    columns = np.array(rows, dtype=np.int32).reshape(-1, 3).T
    packed = sorted_rows(*columns, entities=4, relations=4)
    unpacked = sorted_rows(*columns, entities=2**31, relations=2**10)
    assert [column.tolist() for column in packed] == [column.tolist() for column in unpacked]
    assert list(zip(*(column.tolist() for column in packed), strict=True)) == sorted(rows)
