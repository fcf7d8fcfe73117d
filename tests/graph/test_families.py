"""The village is a graph that is always at hand: the same each time, covered by train, and true to itself."""

import numpy as np

from autosf.graph.families import families


def facts_of(graph) -> set[tuple[str, str, str]]:
    return {row for split, _ in graph.splits() for row in zip(*graph.columns(split), strict=True)}


def test_the_same_seed_is_the_same_village():
    assert families().digest == families().digest
    assert families(1).digest != families().digest


def test_train_shows_everybody():
    graph = families()
    assert set(np.unique(graph.train[:, ::2])) == set(range(len(graph.entities)))
    assert set(np.unique(graph.train[:, 1])) == set(range(len(graph.relations)))
    assert min(len(graph.valid), len(graph.test)) > 100


def test_what_is_told_of_people_agrees():
    facts = facts_of(families())
    by = {relation: {(h, t) for h, r, t in facts if r == relation} for _, relation, _ in facts}
    for symmetric in ("married_to", "sibling_of", "cousin_of"):
        assert by[symmetric] == {(t, h) for h, t in by[symmetric]}
        assert all(head != tail for head, tail in by[symmetric])
    assert by["child_of"] == {(t, h) for h, t in by["mother_of"] | by["father_of"]}
    assert {(m, f) for m, child in by["mother_of"] for f, other in by["father_of"] if child == other} <= by[
        "married_to"
    ]
    assert not by["sibling_of"] & by["married_to"]
