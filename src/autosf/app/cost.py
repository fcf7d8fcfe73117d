"""Seconds of an epoch and of a validation on this machine: a few steps are timed, the rest is counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from autosf.embedding.epochs import epoch_runner
from autosf.embedding.model import Model
from autosf.embedding.queries import training_queries
from autosf.embedding.settings import SOFTMAX, refuse_odd_dimension
from autosf.embedding.training import moved, start
from autosf.evaluation.sampled_ranking import rank_among
from autosf.graph.known_answers import known_answers

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure
    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph

STEPS, TIMES = 4, 3  # of training that are timed, and how often: a busy machine's hiccups are not the cost
RANKED = 256  # validation triples that are timed
MOST_NUMBERS = 100_000_000  # in the entities' embeddings: beyond, even a first step would take its time


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of an epoch and of a validation, to be taken as "about"."""

    epoch: float
    validation: float

    def training(self, settings: TrainingSettings) -> float:
        """Seconds of a training that is not stopped early."""
        validations = settings.epochs / settings.validate_every if settings.validate_every else 0
        return settings.epochs * self.epoch + validations * self.validation


def cost_of(
    graph: KnowledgeGraph,
    structure: Structure,
    settings: TrainingSettings,
    clock: Callable[[], float] = time.perf_counter,
    device: str = "cpu",
) -> Cost | None:
    """The cost from some steps on a sample of the triples among all entities; None if that would take too long."""
    refuse_odd_dimension(settings.dimension, structure.parts)
    if len(graph.entities) * settings.dimension > MOST_NUMBERS or not len(graph.train):
        return None
    timed = max(1, STEPS * settings.batch_size // 2)  # a triple asks for its head and for its tail
    sample = replace(graph, train=some(graph.train, timed), valid=some(graph.valid, RANKED))
    place = torch.device(device)
    run = epoch_runner(sample, structure, settings, seed=0, device=place, clock=clock)
    state = moved(start(graph, settings, 0), place)
    for _ in range(TIMES):
        state = run(state)
    fastest = min(epoch.seconds for epoch in state.curve[1:])  # the first one makes what is made once
    epoch = fastest * work(graph, settings) / work(sample, settings)
    if not len(sample.valid):
        return Cost(epoch, 0.0)
    model, known, began = (
        Model(structure, *state.weights, settings.reciprocal),
        known_answers(sample),
        clock(),
    )
    rank_among(model, sample.valid, known, settings.validation_candidates)
    return Cost(epoch, (clock() - began) * len(graph.valid) / len(sample.valid))


def some(triples: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """So many of the triples, evenly spread, or all."""
    return triples[:: max(1, len(triples) // count)][:count]


def work(graph: KnowledgeGraph, settings: TrainingSettings) -> int:
    """What the time of an epoch is proportional to: its queries, or with negatives of their own its triples."""
    if settings.loss not in SOFTMAX:
        return len(graph.train)
    return len(training_queries(graph, settings.reciprocal))


def cost_with_threads(
    graph: KnowledgeGraph, structure: Structure, settings: TrainingSettings, threads: int
) -> Cost | None:
    """As `cost_of` on the CPU, for a worker that has so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return cost_of(graph, structure, settings)
    finally:
        torch.set_num_threads(before)
