"""A sample is connected, of the size asked for, keeps what lies between its entities, and repeats itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.reading import read_graph
from autosf.graph.subgraph import facts, mix_distance, subgraph
from autosf.graph.synthetic_large import LargeGraph, chunks


def graph_of(triples: np.ndarray, valid: np.ndarray | None = None, test: np.ndarray | None = None):
    splits = {"train": triples, "valid": triples[:0] if valid is None else valid}
    labels = [f"e{i:05}" for i in range(int(triples[:, ::2].max()) + 1)]
    relations = [f"r{i:03}" for i in range(int(triples[:, 1].max()) + 1)]
    return KnowledgeGraph.from_ids(
        "whole", labels, relations, splits | {"test": triples[:0] if test is None else test}
    )


@pytest.fixture(scope="module")
def whole() -> KnowledgeGraph:
    (parts,) = chunks(LargeGraph(3000, 20, 12_000, valid=400, test=400))
    return graph_of(parts["train"], parts["valid"], parts["test"])


def components(graph: KnowledgeGraph) -> int:
    everything = np.concatenate([graph.train, graph.valid])
    size = len(graph.entities)
    links = coo_array((np.ones(len(everything)), (everything[:, 0], everything[:, 2])), shape=(size, size))
    return connected_components(links, directed=False)[0]


def labelled(graph: KnowledgeGraph, *splits: str) -> set[tuple[str, str, str]]:
    return {
        row
        for split in splits
        for row in zip(*(column.to_list() for column in graph.columns(split)), strict=True)
    }


@pytest.mark.parametrize("method", ["walk", "core"])
def test_a_sample_is_connected_and_has_all_triples_between_its_entities(whole, method):
    part = subgraph(whole, 700, method=method).graph
    assert len(part.entities) == 700
    assert components(part) == 1
    inside = set(part.entities.labels)
    between = {t for t in labelled(whole, "train", "valid") if t[0] in inside and t[2] in inside}
    kept = labelled(part, "train", "valid")
    assert kept <= between
    lost = between - kept  # validation triples of relations that train does not show
    assert lost <= labelled(whole, "valid")
    assert not len(part.test)


def test_no_test_triple_is_ever_in_a_sample(whole):
    part = subgraph(whole, 700).graph
    assert not labelled(part, "train", "valid") & labelled(whole, "test")


def test_a_sample_has_validation_triples_and_its_train_shows_every_entity(whole):
    part = subgraph(whole, 700).graph
    assert len(part.valid) >= min(1000, 0.1 * len(part.train))
    assert set(np.unique(part.train[:, ::2])) == set(range(700))
    assert not labelled(part, "train") & labelled(part, "valid")


def test_the_same_seed_takes_the_same_sample(whole):
    one, two, other = (subgraph(whole, 300, seed=seed).graph.digest for seed in (1, 1, 2))
    assert one == two != other


def test_a_core_is_denser_than_walks(whole):
    walk, core = (subgraph(whole, 400, method=method).graph for method in ("walk", "core"))
    assert len(core.train) > 1.2 * len(walk.train)


def test_a_core_holds_the_only_clique_of_a_chain():
    chain = [[i, 0, i + 1] for i in range(200)]
    clique = [[a, 0, b] for a in range(100, 110) for b in range(a + 2, 110)]
    part = subgraph(graph_of(np.array(chain + clique)), 20, method="core").graph
    assert {f"e{i:05}" for i in range(100, 110)} <= set(part.entities.labels)


@given(st.integers(0, 50), st.integers(2, 60), st.sampled_from(["walk", "core"]))
def test_a_sample_never_leaves_the_largest_component(seed, wanted, method):
    rng = np.random.default_rng(seed)
    large, small = rng.integers(0, [30, 3, 30], (60, 3)), rng.integers([40, 0, 40], [45, 3, 45], (6, 3))
    ring = np.stack([np.arange(30), np.zeros(30, int), (np.arange(30) + 1) % 30], axis=1)
    whole = graph_of(np.unique(np.concatenate([ring, large, small]), axis=0))
    part = subgraph(whole, wanted, method=method, seed=seed).graph
    assert len(part.entities) == min(wanted, 30)
    assert max(part.entities.labels) < "e00040"


def test_the_distance_of_mixes_is_the_share_that_would_have_to_change():
    whole = graph_of(np.array([[0, 0, 1], [1, 0, 2], [2, 1, 3], [3, 1, 0]]))
    part = graph_of(np.array([[0, 0, 1], [1, 0, 2]]))
    assert mix_distance(whole, whole) == 0
    assert mix_distance(whole, part) == 0.5


def test_what_is_told_of_a_sample(whole):
    found = subgraph(whole, 200)
    told = facts(found, whole)
    assert (told["entities"], told["whole"]["entities"]) == (200, len(whole.entities))
    assert told["train"] == len(found.graph.train)
    assert told["mix_distance"] == mix_distance(whole, found.graph)


@pytest.mark.parametrize(
    ("entities", "method", "message"),
    [
        (1, "walk", "sample: expected a number of entities from 2, found 1"),
        (9, "wlak", 'sample: unknown method "wlak"; did you mean "walk"?'),
    ],
)
def test_mistakes_are_told(whole, entities, method, message):
    with pytest.raises(UserError) as caught:
        subgraph(whole, entities, method=method)
    assert str(caught.value) == message


@pytest.mark.data
@pytest.mark.parametrize("name", ["FB15k-237", "WN18RR"])
def test_walks_keep_the_mix_of_relations_of_real_graphs(name, data_folder):
    whole = read_graph(name, search_path=[data_folder])
    found = subgraph(whole, 4000)
    assert found.mix_distance < 0.15
    density = len(whole.train) / len(whole.entities)
    assert len(found.graph.train) / 4000 > 0.75 * density
