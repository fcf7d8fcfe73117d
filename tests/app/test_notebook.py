"""In a notebook objects show themselves, and nothing in a label is ever read as HTML."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

import autosf
from autosf.algebra.zoo import ZOO, named
from autosf.app.found import Found
from autosf.app.run_results import Best, Outcome
from autosf.evaluation.metrics import Metrics
from autosf.graph.synthetic import patterned_graph
from autosf.runs.leaderboard import leaderboard
from autosf.search.record import Record, Trial

EVIL = "<script>alert('1')</script>&\""


def shown(thing: object) -> str:
    """The HTML of an object, which must be well-formed, as text."""
    return " ".join(ElementTree.fromstring(thing._repr_html_()).itertext())


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_a_structure_is_a_grid_with_a_cell_for_each_term(known):
    table = ElementTree.fromstring(known.structure._repr_html_())
    cells = [
        [(cell.text or "0").replace("r", "").replace("\N{MINUS SIGN}", "-") for cell in row] for row in table
    ]
    assert cells == [[str(cell) for cell in row] for row in known.structure.rows]
    assert known.structure._repr_html_().count("repeating-linear-gradient") == sum(
        cell < 0 for cell in known.structure.cells
    )


def test_a_graph_shows_its_counts_and_warnings():
    graph = patterned_graph(symmetric=1, entities=24, triples=40, valid=0.1, test=0.1)
    text = shown(graph.with_warnings(EVIL))
    assert f"train {len(graph.train)}" in text
    assert f"warning {EVIL}" in text


def test_labels_are_never_html():
    graph = patterned_graph(symmetric=1, entities=24, triples=40, valid=0.1, test=0.1)
    model = autosf.train(replace(graph, name=EVIL), dimension=8, epochs=1)
    assert f"model of {EVIL}" in shown(model)
    assert "validation MRR 0." in shown(model)
    assert shown(model) == shown(model.trained)
    assert "<script" not in model._repr_html_() + replace(graph, name=EVIL)._repr_html_()


def test_metrics_are_a_table():
    assert "MRR 0.5000" in shown(Metrics(0.5, 0.4, 0.5, 0.6, 1234.5, 0.9, 10_000))
    assert "mean rank 1,234.5" in shown(Metrics(0.5, 0.4, 0.5, 0.6, 1234.5, 0.9, 10_000))


def test_a_search_shows_its_winner_and_the_leaderboard():
    records = [
        Record(Trial(named(name).structure, 4, 0), mrr, 4)
        for name, mrr in (("complex", 0.5), ("simple", 0.4))
    ]
    best = Best(named("complex").structure, 0.5, 0.01, 3)
    standings = tuple(leaderboard(records))
    found = Found(Path(EVIL), Outcome(tuple(records), standings, best, "ended", "all done", 1.0))
    text = shown(found)
    assert "complex, hole validation MRR 0.5000 ± 0.0100 seeds 3" in text
    assert "1. complex 0.5000 2. simple 0.4000" in text
    assert isinstance(found.leaderboard, pl.DataFrame)
