"""Synthetic graphs are what they were ordered to be."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosf.errors import UserError
from autosf.graph import synthetic_large
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.statistics import statistics
from autosf.graph.synthetic import Planting, patterned_graph, planted_graph
from autosf.graph.synthetic_large import FORMS, LargeGraph, write_large_graph


@dataclass(frozen=True)
class Rows:
    rows: tuple[tuple[int, ...], ...]


DISTMULT = Rows(((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 4)))
SKEW = Rows(((0, 1, 0, 0), (-1, 0, 0, 0), (0, 0, 0, 2), (0, 0, -2, 0)))
COMPLEX = Rows(((1, 0, 3, 0), (0, 2, 0, 4), (-3, 0, 1, 0), (0, -4, 0, 2)))


@settings(max_examples=30)
@given(*[st.integers(0, 4)] * 4, st.integers(1, 50), st.integers(0, 9))
def test_patterns_are_there_in_the_ordered_numbers(
    symmetric, anti_symmetric, inverse_pairs, general, half, seed
):
    graph = patterned_graph(
        symmetric=symmetric,
        anti_symmetric=anti_symmetric,
        inverse_pairs=inverse_pairs,
        general=general,
        triples=2 * half,
        seed=seed,
    )
    assert statistics(graph).patterns == {
        "symmetric": symmetric,
        "anti_symmetric": anti_symmetric,
        "inverse": 2 * inverse_pairs,
        "general": general,
    }


@pytest.mark.parametrize("triples", [0, 3, 2000])
def test_a_patterned_graph_that_has_no_room_is_refused(triples):
    with pytest.raises(UserError, match="expected an even number of triples"):
        patterned_graph(general=1, triples=triples)


def test_a_graph_planted_from_a_symmetric_structure_is_symmetric():
    planting = Planting(valid=0, test=0)
    found = statistics(planted_graph(DISTMULT, planting, seed=0))
    assert found.patterns["symmetric"] == planting.relations


def test_a_graph_planted_from_a_skew_structure_has_no_mirrored_triple():
    graph = planted_graph(SKEW, Planting(valid=0, test=0), seed=0)
    triples = set(map(tuple, graph.train.tolist()))
    assert not {(t, r, h) for h, r, t in triples} & triples


def scores_of(structure: Rows, entity: np.ndarray, relation: np.ndarray) -> np.ndarray:
    """The sum of the terms s * <h_i, r_k, t_j>, one by one."""
    total = np.zeros((len(entity), len(entity)))
    for i, row in enumerate(structure.rows):
        for j, cell in enumerate(row):
            if cell:
                total += np.sign(cell) * (entity[:, i] * relation[abs(cell) - 1]) @ entity[:, j].T
    return total


def test_planted_triples_are_the_top_scores_of_their_relation():
    planting = Planting(entities=30, relations=3, triples_per_relation=40, valid=0, test=0)
    graph = planted_graph(COMPLEX, planting, seed=5)
    rng = np.random.default_rng(5)
    entity = rng.standard_normal((30, 4, planting.dimension_per_part))
    relation = rng.standard_normal((3, 4, planting.dimension_per_part))
    numbers = [int(label[1:]) for label in graph.entities.labels]
    for place in range(3):
        scores = scores_of(COMPLEX, entity, relation[place])
        np.fill_diagonal(scores, -np.inf)
        chosen = [(numbers[h], numbers[t]) for h, r, t in graph.train.tolist() if r == place]
        assert len(set(chosen)) == 40
        assert min(scores[pair] for pair in chosen) >= np.sort(scores, axis=None)[-40]


def test_planting_is_deterministic_and_split_so_that_train_shows_everything():
    one, two, other = (planted_graph(COMPLEX, Planting(), seed=seed) for seed in (1, 1, 2))
    assert one.digest == two.digest != other.digest
    unseen = statistics(one).unseen
    assert (unseen.entities, unseen.relations) == (0, 0)
    assert len(one.test) == len(one.valid) == 400


def read(folder: Path, form: str) -> KnowledgeGraph:
    columns = {}
    for name in ("train", "valid", "test"):
        path = folder / f"{name}.{form}"
        if form == "parquet":
            frame = pl.read_parquet(path)
        else:
            raw = gzip.decompress(path.read_bytes()) if form.endswith("gz") else path.read_bytes()
            rows = [line.split("\t") for line in raw.decode().splitlines()]
            frame = pl.DataFrame(rows, schema=["h", "r", "t"], orient="row") if rows else pl.DataFrame()
        columns[name] = tuple(frame.get_columns()) or (pl.Series(dtype=pl.String),) * 3
    return KnowledgeGraph.from_columns("large", columns)


@pytest.mark.parametrize("form", FORMS)
def test_a_large_graph_has_the_exact_sizes_in_every_form(tmp_path: Path, form: str, monkeypatch):
    monkeypatch.setattr(synthetic_large, "HEADS_AT_ONCE", 300)  # several chunks
    heard = []
    order = LargeGraph(entities=1000, relations=20, triples=5000, valid=50, test=70, seed=3)
    write_large_graph(order, tmp_path / "large", form=form, progress=heard.append)
    graph = read(tmp_path / "large", form)
    found = statistics(graph)
    assert (found.entities, found.relations) == (1000, 20)
    assert found.sizes == {"train": 4880, "valid": 50, "test": 70}
    assert sum(heard) == 5000
    assert sum(found.duplicates.values()) == sum(found.shared.values()) == 0
    assert found.unseen.entities == found.unseen.relations == 0
    assert [path.name for path in tmp_path.iterdir()] == ["large"]


def test_all_forms_hold_the_same_graph_and_seeds_differ(tmp_path: Path):
    order = LargeGraph(entities=200, relations=5, triples=900, valid=10, test=10)
    digests = set()
    for form in FORMS:
        write_large_graph(order, tmp_path / form, form=form)
        digests.add(read(tmp_path / form, form).digest)
    assert len(digests) == 1
    write_large_graph(LargeGraph(200, 5, 900, 10, 10, seed=1), tmp_path / "other")
    assert read(tmp_path / "other", "tsv").digest not in digests


def test_degrees_are_skewed(tmp_path: Path):
    write_large_graph(LargeGraph(2000, 10, 20_000), tmp_path / "large")
    degrees = statistics(read(tmp_path / "large", "tsv")).degrees["both"].quantiles
    assert degrees[100] > 20 * degrees[50]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_sizes_that_are_accepted_are_met(data):
    entities = data.draw(st.integers(2, 60))
    relations = data.draw(st.integers(1, entities))
    most = entities * entities * relations // 4
    held_out = data.draw(st.integers(0, 20))
    triples = entities + 2 * held_out + data.draw(st.integers(0, 100))
    if triples > most:
        with pytest.raises(UserError):
            LargeGraph(entities, relations, triples, held_out, held_out)
        return
    order = LargeGraph(entities, relations, triples, held_out, held_out)
    parts = {"train": [], "valid": [], "test": []}
    for chunk in synthetic_large.chunks(order):
        for name, rows in chunk.items():
            parts[name] += map(tuple, rows.tolist())
    assert {name: len(rows) for name, rows in parts.items()} == {
        "train": triples - 2 * held_out,
        "valid": held_out,
        "test": held_out,
    }
    everything = [row for rows in parts.values() for row in rows]
    assert len(set(everything)) == triples
    assert {h for h, _, _ in parts["train"]} == set(range(entities))
    assert {r for _, r, _ in parts["train"]} == set(range(relations))


def test_impossible_orders_are_refused_and_write_nothing(tmp_path: Path):
    for sizes in [(1, 1, 5), (10, 0, 50), (10, 2, 5), (4, 1, 10_000), (10, 20, 100)]:
        with pytest.raises(UserError, match="synthetic graph"):
            LargeGraph(*sizes)
    with pytest.raises(
        UserError, match="for each of 10 entities, found 0: of 50 triples valid has 30, test 40"
    ):
        LargeGraph(10, 2, 50, 30, 40)
    with pytest.raises(UserError, match=r"no more relations than entities \(10\), found 20"):
        LargeGraph(10, 20, 100)
    with pytest.raises(UserError, match="unknown form"):
        write_large_graph(LargeGraph(10, 2, 20), tmp_path / "large", form="xml")
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="expected a folder that does not exist yet"):
        write_large_graph(LargeGraph(10, 2, 20), tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path):
    with pytest.raises(ZeroDivisionError):
        write_large_graph(LargeGraph(10, 2, 20), tmp_path / "large", progress=lambda _: 1 // 0)
    assert list(tmp_path.iterdir()) == []
