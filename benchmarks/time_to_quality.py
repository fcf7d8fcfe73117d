"""Seconds of training until validation MRR is at 99 % of its best, for the plain reference and for ours.

Fewer seconds an epoch are worth nothing if more epochs are needed: grouping queries also means fewer steps in an
epoch. Both train ComplEx at d = 64 with N3 .05 and Adagrad .1, batch 512, and ours also with the graph's preset;
both are validated after every epoch by the same ranking, whose time does not count.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from autosf.algebra.zoo import named
from autosf.embedding.model import Model
from autosf.embedding.presets import preset
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.training import train
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.graph.known_answers import known_answers
from autosf.graph.reading import read_graph
from benchmarks.measured import Measured
from benchmarks.plain_trainer import PlainComplEx, plain_steps
from benchmarks.training import THEIR_BATCH, data_folder

if TYPE_CHECKING:
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.known_answers import KnownAnswers

# As PlainComplEx cuts its embeddings: real and imaginary halves.
TWO_PARTS = "[[1,2],[-2,1]]"
EPOCHS = {"CoDEx-S": 40, "FB15k-237": 12}

Curve = list[tuple[float, float]]  # (seconds of training so far, validation MRR)


def validation(model: Model, graph: KnowledgeGraph, known: KnownAnswers) -> float:
    return summarise(rank(model, graph.valid, known)).mrr


def plain_curve(graph: KnowledgeGraph, known: KnownAnswers, epochs: int) -> Curve:
    from autosf.algebra.zoo import structure_from

    torch.manual_seed(0)
    model = PlainComplEx(len(graph.entities), len(graph.relations), 64)
    optimiser = torch.optim.Adagrad(model.parameters(), lr=0.1)
    structure, spent, curve = structure_from(TWO_PARTS), 0.0, []
    for _ in range(epochs):
        spent += sum(plain_steps(graph, model, optimiser, batch=THEIR_BATCH))
        weights = model.entity.weight.detach(), model.relation.weight.detach()
        curve.append((spent, validation(Model(structure, *weights, False), graph, known)))
    return curve


def our_curve(graph: KnowledgeGraph, known: KnownAnswers, settings: TrainingSettings) -> Curve:
    every = settings.changed({"validate_every": 1, "patience": 0})
    trained = train(
        graph,
        named("complex").structure,
        every,
        seed=0,
        clock=time.perf_counter,
        validate=lambda model: validation(model, graph, known),
    )
    spent, curve = 0.0, []
    for epoch in trained.state.curve:
        spent += epoch.seconds
        curve.append((spent, epoch.valid_mrr or 0.0))
    return curve


def reaching(curve: Curve, wanted: float) -> float:
    """Seconds until the MRR is first at the wanted one."""
    return next((spent for spent, mrr in curve if mrr >= wanted), float("inf"))


def run() -> list[Measured]:
    """Seconds to 99 % of each one's own best, and of ours to the reference's."""
    lines = []
    for name, epochs in EPOCHS.items():
        graph = read_graph(data_folder() / name)
        known = known_answers(graph)
        theirs = plain_curve(graph, known, epochs)
        same = our_curve(graph, known, TrainingSettings(epochs=4 * epochs))
        best = our_curve(graph, known, preset(graph.name))
        goal = 0.99 * max(mrr for _, mrr in theirs)
        slow = reaching(theirs, goal)
        for what, curve in (("its settings", same), ("the preset", best)):
            top = max(mrr for _, mrr in curve)
            own, quick = reaching(curve, 0.99 * top), reaching(curve, goal)
            note = (
                f"best MRR {max(mrr for _, mrr in theirs):.4f} in {slow:.0f} s, ours {top:.4f} in {own:.1f} s"
            )
            if quick == float("inf"):
                note += "; not reached"
            lines.append(
                Measured(f"{name}, ours with {what}: to the reference's", slow / quick, "x", None, note)
            )
    return lines
