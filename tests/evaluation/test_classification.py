"""Thresholds are the best there are; fallbacks are counted; made negatives are false."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.zoo import structure_from
from autosf.embedding.model import Model
from autosf.errors import UserError
from autosf.evaluation.classification import (
    accuracy,
    best_threshold_plainly,
    best_thresholds,
    classify,
    scores_of,
    thresholds_of,
)
from autosf.evaluation.corrupting import corrupted, made_negatives
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.known_answers import known_answers
from autosf.graph.negatives import LabelledTriples, Negatives, read_negatives
from autosf.graph.reading import read_graph


def thresholds(scores, relations, is_true, count=1):
    return best_thresholds(np.array(scores, float), np.array(relations), np.array(is_true, bool), count)


def test_a_hand_made_threshold_lies_in_the_middle_of_the_only_best_gap():
    # false at 0, 1 and 5; true at 2, 4 and 6: the cut between 1 and 2 is right about five of six.
    found = thresholds([0, 1, 5, 2, 4, 6], [0] * 6, [0, 0, 0, 1, 1, 1])
    assert found.of_relation.tolist() == [1.5]


def test_of_equally_good_cuts_the_widest_gap_is_taken():
    # right about three of four both between 0 and 1 and between 2 and 6.
    assert thresholds([0, 1, 2, 6], [0] * 4, [0, 1, 0, 1]).of_relation.tolist() == [4.0]


def test_scores_that_tie_are_never_cut_apart():
    found = thresholds([1, 1, 1, 0], [0] * 4, [1, 1, 0, 0])
    assert found.of_relation.tolist() == [0.5]


def test_a_relation_without_both_classes_falls_back_to_the_overall_threshold():
    found = thresholds([0, 1, 9, 8], [0, 0, 1, 1], [0, 1, 0, 0], count=3)
    assert found.is_own.tolist() == [True, False, False]
    assert found.of_relation[1] == found.of_relation[2] == found.overall


@given(
    st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 2), st.booleans()), min_size=1, max_size=40),
    st.sampled_from([1.0, 0.1, 1e30]),
)
def test_thresholds_are_those_of_the_plain_version(examples, unit):
    scores, relations, is_true = (np.array(column) for column in zip(*examples, strict=True))
    scores = scores * unit
    found = best_thresholds(scores, relations, is_true, 3)
    for relation in np.flatnonzero(found.is_own):
        here = relations == relation
        plain, right = best_threshold_plainly(scores[here], is_true[here])
        assert np.count_nonzero((scores[here] >= found.of_relation[relation]) == is_true[here]) == right
        assert right >= max(is_true[here].sum(), (~is_true[here]).sum())
        assert plain == pytest.approx(found.of_relation[relation])
    _, right = best_threshold_plainly(scores, is_true)
    assert np.count_nonzero((scores >= found.overall) == is_true) == right


@given(st.lists(st.tuples(st.floats(width=32), st.booleans()), min_size=1))
def test_any_float_is_a_score_and_the_threshold_a_number(examples):
    scores, is_true = (np.array(column) for column in zip(*examples, strict=True))
    found = best_thresholds(scores, np.zeros(len(scores), int), is_true, 1)
    assert np.isfinite(found.of_relation).all()
    most = max(is_true.sum(), (~is_true).sum())
    assert (found.holds(scores, np.zeros(len(scores), int)) == is_true).sum() >= most


def test_neighbouring_floats_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2)
    found = thresholds([low, high], [0, 0], [0, 1])
    assert found.holds(np.array([low, high]), np.zeros(2, int)).tolist() == [False, True]


def labelled(triples, is_true) -> LabelledTriples:
    return LabelledTriples(np.array(triples, np.int32), np.array(is_true, bool))


def test_accuracy_is_told_in_total_by_relation_and_with_its_fallbacks():
    # DistMult on numbers: the score is the product, entity i is worth i.
    worth = torch.arange(6.0).repeat_interleave(2).view(6, 2) * torch.tensor([1.0, 0.0])
    model = Model(structure_from("[[1,0],[0,2]]"), worth, torch.tensor([[1.0, 0]] * 3))
    valid = labelled([(1, 0, 5), (1, 0, 4), (1, 0, 1), (1, 0, 2)], [1, 1, 0, 0])
    test = labelled([(1, 0, 5), (1, 0, 0), (1, 0, 4), (1, 1, 5), (1, 1, 1)], [1, 0, 0, 1, 0])
    found = classify(model, Negatives(valid=valid, test=test))
    assert found.thresholds.overall == 3
    assert found.accuracy == 0.8
    assert found.of_relation[:2].tolist() == [2 / 3, 1]
    assert np.isnan(found.of_relation[2])
    assert found.counts.tolist() == [3, 2, 0]
    assert (found.fallback_count, found.fallback_relations) == (2, 1)


def test_no_labelled_triples_are_refused_in_one_line():
    model = Model(structure_from("complex"), torch.ones(2, 4), torch.ones(1, 4))
    with pytest.raises(UserError, match="no labelled triples"):
        thresholds_of(model, labelled(np.empty((0, 3)), []))


@st.composite
def small_graphs(draw: st.DrawFn) -> KnowledgeGraph:
    entities = draw(st.integers(2, 8))
    triple = st.tuples(st.integers(0, entities - 1), st.integers(0, 2), st.integers(0, entities - 1))
    parts = {split: draw(st.lists(triple, max_size=30)) for split in ("train", "valid", "test")}
    labels = [str(number) for number in range(entities)]
    return KnowledgeGraph.from_ids("small", labels, ["0", "1", "2"], parts)


@given(small_graphs(), st.integers(0, 100))
def test_made_negatives_are_never_known_and_differ_in_one_entity(graph, seed):
    known = known_answers(graph)
    true = {tuple(row) for _, split in graph.splits() for row in split.tolist()}
    made = corrupted(graph, graph.valid, known, np.random.default_rng(seed))
    assert not true & {tuple(row) for row in made.tolist()}
    again = corrupted(graph, graph.valid, known, np.random.default_rng(seed))
    assert made.tolist() == again.tolist()
    if len(made) == len(graph.valid):
        changed = made != graph.valid
        assert (changed.sum(axis=1) == 1).all()
        assert not changed[:, 1].any()


def test_replacements_are_uniform_over_what_train_shows_in_that_place():
    train = [(0, 0, 4), (1, 0, 5), (2, 0, 6), (3, 0, 7), (8, 1, 9)]
    names = [str(number) for number in range(10)]
    graph = KnowledgeGraph.from_ids("small", names, ["0", "1"], {"train": train, "valid": [(0, 0, 4)] * 6000})
    made = corrupted(graph, graph.valid, known_answers(graph), np.random.default_rng(0))
    heads, head_counts = np.unique(made[made[:, 0] != 0][:, 0], return_counts=True)
    tails, tail_counts = np.unique(made[made[:, 2] != 4][:, 2], return_counts=True)
    assert (heads.tolist(), tails.tolist()) == ([1, 2, 3], [5, 6, 7])
    assert head_counts.sum() + tail_counts.sum() == 6000
    assert (abs(np.concatenate([head_counts, tail_counts]) - 1000) < 150).all()


def test_a_triple_that_has_no_false_neighbour_gets_none():
    everything = [(head, 0, tail) for head in range(2) for tail in range(2)]
    graph = KnowledgeGraph.from_ids("full", ["a", "b"], ["r"], {"train": everything, "valid": everything[:1]})
    assert len(corrupted(graph, graph.valid, known_answers(graph), np.random.default_rng(0))) == 0


@pytest.mark.data
@pytest.mark.parametrize("name", ["FB15k-237", "WN18RR", "CoDEx-S"])
def test_given_and_made_negatives_are_classified_and_fallbacks_told(name, data_folder):
    graph = read_graph(name, search_path=[data_folder])
    rng = torch.Generator().manual_seed(0)
    entities, relations = (torch.randn(len(v), 8, generator=rng) for v in (graph.entities, graph.relations))
    model = Model(structure_from("complex"), entities, relations)
    given_ones = read_negatives(data_folder / name, graph)
    made = made_negatives(graph, np.random.default_rng(0))
    assert made.test.is_true.sum() == len(graph.test)
    for one in (given_ones, made):
        found = classify(model, one)
        assert found.accuracy >= 0.45  # nothing was learned but how often each relation is true
        judged = np.isin(one.test.triples[:, 1], np.flatnonzero(found.thresholds.is_own))
        assert found.fallback_count == np.count_nonzero(~judged)
        own = accuracy(model, one.valid, found.thresholds)
        for relation in np.flatnonzero(found.thresholds.is_own)[:20]:
            here = one.valid.triples[:, 1] == relation
            scores = scores_of(model, one.valid.triples[here])
            _, right = best_threshold_plainly(scores, one.valid.is_true[here])
            assert own.of_relation[relation] == pytest.approx(right / here.sum())
