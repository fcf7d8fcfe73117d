"""Mined rules: found where they were planted, counted as defined, and never explaining a triple by itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autosf.evaluation import rules
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank_scores
from autosf.evaluation.rules import LEAST_SUPPORT, NO_STEP, PSEUDO_COUNT, TIES, Rule, mined_rules
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.known_answers import known_answers
from random_models import random_graph


def graph_of_ids(
    train: np.ndarray, entities: int, relations: int, test: np.ndarray | None = None
) -> KnowledgeGraph:
    labels = [f"{i:03}" for i in range(max(entities, relations))]
    none = np.empty((0, 3), np.int32)
    cover = np.array([[i, i % relations, i] for i in range(max(entities, relations)) if i < entities])
    return KnowledgeGraph.from_ids(
        "planted",
        labels[:entities],
        labels[:relations],
        {"train": np.concatenate([train, cover]), "valid": none, "test": none if test is None else test},
    )


def uncles(rng: np.random.Generator) -> np.ndarray:
    """father(x, z), brother(z, y) and, for all of them, uncle(x, y); child_of is father reversed."""
    father = np.stack([np.arange(0, 40), np.zeros(40, int), rng.integers(40, 60, 40)], 1)
    brother = np.stack([np.arange(40, 60), np.ones(20, int), rng.permutation(np.arange(60, 80))], 1)
    of = dict(zip(brother[:, 0], brother[:, 2], strict=True))
    uncle = np.array([(x, 2, of[z]) for x, _, z in father])
    return np.concatenate([father, brother, uncle])


def test_a_planted_path_is_the_most_confident_rule_and_answers_new_queries():
    triples = uncles(np.random.default_rng(0))
    uncle = triples[triples[:, 1] == 2]
    train = np.concatenate([triples[triples[:, 1] != 2], uncle[:30]])
    graph = graph_of_ids(train, 80, 3, test=uncle[30:])
    model = mined_rules(graph, np.random.default_rng(0))
    best = model.rules[2][0]
    assert (best.first, best.second) == (0, 1)
    assert best.support == 30
    assert best.confidence == pytest.approx(30 / (40 + PSEUDO_COUNT))
    assert summarise(rank_scores(model, graph.test, known_answers(graph))).hits_at_1 == 1


def test_an_inverse_is_a_rule_of_one_step():
    rng = np.random.default_rng(1)
    pairs = np.unique(rng.integers(0, 30, (60, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    there = np.insert(pairs, 1, 0, axis=1)
    back = np.insert(pairs[:, ::-1], 1, 1, axis=1)
    model = mined_rules(graph_of_ids(np.concatenate([there, back]), 30, 2), rng)
    best = model.rules[1][0]
    assert (best.first, best.second) == (0 + 2, NO_STEP)  # relation 0 backwards
    assert best.confidence == pytest.approx(len(pairs) / (len(pairs) + PSEUDO_COUNT))


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1))
def test_support_and_confidence_are_counts_over_pairs_of_distinct_entities(seed):
    graph = random_graph(seed, entities=8, relations=3, triples=50)
    model = mined_rules(graph, np.random.default_rng(seed))
    steps = plain_steps(graph)
    for found in model.rules.values():
        for rule in found:
            pairs = plain_body(steps, rule)
            support = len(pairs & steps[rule.relation])
            assert support == rule.support >= LEAST_SUPPORT
            assert rule.confidence == pytest.approx(support / (len(pairs) + PSEUDO_COUNT))


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 1000]))
def test_a_score_is_the_best_confidence_and_a_little_of_the_second_from_either_side(seed, small):
    graph = random_graph(seed, entities=7, relations=2, triples=30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "SMALL", small)
        model, steps = mined_rules(graph, np.random.default_rng(0)), plain_steps(graph)
    everyone = torch.arange(7)
    for relation in range(2):
        link = torch.full((7,), relation)
        tails, heads = model.tail_scores(everyone, link), model.head_scores(link, everyone)
        for x in range(7):
            for y in range(7):
                reasons = [
                    r.confidence for r in model.rules.get(relation, []) if (x, y) in plain_body(steps, r)
                ]
                of_tail, of_head = (often(graph, relation, side, e) for side, e in ((2, y), (0, x)))
                assert float(tails[x, y]) == pytest.approx(combined([*reasons, of_tail]), abs=1e-6)
                assert float(heads[y, x]) == pytest.approx(combined([*reasons, of_head]), abs=1e-6)


def combined(confidences: list[float]) -> float:
    best, second, *_ = [*sorted(confidences, reverse=True), 0.0]
    return best + TIES * second


def often(graph: KnowledgeGraph, relation: int, side: int, entity: int) -> float:
    rows = np.unique(graph.train, axis=0)
    count = np.count_nonzero((rows[:, 1] == relation) & (rows[:, side] == entity))
    return count / (len(graph.entities) + PSEUDO_COUNT)


def plain_steps(graph: KnowledgeGraph) -> list[set[tuple[int, int]]]:
    relations = len(graph.relations)
    steps: list[set[tuple[int, int]]] = [set() for _ in range(2 * relations)]
    for head, relation, tail in graph.train.tolist():
        if head != tail:
            steps[relation].add((head, tail))
            steps[relation + relations].add((tail, head))
    return steps


def plain_body(steps: list[set[tuple[int, int]]], rule: Rule) -> set[tuple[int, int]]:
    if rule.second == NO_STEP:
        return steps[rule.first]
    return {
        (x, y) for x, middle in steps[rule.first] for z, y in steps[rule.second] if middle == z and x != y
    }
