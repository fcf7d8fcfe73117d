"""What `statistics` says of small graphs, against plain counting, and what it warns of."""

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.leakage import leakage
from autosf.graph.statistics import all_warnings, findings, statistics
from autosf.graph.synthetic import patterned_graph

fact = st.tuples(st.sampled_from("abcde"), st.sampled_from("rst"), st.sampled_from("abcde"))
splits = st.fixed_dictionaries({name: st.lists(fact, max_size=25) for name in ("train", "valid", "test")})


def graph_of(parts: dict) -> KnowledgeGraph:
    columns = {
        name: tuple(pl.Series([row[side] for row in rows], dtype=pl.String) for side in range(3))
        for name, rows in parts.items()
    }
    return KnowledgeGraph.from_columns("small", columns)


@given(splits)
def test_counts_are_what_sets_say(parts):
    found = statistics(graph_of(parts))
    train, valid, test = (set(parts[name]) for name in ("train", "valid", "test"))
    assert found.entities == len({e for rows in parts.values() for h, _, t in rows for e in (h, t)})
    assert found.relations == len({r for rows in parts.values() for _, r, _ in rows})
    assert found.sizes == {name: len(rows) for name, rows in parts.items()}
    assert found.tail_queries == len({(h, r) for h, r, _ in train})
    assert found.head_queries == len({(r, t) for _, r, t in train})
    assert found.duplicates == {name: len(rows) - len(set(rows)) for name, rows in parts.items()}
    assert found.shared == {
        "train_valid": len(train & valid),
        "train_test": len(train & test),
        "valid_test": len(valid & test),
    }
    assert sum(found.patterns.values()) == sum(found.categories.values()) == found.relations
    assert sum(row.triples for row in found.details) == len(train)


@given(splits)
def test_unseen_is_what_train_never_shows(parts):
    unseen = statistics(graph_of(parts)).unseen
    entities = {e for h, _, t in parts["train"] for e in (h, t)}
    relations = {r for _, r, _ in parts["train"]}

    def touched(rows):
        return sum(h not in entities or t not in entities or r not in relations for h, r, t in rows)

    elsewhere = parts["valid"] + parts["test"]
    assert unseen.entities == len({e for h, _, t in elsewhere for e in (h, t)} - entities)
    assert unseen.relations == len({r for _, r, _ in elsewhere} - relations)
    assert (unseen.valid_triples, unseen.test_triples) == (touched(parts["valid"]), touched(parts["test"]))


def plain_leaks(parts: dict, threshold: float = 0.8) -> dict[str, set[int]]:
    """The definition: try every other relation and direction on every test triple."""
    train = set(parts["train"])
    everything = train | set(parts["valid"]) | set(parts["test"])
    found: dict[str, set[int]] = {"near_duplicate": set(), "inverse": set(), "symmetric": set()}
    for row, (head, target, tail) in enumerate(parts["test"]):
        for source in {r for _, r, _ in everything}:
            own = [(h, t) for h, r, t in everything if r == source]
            straight = sum((h, target, t) in everything for h, t in own) / len(own)
            turned = sum((t, target, h) in everything for h, t in own) / len(own)
            if source != target and straight >= threshold and (head, source, tail) in train:
                found["near_duplicate"].add(row)
            if turned >= threshold and (tail, source, head) in train:
                found["symmetric" if source == target else "inverse"].add(row)
    return found


@given(splits)
def test_leakage_is_what_trying_every_relation_gives(parts):
    found = leakage(graph_of(parts))
    plain = plain_leaks(parts) if parts["train"] else {"near_duplicate": [], "inverse": [], "symmetric": []}
    assert found.inverse == len(plain["inverse"])
    assert found.near_duplicate == len(plain["near_duplicate"])
    assert found.symmetric == len(plain["symmetric"])
    assert found.test_triples == len(set(plain["inverse"]) | set(plain["near_duplicate"]))
    assert found.share == found.test_triples / max(len(parts["test"]), 1)


def test_degrees_are_counted_over_all_entities():
    graph = graph_of(
        {"train": [("a", "r", "b"), ("a", "r", "c"), ("a", "s", "b")], "test": [("d", "r", "a")]}
    )
    degrees = statistics(graph).degrees
    assert degrees["head"].quantiles[100] == 3
    assert degrees["head"].quantiles[0] == 0
    assert degrees["both"].mean == 6 / 4


def test_repeated_triples_do_not_change_patterns():
    once = [("a", "r", "b"), ("b", "r", "a"), ("c", "s", "d")]
    assert (
        statistics(graph_of({"train": once * 3})).patterns == statistics(graph_of({"train": once})).patterns
    )


def test_a_relation_that_train_lacks_is_general_and_listed():
    found = statistics(graph_of({"train": [("a", "r", "b")], "test": [("a", "s", "b")]}))
    assert {row.relation: row.pattern for row in found.details}["s"] == "general"
    assert found.unseen.relations == 1


def test_the_inverse_partner_is_named():
    details = {row.relation: row for row in statistics(patterned_graph(inverse_pairs=2)).details}
    assert details["inverse1a"].partner == "inverse1b"
    assert details["inverse0b"].partner == "inverse0a"


def test_an_empty_graph_has_statistics_too():
    found = statistics(graph_of({"train": []}))
    assert (found.entities, found.relations, found.tail_queries) == (0, 0, 0)
    assert findings(found) == []


def test_what_is_wrong_is_told_in_words():
    train = [(f"a{i}", "r", f"b{i}") for i in range(10)] + [(f"b{i}", "back", f"a{i}") for i in range(9)]
    parts = {
        "train": train + train[:1],
        "valid": [("a0", "r", "b0")],
        "test": [("b9", "back", "a9"), ("x", "r", "a1")],
    }
    told = findings(statistics(graph_of(parts)))
    assert told == [
        "50.0 % of test triples can be answered from an inverse relation in train",
        "1 valid triple is also in train",
        "1 triple is repeated within a split",
        "1 test triple has an entity or relation that train never shows",
    ]


def test_what_splits_share_is_told_by_the_statistics_alone():
    graph = graph_of({"train": [("a", "r", "b")]}).with_warnings(
        "1 of 4 test triples is also in train", "2 of 5 valid triples are also in train", "something else"
    )
    assert all_warnings(graph, statistics(graph)) == ["something else"]


def test_the_graph_is_not_changed():
    graph = patterned_graph(symmetric=1, general=1, test=0.1)
    before = [triples.copy() for _, triples in graph.splits()]
    statistics(graph)
    assert all((old == new).all() for old, (_, new) in zip(before, graph.splits(), strict=True))
