"""Laws of splitting, for any graph."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.leakage import leakage
from autosf.graph.splitting import cover, joined, split, without_leakage
from autosf.graph.synthetic import labels, patterned_graph

ENTITIES, RELATIONS = 8, 4
fact = st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1))
rows = st.lists(fact, max_size=60).map(lambda facts: np.array(facts, dtype=np.int32).reshape(-1, 3))
size = st.one_of(st.floats(0, 0.999), st.integers(0, 50))


def as_set(triples: np.ndarray) -> set:
    return set(map(tuple, triples.tolist()))


def entities_of(triples: np.ndarray) -> set:
    return set(triples[:, 0].tolist()) | set(triples[:, 2].tolist())


@given(rows, size, size, st.integers(0, 5))
def test_train_shows_everything_and_the_parts_make_up_the_whole(triples, valid, test, seed):
    made = split(triples, ENTITIES, RELATIONS, valid=valid, test=test, seed=seed)
    parts = [made.train, made.valid, made.test]
    assert entities_of(made.train) == entities_of(triples)
    assert set(made.train[:, 1]) == set(triples[:, 1])
    assert set().union(*map(as_set, parts)) == as_set(triples)
    assert sum(map(len, parts)) == len(as_set(triples)), "no triple is in two parts, or twice in one"


@given(rows, size, size, st.integers(0, 5))
def test_the_sizes_are_the_wished_ones_or_all_that_can_leave(triples, valid, test, seed):
    made = split(triples, ENTITIES, RELATIONS, valid=valid, test=test, seed=seed)
    whole = len(as_set(triples))
    share = max(round(valid * whole), 1) if valid and whole else 0
    assert made.wished_valid == (share if valid < 1 else valid)
    assert len(made.valid) <= made.wished_valid
    assert len(made.test) <= made.wished_test
    held_out = len(made.valid) + len(made.test)
    assert held_out == min(made.wished_valid + made.wished_test, made.available)
    assert made.missing == made.wished_valid + made.wished_test - held_out


@given(rows, st.integers(0, 5))
def test_the_same_seed_gives_the_same_split(triples, seed):
    one, two = (split(triples, ENTITIES, RELATIONS, valid=0.2, test=0.2, seed=seed) for _ in range(2))
    assert (one.train == two.train).all()
    assert (one.valid == two.valid).all()
    assert (one.test == two.test).all()


def test_another_seed_gives_another_split():
    triples = np.array([(i % 20, 0, i // 20) for i in range(400)], dtype=np.int32)
    one, two = (as_set(split(triples, 20, 1, valid=0, test=50, seed=seed).test) for seed in (1, 2))
    assert one != two


def smallest_cover(triples: np.ndarray) -> int:
    """Fewest triples that show all entities, by trying."""
    everything = entities_of(triples)
    distinct = sorted(as_set(triples))
    for count in range(len(distinct) + 1):
        for chosen in combinations(distinct, count):
            if {entity for head, _, tail in chosen for entity in (head, tail)} == everything:
                return count
    raise AssertionError


@given(st.lists(fact, max_size=9).map(lambda facts: np.array(sorted(set(facts)), np.int32).reshape(-1, 3)))
def test_what_train_must_keep_is_at_most_half_more_than_the_least(triples):
    kept = cover(triples, entities=ENTITIES, relations=RELATIONS)
    assert kept.sum() <= 1.5 * smallest_cover(triples) + len(set(triples[:, 1]))


@given(rows)
def test_a_cover_shows_everything(triples):
    kept = triples[cover(triples, entities=ENTITIES, relations=RELATIONS)]
    assert entities_of(kept) == entities_of(triples)
    assert set(kept[:, 1]) == set(triples[:, 1])


def test_a_star_can_give_nothing_away():
    star = np.array([(0, 0, tail) for tail in range(1, 50)], dtype=np.int32)
    made = split(star, 50, 1, valid=10, test=10, seed=0)
    assert (len(made.valid), len(made.test), made.available, made.missing) == (0, 0, 0, 20)


def test_a_share_of_a_few_triples_is_at_least_one_that_is_wished():
    chain = np.array([(0, 0, 1), (1, 0, 2), (2, 0, 3)], dtype=np.int32)
    made = split(chain, 4, 1, valid=0.1, test=0, seed=0)
    assert (made.wished_valid, made.wished_test, made.missing) == (1, 0, 1 - made.available)


def test_what_there_is_is_shared_in_proportion():
    triples = np.array([(0, relation, 1) for relation in range(3)] * 2 + [(1, 0, 0)], dtype=np.int32)
    complete = np.array([(h, 0, t) for h in range(6) for t in range(6)], dtype=np.int32)
    made = split(complete, 6, 1, valid=100, test=300, seed=0)
    assert (made.available, len(made.valid), len(made.test)) == (33, 9, 24)
    assert split(triples, 2, 3, valid=0.5, test=0.5, seed=0).available == 1


@pytest.mark.parametrize("wrong", [-1, -0.1, 1.5, 7.01, float("nan"), float("inf")])
def test_a_size_that_is_none_is_refused(wrong):
    with pytest.raises(UserError, match="a split's size: expected"):
        split(np.empty((0, 3), np.int32), 0, 0, valid=wrong, test=0, seed=0)


def graph_of(**splits: np.ndarray) -> KnowledgeGraph:
    return KnowledgeGraph.from_ids("g", labels("e", ENTITIES), labels("r", RELATIONS), splits)


@given(rows, st.integers(0, 3))
def test_without_leakage_no_relation_gives_another_away(triples, seed):
    kept, dropped = without_leakage(triples, ENTITIES, RELATIONS)
    made = split(kept, ENTITIES, RELATIONS, valid=0.2, test=0.3, seed=seed)
    found = leakage(graph_of(train=made.train, valid=made.valid, test=made.test))
    assert found.pairs == ()
    assert found.test_triples == 0
    gone = {one.relation for one in dropped}
    assert as_set(kept) == {row for row in as_set(triples) if row[1] not in gone}
    assert not {one.kept for one in dropped} & gone


def test_of_an_inverse_pair_the_larger_relation_stays():
    pairs = [(i, 10 + i) for i in range(10)]
    facts = [(h, 0, t) for h, t in pairs[:9]] + [(t, 1, h) for h, t in pairs]
    kept, dropped = without_leakage(np.array(facts, dtype=np.int32), 20, 2)
    assert set(kept[:, 1]) == {1}
    assert [(one.relation, one.kept, one.kind) for one in dropped] == [(0, 1, "inverse")]


def test_symmetric_and_general_relations_stay():
    graph = patterned_graph(symmetric=2, anti_symmetric=1, general=3)
    triples, _ = joined(graph)
    kept, dropped = without_leakage(triples, len(graph.entities), len(graph.relations))
    straight = {graph.relations.label(one.relation) for one in dropped}
    assert not any(name.startswith("general") for name in straight)
    assert len(kept) + sum((triples[:, 1] == one.relation).sum() for one in dropped) == len(triples)


@given(rows)
def test_joining_does_not_depend_on_order_or_repetition(triples):
    one, repeated = joined(graph_of(train=triples, valid=triples[:3]))
    two, _ = joined(graph_of(train=triples[::-1]))
    assert (one == two).all()
    assert repeated == len(triples) + len(triples[:3]) - len(as_set(triples))


def test_a_million_triples_take_a_moment():
    rng = np.random.default_rng(0)
    triples = np.stack(
        [
            (200_000 * rng.random(1_000_000) ** 3),
            rng.integers(0, 50, 1_000_000),
            rng.integers(0, 200_000, 1_000_000),
        ],
        axis=1,
    ).astype(np.int32)
    made = split(triples, 200_000, 50, valid=5000, test=5000, seed=0)
    assert made.missing == 0
    assert set(np.unique(made.test[:, [0, 2]])) <= set(np.unique(made.train[:, [0, 2]]))
