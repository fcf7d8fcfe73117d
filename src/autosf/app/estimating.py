"""What long work will cost, told before it starts: a few steps and validations are timed, the rest is counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from autosf.algebra.structure import PARTS
from autosf.algebra.zoo import named
from autosf.app.duration import span_in_words
from autosf.app.run_results import playoff_seeds, search_settings
from autosf.app.searching import TUNED_WITH, cores, last_rounds
from autosf.embedding.epochs import epoch_runner
from autosf.embedding.model import Model
from autosf.embedding.queries import training_queries
from autosf.embedding.settings import SOFTMAX, refuse_odd_dimension
from autosf.embedding.training import moved, start
from autosf.evaluation.sampled_ranking import rank_among
from autosf.graph.known_answers import known_answers
from autosf.runs.shared_graph import shared
from autosf.search.free import most_finals
from autosf.search.typical import known_good

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure
    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.run import Run
    from autosf.search.settings import SearchSettings

LONG = 30.0  # seconds: what is shorter needs no announcement
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


def training_announced(cost: Cost, settings: TrainingSettings) -> str | None:
    """A sentence on a training that will be long."""
    seconds = cost.training(settings)
    if seconds < LONG:
        return None
    early = ", less if it stops improving" if settings.patience and settings.validate_every else ""
    return (
        f"about {span_in_words(cost.epoch)} an epoch: {span_in_words(seconds)}"
        f" for {settings.epochs} epochs{early}"
    )


def search_announced(
    cost: Cost,
    settings: TrainingSettings,
    search: SearchSettings,
    workers: int,
    budget: float | None,
    last: int = 1,
    *,
    sampled: bool = False,
) -> str | None:
    """A sentence on a search that will be long, or whose budget is too short for its first steps.

    The winner's own training, or a play-off on more of the graph, takes as long as so many of a trial.
    """
    one = cost.training(settings)
    each = f"about {span_in_words(one)} a full training"
    if budget is None:
        seconds = (most_trainings(search) / workers + last) * one
        beside = f", {workers} at a time" if workers > 1 else ""
        told = f"{each}{beside}: at most about {span_in_words(seconds)}; --budget sets a limit"
        return told if seconds >= LONG else None
    fit, needed = int(budget * workers / max(one, 1e-9)), len(known_good()) + most_finals(search)
    if search.strategy != "free" or fit >= needed:
        return None
    less = "fewer --epochs take less" if sampled else "fewer --epochs or a --sample of the graph take less"
    return f"{each}: {span_in_words(budget)} allow {fit}, a search likes {needed}; {less}"


def announcement(run: Run, graph: KnowledgeGraph, workers: int | None, budget: float | None) -> str | None:
    """As `search_announced`, of a run that has not begun."""
    plan, before = run.plan, torch.get_num_threads()
    sampled = bool(plan.search.get("sample"))
    if sampled:
        graph = shared(run.graph_folder).graph
    torch.set_num_threads(plan.threads)  # as each worker has
    try:
        cost = cost_of(graph, named(TUNED_WITH).structure, plan.settings)
    finally:
        torch.set_num_threads(before)
    staff = workers or max(1, cores() // plan.threads)
    whole = budget if budget is not None else plan.search["budget"]
    if cost is None:
        return None
    return search_announced(
        cost,
        plan.settings,
        search_settings(run),
        staff,
        whole,
        last_rounds(run) * playoff_seeds(run),
        sampled=sampled,
    )


def most_trainings(search: SearchSettings) -> int:
    """Full trainings that a strategy asks for at most."""
    if search.strategy == "free":
        return (search.trials or 0) + most_finals(search)
    rounds = search.rounds * search.chosen
    if search.strategy in ("random", "tpe"):
        return search.trials or rounds
    whole = 5 + rounds * ((search.blocks - PARTS) // 2)  # the five f^4 first
    return min(whole, search.trials or whole)
