"""Metrics of hand-made ranks, their groups, and the interval of the mean reciprocal rank."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.errors import UserError
from autosf.evaluation.metrics import (
    by_category,
    by_pattern,
    by_side,
    grouped,
    is_unseen,
    mrr_interval,
    summarise,
)
from autosf.evaluation.ranking import Ranks
from autosf.graph.knowledge_graph import KnowledgeGraph


def ranks_of(head, tail, *, triples=None, candidates=20) -> Ranks:
    head, tail = np.asarray(head, float), np.asarray(tail, float)
    many = np.full(len(head), candidates)
    triples = np.zeros((len(head), 3), np.int32) if triples is None else np.asarray(triples, np.int32)
    return Ranks(triples, head, tail, many, many)


def test_metrics_of_hand_made_ranks():
    found = summarise(ranks_of([1, 4], [2, 20], candidates=20))
    assert found.mrr == pytest.approx((1 + 1 / 4 + 1 / 2 + 1 / 20) / 4)
    assert (found.hits_at_1, found.hits_at_3, found.hits_at_10) == (0.25, 0.5, 0.75)
    assert (found.mean_rank, found.count) == (6.75, 2)
    assert found.adjusted_mean_rank_index == pytest.approx(1 - 5.75 / 9.5)


def test_the_adjusted_index_is_one_for_perfect_ranks_and_zero_for_chance():
    assert summarise(ranks_of([1, 1], [1, 1])).adjusted_mean_rank_index == 1
    assert summarise(ranks_of([10.5], [10.5])).adjusted_mean_rank_index == 0
    assert summarise(ranks_of([1], [1], candidates=1)).adjusted_mean_rank_index == 0


@given(
    st.lists(
        st.tuples(st.integers(2, 40), st.integers(2, 40)).map(lambda p: (p[0] / 2, p[1] / 2)), min_size=1
    )
)
def test_both_sides_together_are_the_mean_of_the_sides(pairs):
    ranks = ranks_of(*zip(*pairs, strict=True))
    sides, both = by_side(ranks), summarise(ranks)
    for name in ("mrr", "hits_at_10", "mean_rank"):
        mean = (getattr(sides["head"], name) + getattr(sides["tail"], name)) / 2
        assert getattr(both, name) == pytest.approx(mean)
    assert 0 <= both.hits_at_1 <= both.hits_at_3 <= both.hits_at_10 <= 1


def test_no_triples_are_refused_in_one_line():
    with pytest.raises(UserError, match="no triples were ranked"):
        summarise(ranks_of([], []))


@pytest.fixture
def graph() -> KnowledgeGraph:
    """`likes` is symmetric, `owns` 1-N; `new` and `odd` are only in test."""
    likes = [(0, 1, 1), (1, 1, 0), (2, 1, 3), (3, 1, 2)]
    owns = [(0, 2, 1), (0, 2, 2), (0, 2, 3)]
    test = [(0, 1, 2), (1, 2, 3), (4, 1, 0), (0, 0, 1)]
    labels = ["a", "b", "c", "d", "new"]
    return KnowledgeGraph.from_ids(
        "small", labels, ["a_odd", "likes", "owns"], {"train": likes + owns, "test": test}
    )


def test_ranks_are_grouped_by_side_relation_pattern_and_category(graph):
    ranks = ranks_of([1, 2, 4, 8], [1, 2, 4, 8], triples=graph.test)
    mrr = {
        by: {name: m.mrr for name, m in grouped(ranks, graph, by).items()} for by in ("relation", "category")
    }
    assert mrr["relation"] == {"a_odd": 1 / 8, "likes": 5 / 8, "owns": 1 / 2}
    assert mrr["category"]["1-N"] == 1 / 2
    assert grouped(ranks, graph, "pattern")["symmetric"].mrr == 5 / 8
    assert grouped(ranks, graph, "pattern")["symmetric"].count == 2
    assert list(grouped(ranks, graph, "side")) == ["head", "tail"]


def test_groups_cover_every_triple_once(graph):
    ranks = ranks_of([1, 2, 4, 8], [1, 2, 4, 8], triples=graph.test)
    for by in ("relation", "pattern", "category"):
        assert sum(metrics.count for metrics in grouped(ranks, graph, by).values()) == len(ranks)


def test_an_unknown_grouping_is_told_with_the_nearest(graph):
    with pytest.raises(UserError, match='did you mean "pattern"'):
        grouped(ranks_of([1], [1]), graph, "patern")


def test_triples_with_something_train_never_shows_can_be_left_out(graph):
    ranks = ranks_of([1, 2, 4, 8], [1, 2, 4, 8], triples=graph.test)
    unseen = is_unseen(graph, ranks.triples)
    assert unseen.tolist() == [False, False, True, True]
    assert summarise(ranks.where(~unseen)).mrr == 3 / 4


def test_the_interval_holds_the_mean_and_narrows_with_more_triples():
    rng = np.random.default_rng(0)

    def interval(count: int):
        ranks = ranks_of(rng.integers(1, 50, count), rng.integers(1, 50, count))
        found = mrr_interval(ranks, np.random.default_rng(1))
        assert found.low <= summarise(ranks).mrr <= found.high
        return found.high - found.low

    assert interval(4000) < interval(100) / 3


def test_the_interval_is_the_normal_one_for_many_triples_and_repeats_by_seed():
    rng = np.random.default_rng(0)
    ranks = ranks_of(rng.integers(1, 50, 3000), rng.integers(1, 50, 3000))
    values = (1 / ranks.head_rank + 1 / ranks.tail_rank) / 2
    half = 1.96 * values.std() / np.sqrt(len(values))
    found = mrr_interval(ranks, np.random.default_rng(2), samples=2000)
    assert found.high - found.low == pytest.approx(2 * half, rel=0.1)
    assert found == mrr_interval(ranks, np.random.default_rng(2), samples=2000)


def test_triples_that_stand_twice_count_once_in_patterns_and_categories(graph):
    twice = replace(graph, train=np.concatenate([graph.train, graph.train[:1], graph.train[:1]]))
    for group in (by_pattern, by_category):
        assert group(twice).of_relation.tolist() == group(graph).of_relation.tolist()
