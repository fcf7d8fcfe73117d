"""Known answers and grouped queries against a plain dict."""

from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.graph import known_answers as module
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.known_answers import head_queries, known_answers, tail_queries
from autosf.graph.reading import read_graph
from autosf.graph.vocabulary import Vocabulary

ENTITIES, RELATIONS = 6, 3
triple_lists = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)),
    max_size=40,
)


def graph_of(train, valid=(), test=()):
    """A graph whose ids are the numbers themselves, spare labels kept."""
    as_array = [np.array(part, dtype=np.int32).reshape(-1, 3) for part in (train, valid, test)]
    entities = vocabulary_of("entity", ENTITIES)
    return KnowledgeGraph("g", entities, vocabulary_of("relation", RELATIONS), *as_array)


def vocabulary_of(kind, size):
    return Vocabulary(pl.Series([f"{kind}{i}" for i in range(size)]), kind)


def plain_answers(triples):
    """The definition: dicts of sorted lists."""
    tails, heads = defaultdict(set), defaultdict(set)
    for head, relation, tail in triples:
        tails[head, relation].add(tail)
        heads[relation, tail].add(head)
    return tails, heads


@given(train=triple_lists, valid=triple_lists, test=triple_lists)
def test_known_answers_are_those_of_a_plain_dict(train, valid, test):
    known = known_answers(graph_of(train, valid, test))
    tails, heads = plain_answers([*train, *valid, *test])
    for entity in range(ENTITIES):
        for relation in range(RELATIONS):
            assert known.tails_of(entity, relation).tolist() == sorted(tails[entity, relation])
            assert known.heads_of(relation, entity).tolist() == sorted(heads[relation, entity])


@given(train=triple_lists, test=triple_lists)
def test_a_batch_of_slices_holds_each_query_alone(train, test):
    known = known_answers(graph_of(train, test=test))
    grid = np.array([(entity, relation) for entity in range(ENTITIES) for relation in range(RELATIONS)])
    for slices, one, answers in (
        (known.tail_slices(grid[:, 0], grid[:, 1]), known.tails_of, known.tails.answers),
        (known.head_slices(grid[:, 1], grid[:, 0]), lambda e, r: known.heads_of(r, e), known.heads.answers),
    ):
        for start, end, (entity, relation) in zip(*slices, grid, strict=True):
            assert answers[start:end].tolist() == one(entity, relation).tolist()


@given(train=triple_lists, test=triple_lists)
def test_only_the_named_splits_are_known(train, test):
    known = known_answers(graph_of(train, test=test), splits=("train",))
    tails, _ = plain_answers(train)
    assert all(known.tails_of(h, r).tolist() == sorted(tails[h, r]) for h, r, _ in [*train, *test])


@given(triples=triple_lists)
def test_queries_are_distinct_sorted_and_hold_every_triple_once(triples):
    array = graph_of(triples).train
    for queries, sides in (
        (tail_queries(array, entities=ENTITIES, relations=RELATIONS), (0, 1, 2)),
        (head_queries(array, entities=ENTITIES, relations=RELATIONS), (2, 1, 0)),
    ):
        keys = list(zip(queries.relations.tolist(), queries.entities.tolist(), strict=True))
        assert keys == sorted(set(keys))
        assert len(queries) == len(queries.offsets) - 1
        counts = np.diff(queries.offsets)
        assert (counts > 0).all()
        rows = zip(
            np.repeat(queries.entities, counts).tolist(),
            np.repeat(queries.relations, counts).tolist(),
            queries.answers.tolist(),
            strict=True,
        )
        assert sorted(rows) == sorted({tuple(triple[side] for side in sides) for triple in triples})


@given(train=triple_lists)
def test_where_63_bits_do_not_hold_a_triple_the_answers_are_the_same(train):
    packed = known_answers(graph_of(train))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LARGEST_KEY", 1)
        sorted_by_columns = known_answers(graph_of(train))
    assert packed.tails.answers.tolist() == sorted_by_columns.tails.answers.tolist()
    assert packed.heads.keys.tolist() == sorted_by_columns.heads.keys.tolist()
    assert packed.heads.offsets.tolist() == sorted_by_columns.heads.offsets.tolist()


def test_known_answers_are_compact_and_cannot_be_written():
    known = known_answers(graph_of([(0, 0, 1), (0, 0, 1), (0, 0, 2)]))
    assert known.tails.answers.dtype == np.int32
    assert known.tails.keys.dtype == known.tails.offsets.dtype == np.int64
    for array in (known.tails.answers, known.heads.keys, known.heads.offsets):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "tails", "heads"),
    [
        ("WN18RR", 62_547, 40_962),
        ("FB15k-237", 93_372, 56_317),
        ("UMLS", 810, 750),
        ("FB15k", 153_630, 120_080),
    ],
)
def test_benchmark_graphs_have_their_published_number_of_queries(data_folder, name, tails, heads):
    graph = read_graph(data_folder / name)
    sizes = {"entities": len(graph.entities), "relations": len(graph.relations)}
    assert len(tail_queries(graph.train, **sizes)) == tails
    assert len(head_queries(graph.train, **sizes)) == heads
