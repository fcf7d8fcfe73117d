"""Sampled ranks: exact with all entities as candidates, unbiased with some, and near enough on a real graph."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.errors import UserError
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.evaluation.sampled_ranking import pool, rank_sampled, sample
from autosf.graph.known_answers import known_answers
from random_models import random_graph, random_model


@given(st.integers(0, 99), st.booleans(), st.integers(40, 100))
def test_with_all_entities_as_candidates_ranks_are_exact(seed, reciprocal, candidates):
    graph = random_graph(seed, triples=100)
    model = random_model(graph, seed, reciprocal=reciprocal, whole_numbers=True).model
    known = known_answers(graph)
    rng = np.random.default_rng(0)
    found = rank_sampled(model, graph.train, known, candidates=candidates, rng=rng)
    exact = rank(model, graph.train, known)
    np.testing.assert_allclose(found.head_rank, exact.head_rank)
    np.testing.assert_allclose(found.tail_rank, exact.tail_rank)
    np.testing.assert_array_equal(found.head_candidates, exact.head_candidates)
    np.testing.assert_array_equal(found.tail_candidates, exact.tail_candidates)


def test_estimated_ranks_are_unbiased():
    graph = random_graph(1, entities=200, triples=400)
    model, known = random_model(graph, 1).model, known_answers(graph)
    rng, tries = np.random.default_rng(0), 400
    found = [rank_sampled(model, graph.test[:30], known, candidates=20, rng=rng) for _ in range(tries)]
    exact = rank(model, graph.test[:30], known)
    for side in ("head_rank", "tail_rank"):
        ranks = np.stack([getattr(one, side) for one in found])
        error = ranks.std(axis=0) / np.sqrt(tries)
        assert (np.abs(ranks.mean(axis=0) - getattr(exact, side)) <= 5 * error + 1e-9).all()


@given(st.integers(2, 300), st.integers(0, 300), st.integers(2, 400), st.integers(0, 9))
def test_a_sample_stands_for_all_entities(entities, likely, size, seed):
    rng = np.random.default_rng(seed)
    likely = np.sort(rng.choice(entities, min(likely, entities), replace=False))
    found = sample(likely, entities, size, rng)
    assert (np.diff(found.entities) > 0).all()
    assert len(found.entities) == min(size, entities)
    inside = np.isin(found.entities, likely)
    assert found.weights[inside].sum() == pytest.approx(len(likely) if inside.any() else 0)
    if size >= 2 and 0 < len(likely) < entities:
        assert found.weights.sum() == pytest.approx(entities)


def test_the_pool_of_a_relation_is_what_stands_on_that_side_of_it():
    graph = random_graph(0)
    known = known_answers(graph)
    everything = np.concatenate([part for _, part in graph.splits()])
    for relation in range(4):
        of_it = everything[everything[:, 1] == relation]
        np.testing.assert_array_equal(pool(known.tails, relation), np.unique(of_it[:, 0]))
        np.testing.assert_array_equal(pool(known.heads, relation), np.unique(of_it[:, 2]))


def test_equal_embeddings_tie():
    graph = random_graph(0, entities=50)
    model = random_model(graph, whole_numbers=True).model
    model.entities.copy_(model.entities[0].expand(50, 8).clone())
    known = known_answers(graph)
    found = rank_sampled(model, graph.test, known, candidates=50, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.tail_rank, rank(model, graph.test, known).tail_rank)


def test_too_few_candidates_are_refused():
    graph = random_graph()
    with pytest.raises(UserError, match="candidates: expected a number from 2, found 1"):
        rank_sampled(
            random_model(graph).model,
            graph.test,
            known_answers(graph),
            candidates=1,
            rng=np.random.default_rng(),
        )


def test_no_triples_have_no_ranks():
    graph = random_graph()
    found = rank_sampled(
        random_model(graph).model,
        graph.test[:0],
        known_answers(graph),
        candidates=9,
        rng=np.random.default_rng(),
    )
    assert len(found) == 0
    with pytest.raises(UserError, match="no triples were ranked"):
        summarise(found)


def test_a_hubs_many_answers_are_looked_through_once_for_all_who_ask():
    """512 triples with one tail of 20,000 heads: their answers copied for each would be 80 MB and more."""
    heads = np.arange(20_000)
    train = np.stack([heads, np.zeros_like(heads), np.full_like(heads, 20_000)], 1).astype(np.int32)
    graph = replace(random_graph(entities=20_001, relations=1), train=train, valid=train[:0], test=train[:0])
    model, known = random_model(graph).model, known_answers(graph)
    tracemalloc.start()
    rank_sampled(model, train[:512], known, candidates=100, rng=np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
