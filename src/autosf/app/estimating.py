"""What long work will take, told before it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.algebra.structure import PARTS
from autosf.algebra.zoo import named
from autosf.app.cost import cost_with_threads
from autosf.app.duration import span_in_words
from autosf.app.opening import first_and_last, trainings_within
from autosf.app.request import staff
from autosf.app.run_results import playoff_seeds, search_settings
from autosf.app.searching import last_rounds
from autosf.app.tuned_first import TUNED_WITH
from autosf.runs.shared_graph import shared
from autosf.search.free import most_finals

if TYPE_CHECKING:
    from autosf.app.cost import Cost
    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.run import Run
    from autosf.search.settings import SearchSettings

LONG = 30.0  # seconds: what is shorter needs no announcement


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
    fit, needed = trainings_within(budget, one, workers), first_and_last(search)
    if search.strategy != "free" or fit >= needed:
        return None
    less = "fewer --epochs take less" if sampled else "fewer --epochs or a --sample of the graph take less"
    short = f", so that it begins with {search.opening} known structures" if search.opening else ""
    return f"{each}: {span_in_words(budget)} allow {fit}, a search likes {needed}{short}; {less}"


def announcement(run: Run, graph: KnowledgeGraph, workers: int | None) -> str | None:
    """As `search_announced`, of a run that has not begun."""
    plan = run.plan
    sampled = bool(plan.search.get("sample"))
    if sampled:
        graph = shared(run.graph_folder).graph
    cost = cost_with_threads(graph, named(TUNED_WITH).structure, plan.settings, plan.threads)
    if cost is None:
        return None
    return search_announced(
        cost,
        plan.settings,
        search_settings(run),
        staff(plan.threads, workers),
        plan.search["budget"],
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
