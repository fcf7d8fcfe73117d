"""A search as it was asked for, and what is taken for granted where nobody says anything."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.algebra.structure import PARTS
from autosf.app.graphs import making_valid
from autosf.app.search_sample import default_draw, refuse_draw, search_defaults, searched_entities
from autosf.embedding.presets import has_preset, preset
from autosf.embedding.settings import refuse_odd_dimension
from autosf.errors import UserError
from autosf.search.settings import SearchSettings
from autosf.search.strategies import asynchronous_strategy, strategy_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph

STRUCTURES = 64  # of `free`, where neither a number nor a budget is given
TUNING_SHARE = 0.2  # of the budget, for a graph that nobody has given settings for
LARGE = 100_000  # entities: from here on the embeddings of several workers at once may not fit
PLAYOFF = 4  # structures trained on all of the graph, the winner among them
PLAYOFF_SEEDS = 3

PAPER = SearchSettings()
POOL = 128  # candidates that `free` draws from in a round; their canonical forms are most of its own time


@dataclass(frozen=True, slots=True)
class Request:
    """A search as it was asked for."""

    source: str  # how the graph was named, as an absolute path where it is one
    settings: TrainingSettings
    strategy: str = "free"
    trials: int | None = None
    blocks: int | None = None  # B; None is the paper's 6, and any number for `free`
    parents: int = PAPER.parents  # K1
    chosen: int = PAPER.chosen  # K2
    candidates: int | None = None  # N; None is what suits the strategy
    rounds: int = PAPER.rounds  # for each b
    fresh_seeds: int = PAPER.fresh_seeds  # of each finalist
    seed: int = 0
    threads: int = 1
    hide_test: bool = False  # test answers are known ones while validation is ranked
    asynchronous: bool = False
    budget: float | None = None  # seconds, tuning and the last training included
    final_dimension: int | None = None
    sample: int | None = None  # entities to search on; the winner is trained on all
    sample_by: str = "walk"
    draw: int = 0  # entities of a step's softmax in trials; 0 is all, as in the winner's training
    playoff: int = PLAYOFF  # structures trained in full after trials on a sample, or with draws
    playoff_seeds: int = PLAYOFF_SEEDS  # of each of them at most, as long as it may be the best
    tuning_share: float = 0.0  # of the budget; 0 where settings are given
    command: str = ""

    def longer(self, budget: float | None, trials: int | None) -> Request:
        """With another budget or number of trials, where one is given."""
        budget = self.budget if budget is None else budget
        return replace(self, budget=budget, trials=self.trials if trials is None else trials)

    def searched(self, settings: TrainingSettings) -> SearchSettings:
        """What the strategy is told."""
        free = self.strategy == "free"
        return SearchSettings(
            strategy=self.strategy,
            epochs=settings.epochs,
            seed=self.seed,
            trials=self.trials,
            blocks=PAPER.blocks if free or self.blocks is None else self.blocks,
            most_blocks=self.blocks if free else None,
            parents=self.parents,
            candidates=self.candidates or (POOL if free else PAPER.candidates),
            chosen=self.chosen,
            rounds=self.rounds,
            fresh_seeds=self.fresh_seeds,
            grain=settings.validate_every or 1,
            asynchronous=self.asynchronous,
        )


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def staff(threads: int, workers: int | None = None) -> int:
    """How many workers there are; unless somebody says so, as many as the cores allow."""
    return workers or max(1, cores() // threads)


def default_threads(graph: KnowledgeGraph, sample: int | None = None) -> int:
    """One thread for each of many workers, which is faster; all for the one worker of a large graph."""
    return cores() if searched_entities(graph, sample) > LARGE else 1


def default_trials(strategy: str, budget: float | None) -> int | None:
    """As many structures as `free` tries where nothing else ends it; the others have ends of their own."""
    return STRUCTURES if strategy == "free" and budget is None else None


def named_again(source: str) -> str:
    """A source that can be read from any folder: a path becomes absolute, a name stays, and so does none."""
    return str(Path(source).resolve()) if source and Path(source).exists() else source


def requested(
    graph: KnowledgeGraph,
    source: str,
    file: Mapping[str, Any] | None,
    values: Mapping[str, Any],
    *,
    tuning_share: float,
    strategy: str,
    budget: float | None,
    trials: int | None,
    threads: int | None,
    sample: int | None,
    draw: int | None,
    **wish: Any,
) -> Request:
    """What a user asks for, with the defaults that hang on the graph.

    A value wins over the file, the file over the preset. Without either, a share of the budget goes to tuning; a
    file that is empty is one, too.
    """
    entities = searched_entities(graph, sample)
    settings = preset(graph.name, entities).changed(file or {}).changed({**search_defaults(draw), **values})
    tunes = file is None and not values and not has_preset(graph.name)
    return Request(
        source=named_again(source),
        settings=settings,
        strategy=strategy,
        trials=trials or default_trials(strategy, budget),
        threads=default_threads(graph, sample) if threads is None else threads,
        sample=sample,
        draw=default_draw(entities, settings) if draw is None else draw,
        budget=budget,
        tuning_share=tuning_share if tunes else 0.0,
        **wish,
    )


def refuse_unsearchable(graph: KnowledgeGraph, request: Request) -> None:
    """Tell every mistake before anything is trained or written."""
    if not len(graph.valid):
        raise UserError(f"{graph.name}: a search needs triples in valid, found none; {making_valid(graph)}")
    refuse_draw(request.draw, request.settings)
    for dimension in (request.settings.dimension, request.final_dimension or PARTS):
        refuse_odd_dimension(dimension, PARTS)
    if not request.settings.validate_every:
        raise UserError("setting validate_every: a search needs validations, expected a number from 1")
    chosen = request.searched(request.settings)
    strategy_named(request.strategy, chosen).close()
    if chosen.asynchronous:
        asynchronous_strategy(chosen).close()
