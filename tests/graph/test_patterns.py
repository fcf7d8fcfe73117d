"""Patterns, categories and relation overlaps against their plain definitions."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.graph import keys, overlaps
from autosf.graph.overlaps import relation_overlaps
from autosf.graph.patterns import (
    NOBODY,
    PATTERNS,
    Patterns,
    relation_categories,
    relation_counts,
    relation_patterns,
)

ENTITIES, RELATIONS = 5, 4
facts = st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1))
graphs = st.sets(facts, max_size=60)


def array(triples) -> np.ndarray:
    return np.array(sorted(triples), dtype=np.int32).reshape(-1, 3)


def patterns_of(triples, entities: int = ENTITIES, relations: int = RELATIONS) -> Patterns:
    rows = array(triples)
    counts = relation_counts(rows, entities=entities, relations=relations)
    return relation_patterns(counts, relation_overlaps(rows, entities=entities, relations=relations))


def plain_overlaps(triples) -> dict:
    """The definition: look every fact and its reverse up under every relation."""
    found = defaultdict(int)
    for head, relation, tail in triples:
        for other in range(RELATIONS):
            if (head, other, tail) in triples and other != relation:
                found[relation, other, False] += 1
            if (tail, other, head) in triples:
                found[relation, other, True] += 1
    return dict(found)


def plain_pattern(triples, relation: int) -> str:
    """Sec. V-A, word by word."""
    own = [(h, t) for h, r, t in triples if r == relation]
    mirrored = sum((t, relation, h) in triples for h, t in own)
    joint = {h for h, _ in own} & {t for _, t in own}
    others = [
        sum((t, other, h) in triples for h, t in own) for other in range(RELATIONS) if other != relation
    ]
    if not own:
        return "general"
    if 10 * mirrored > 9 * len(own):
        return "symmetric"
    if mirrored == 0 and 10 * len(joint) >= len(own):
        return "anti_symmetric"
    return "inverse" if 10 * max(others) >= 9 * len(own) else "general"


def as_dict(found) -> dict:
    keys = zip(found.relation.tolist(), found.other.tolist(), found.reversed.tolist(), strict=True)
    return dict(zip(keys, found.count.tolist(), strict=True))


@given(graphs)
def test_overlaps_are_what_looking_up_every_fact_gives(triples):
    found = relation_overlaps(array(triples), entities=ENTITIES, relations=RELATIONS)
    assert as_dict(found) == plain_overlaps(triples)


@given(graphs, st.integers(1, 5))
def test_overlaps_do_not_depend_on_how_many_rows_are_expanded_at_once(triples, rows):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "ROWS_AT_ONCE", rows)
        found = relation_overlaps(array(triples), entities=ENTITIES, relations=RELATIONS)
    assert as_dict(found) == plain_overlaps(triples)


@given(graphs)
def test_nothing_changes_where_packed_keys_would_not_fit(triples):
    """As with hundreds of millions of entities: pairs are then numbered before they are packed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlaps, "LARGEST_KEY", 10)
        patch.setattr(keys, "LARGEST_KEY", 10)
        found = relation_overlaps(array(triples), entities=ENTITIES, relations=RELATIONS)
        (packed,) = keys.triple_keys([array(triples)], entities=ENTITIES, relations=RELATIONS)
    assert as_dict(found) == plain_overlaps(triples)
    assert len(np.unique(packed)) == len(triples)


@given(graphs)
def test_patterns_are_the_papers_rule_word_by_word(triples):
    found = patterns_of(triples)
    assert [PATTERNS[place] for place in found.pattern] == [
        plain_pattern(triples, r) for r in range(RELATIONS)
    ]
    assert sum(found.totals().values()) == RELATIONS


@given(graphs)
def test_a_partner_reverses_most_of_the_relation(triples):
    for relation, partner in enumerate(patterns_of(triples).partner.tolist()):
        if partner != NOBODY:
            own = [(h, t) for h, r, t in triples if r == relation]
            assert 10 * sum((t, partner, h) in triples for h, t in own) >= 9 * len(own)


def test_exactly_nine_tenths_make_an_inverse_but_not_a_symmetric_relation():
    pairs = [(i, 50 + i) for i in range(10)]
    inverse = {(h, 0, t) for h, t in pairs} | {(t, 1, h) for h, t in pairs[:9]}
    assert patterns_of(inverse, 100, 2).pattern.tolist() == [2, 2]
    fewer = {(h, 0, t) for h, t in pairs} | {(t, 1, h) for h, t in pairs[:8]}
    assert patterns_of(fewer, 100, 2).pattern.tolist() == [3, 2]
    loops = {(i, 0, i) for i in range(9)} | {(9, 0, 10)}
    assert patterns_of(loops, 100, 1).pattern.tolist() == [3], "9 of 10 is not more than 0.9"


def test_a_loop_mirrors_itself():
    assert patterns_of({(0, 0, 0)}).pattern.tolist() == [0, 3, 3, 3]


def test_one_pair_of_entities_with_thousands_of_relations_needs_little_memory():
    many = 1500
    rows = np.array([[0, relation, 1] for relation in range(many)], dtype=np.int32)
    found = relation_overlaps(rows, entities=2, relations=many)
    assert len(found.count) == many * (many - 1)
    assert (found.count == 1).all()


@pytest.mark.parametrize(
    ("pairs", "category"),
    [
        ([(0, 5), (1, 6)], "1-1"),
        ([(0, 5), (0, 6), (0, 7), (1, 8), (1, 9)], "1-N"),
        ([(5, 0), (6, 0), (7, 0)], "N-1"),
        ([(0, 5), (0, 6), (1, 5), (1, 6)], "N-N"),
        ([(0, 5), (0, 6), (1, 7)], "1-N"),
        ([(0, 5), (0, 6), (1, 7), (2, 8)], "1-1"),
    ],
)
def test_a_side_is_many_from_one_and_a_half_on(pairs, category):
    rows = array((h, 0, t) for h, t in pairs)
    assert relation_categories(relation_counts(rows, entities=10, relations=1)) == [category]


@given(graphs)
def test_counts_are_those_of_sets(triples):
    counts = relation_counts(array(triples), entities=ENTITIES, relations=RELATIONS)
    for relation in range(RELATIONS):
        heads = {h for h, r, _ in triples if r == relation}
        tails = {t for _, r, t in triples if r == relation}
        own = sum(r == relation for _, r, _ in triples)
        found = (
            counts.triples[relation],
            counts.heads[relation],
            counts.tails[relation],
            counts.both[relation],
        )
        assert found == (own, len(heads), len(tails), len(heads & tails))


@given(st.lists(facts, max_size=40))
def test_distinct_triples_are_each_once_in_the_order_they_came(triples):
    rows = np.array(triples, dtype=np.int32).reshape(-1, 3)
    found = keys.distinct(rows, entities=ENTITIES, relations=RELATIONS)
    assert [tuple(row) for row in found.tolist()] == list(dict.fromkeys(triples))
