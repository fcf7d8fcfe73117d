"""`autosf search` from graph to run folder: settings tuned if need be, the strategy served; then `final_model`.

Each step picks up what is there already, so that going on after any end is doing the steps again.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.algebra.structure import PARTS
from autosf.algebra.zoo import named
from autosf.app.cost import cost_with_threads
from autosf.app.graphs import graph_of, making_valid
from autosf.app.live_file import LiveFile, both
from autosf.app.opening import trainings_within, with_opening
from autosf.app.run_results import is_run, playoff_size, search_settings, tuning_seconds
from autosf.app.search_sample import (
    refuse_draw,
    searched_entities,
    searched_part,
    times_a_trial,
    told_draw,
    trial_settings,
)
from autosf.app.training import threads_for
from autosf.app.tuning import TuningJob, run_tuning
from autosf.app.whole_file import write_whole
from autosf.embedding.presets import has_preset
from autosf.embedding.settings import TrainingSettings, refuse_odd_dimension
from autosf.errors import UserError
from autosf.graph.text_lines import shown
from autosf.runs.labels import labelled_graph
from autosf.runs.ledger import held, opened_ledger
from autosf.runs.ranges import tuning_ranges
from autosf.runs.run import Plan, create_run, refuse_other_graph, refuse_used
from autosf.runs.serving import Outer, Service, serve, serve_asynchronously
from autosf.runs.task import SAVE_SECONDS
from autosf.runs.workers import Crew
from autosf.search.free import expected_finals
from autosf.search.record import OUT_OF_TIME
from autosf.search.settings import SearchSettings
from autosf.search.strategies import asynchronous_strategy, strategy_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.app.run_results import Outcome
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.cluster import Site
    from autosf.runs.run import Run
    from autosf.runs.tuning import Progress as TuningProgress
    from autosf.runs.workers import Progress
    from autosf.search.record import Record

STRUCTURES = 64  # of `free`, where neither a number nor a budget is given
TUNED_WITH = "simple"  # as in the paper's Sec. V-A2
TUNING_TRIALS = 12  # without a budget
TUNING_SHARE = 0.2  # of the budget
VALIDATIONS = 4  # at least, of a full trial: short trainings end on them
LARGE = 100_000  # entities: from here on the embeddings of several workers at once may not fit
SEND_SECONDS = 60.0  # between two checkpoints that a trial on a cluster sends: all arrive at one driver
REQUEST = "search.json"
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
    blocks: int = 6
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

    def searched(self, settings: TrainingSettings) -> SearchSettings:
        """What the strategy is told."""
        return SearchSettings(
            strategy=self.strategy,
            epochs=settings.epochs,
            seed=self.seed,
            trials=self.trials,
            blocks=self.blocks,
            parents=self.parents,
            candidates=self.candidates or (POOL if self.strategy == "free" else PAPER.candidates),
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


def is_to_be_tuned(graph: KnowledgeGraph, given: bool) -> bool:
    """Whether nobody has said yet how to train on the graph."""
    return not given and not has_preset(graph.name)


def named_again(source: str) -> str:
    """A source that can be read from any folder: a path becomes absolute, a name stays."""
    return str(Path(source).resolve()) if Path(source).exists() else source


def often_validated(settings: TrainingSettings) -> TrainingSettings:
    """The settings with enough validations for a strategy that compares short trainings."""
    most = max(1, settings.epochs // VALIDATIONS)
    return replace(settings, validate_every=min(settings.validate_every, most))


def refuse_unsearchable(graph: KnowledgeGraph, request: Request) -> None:
    """Tell every mistake before anything is trained or written."""
    if not len(graph.valid):
        raise UserError(f"{graph.name}: a search needs triples in valid, found none; {making_valid(graph)}")
    refuse_draw(request.draw, request.settings)
    if request.playoff < 1:
        raise UserError(f"--playoff: expected a number from 1, found {request.playoff}")
    if request.playoff_seeds < 1:
        raise UserError(f"--playoff-seeds: expected a number from 1, found {request.playoff_seeds}")
    if request.threads < 1:
        raise UserError(f"--threads: expected a number from 1, found {request.threads}")
    for dimension in (request.settings.dimension, request.final_dimension or PARTS):
        refuse_odd_dimension(dimension, PARTS)
    if not request.settings.validate_every:
        raise UserError("setting validate_every: a search needs validations, expected a number from 1")
    chosen = request.searched(request.settings)
    strategy_named(request.strategy, chosen).close()
    if chosen.asynchronous:
        asynchronous_strategy(chosen).close()


def begun(
    graph: KnowledgeGraph,
    request: Request,
    folder: Path,
    tuning: Callable[[TuningProgress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    workers: int | None = None,
) -> Run:
    """The new run, with settings that were tuned first where nobody gave any; on a sample where one is wanted."""
    refuse_used(folder)
    refuse_unsearchable(graph, request)
    graph, sample = searched_part(graph, request.sample, request.sample_by, request.seed, say)
    request, draw = with_draw(request, len(graph.entities), say)
    settings, tuned = request.settings, None
    if request.tuning_share:
        settings, tuned = tuned_settings(graph, request, folder, tuning, say)
    settings = often_validated(settings)
    beside = {"budget": request.budget, "final_dimension": request.final_dimension, "tuning": tuned}
    beside |= {"sample": sample, "draw": draw}
    if sample or draw:
        beside |= {"playoff": request.playoff, "playoff_seeds": request.playoff_seeds}
    plan = Plan(
        settings=settings,
        search=asdict(told_strategy(graph, request, settings, workers)) | beside,
        seed=request.seed,
        threads=request.threads,
        hide_test=request.hide_test,
        source=request.source,
        command=request.command,
    )
    return create_run(folder, graph, plan)


def told_strategy(
    graph: KnowledgeGraph, request: Request, settings: TrainingSettings, workers: int | None
) -> SearchSettings:
    """What the strategy is told; where there is a budget, a full training is timed to see what it allows."""
    search = request.searched(settings)
    if search.strategy != "free" or request.budget is None:
        return search
    cost = cost_with_threads(graph, named(TUNED_WITH).structure, settings, request.threads)
    if cost is None:
        return search
    return with_opening(
        search, trainings_within(request.budget, cost.training(settings), staff(request.threads, workers))
    )


def with_draw(
    request: Request, entities: int, say: Callable[[str], None]
) -> tuple[Request, dict[str, int] | None]:
    """The request with settings whose steps draw, and what there is to tell of it; or as it is, and nothing."""
    if not 0 < request.draw < entities:
        return request, None
    told = {"entities": request.draw, "of": entities}
    say(f"trials see {told_draw(told)}; the best are then trained with all (--draw 0 takes all at once)")
    return replace(request, settings=trial_settings(request.settings, request.draw)), told


def tuning_folder(folder: Path) -> Path:
    """Where a run's tuning is: beside it, as the run begins with what the tuning has found."""
    return folder.with_name(folder.name + ".tuning")


def tuned_settings(
    graph: KnowledgeGraph,
    request: Request,
    folder: Path,
    report: Callable[[TuningProgress], None],
    say: Callable[[str], None],
) -> tuple[TrainingSettings, dict[str, Any]]:
    """The settings that suit SimplE best, from as much of the tuning as was not done before; what it took."""
    place, began = tuning_folder(folder), time.monotonic()
    earlier = float(pending(folder).get("seconds", 0.0))
    budget = None if request.budget is None else request.tuning_share * request.budget
    length = f"{budget:.0f} s" if budget is not None else f"{TUNING_TRIALS} trainings"
    say(f"no settings given and no preset for {graph.name}: tuning them first, for {length}")

    def keep() -> None:
        keep_request(place, request, earlier + time.monotonic() - began)

    def watch(progress: TuningProgress) -> None:
        if progress.settings is None:  # a trial has ended
            keep()
        report(progress)

    keep()
    job = TuningJob(
        graph=graph,
        structure=named(TUNED_WITH).structure,
        settings=request.settings,
        ranges=tuning_ranges(request.settings, {}),
        trials=TUNING_TRIALS if budget is None else None,
        budget=None if budget is None else budget - earlier,
        seed=request.seed,
        device="cpu",
        out=place,
    )
    with threads_for(graph, request.settings):
        result = run_tuning(job, True, watch)
    keep()
    seconds = earlier + time.monotonic() - began
    found = {"trials": result["trials"], "seconds": seconds, "valid_mrr": result["best"]["valid_mrr"]}
    return TrainingSettings().changed(result["settings"]), found


def keep_request(place: Path, request: Request, seconds: float) -> None:
    """Write what was asked for, and how long it was tuned for: a kill before the run begins loses neither."""
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / REQUEST, json.dumps({"request": asdict(request), "seconds": seconds}))


def pending(folder: Path) -> dict[str, Any]:
    """What is kept of a search that was ended while it tuned; nothing if there is none."""
    path = tuning_folder(folder) / REQUEST
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_bytes())
        return {"request": found["request"], "seconds": float(found["seconds"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{shown(path)}: expected a search's request, found {error}; delete it") from None


def pending_request(folder: Path) -> Request | None:
    """The search that was ended in its tuning."""
    kept = pending(folder).get("request")
    return Request(**{**kept, "settings": TrainingSettings(**kept["settings"])}) if kept else None


def requested_graph(folder: Path, request: Request) -> KnowledgeGraph:
    """The graph of a search that was ended in its tuning."""
    if not request.source:
        raise UserError(
            f"{shown(folder)}: the graph of this search was in memory and is gone;"
            " call autosf.search once more, with another folder"
        )
    return graph_of(request.source)


def refuse_tuning(folder: Path) -> None:
    """Raise if there is no run yet because its settings are still being tuned."""
    if not is_run(folder) and pending(folder):
        raise UserError(
            f"{shown(folder)}: the search has not begun, its settings are being tuned;"
            f" if that was interrupted, `autosf resume {shown(folder)}` goes on"
        )


def graph_again(run: Run, say: Callable[[str], None] = lambda _: None) -> KnowledgeGraph:
    """The run's graph from its source, if that is unchanged; if it is gone, as far as the run holds it."""
    try:
        graph = graph_of(run.plan.source) if run.plan.source else None
    except UserError as error:
        say(f"going on without the graph's source, so that the model will know no test triples ({error})")
        graph = None
    if graph is None and run.plan.search.get("sample"):
        say("no play-off, and a new model is trained on the sample: the whole graph is gone")
    if graph is None:
        return labelled_graph(run.graph_folder, run.labels)
    refuse_other_graph(run, graph)
    return graph


def forget_failures(run: Run) -> int:
    """Have trials that failed without diverging tried again by whoever goes on; how many there are."""
    with held(run.lock), opened_ledger(run.ledger, time.time, writes=True) as ledger:
        count = ledger.forget_failures()
        if count:
            ledger.add_event("stopped", f"failed trials are to be tried again: {count}")
    return count


def is_done(outcome: Outcome, budget: float | None) -> bool:
    """Whether the strategy has nothing left to ask for within this budget, given in seconds over all sessions."""
    wider = budget is not None and budget > outcome.seconds
    return outcome.state == "ended" and not (outcome.ending == OUT_OF_TIME and wider)


def served(
    run: Run,
    workers: int | None = None,
    budget: float | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    finished: Callable[[Record], None] = lambda _: None,
    site: Site | None = None,
) -> None:
    """Bring the strategy to its end; all it asked for is in the ledger then."""
    settings = search_settings(run)
    service = Service(
        Crew(workers=staff(run.plan.threads, workers)),
        keep=settings.strategy == "free",
        budget=seconds_to_serve(run, budget),
        last_trials=partial(expected_finals, settings=settings)
        if settings.strategy == "free"
        else lambda _: 0,
        last_rounds=last_rounds(run),
        save_seconds=SAVE_SECONDS if site is None else SEND_SECONDS,
        site=site,
    )
    with LiveFile(run) as live:
        ears = both(live.progress, progress), both(live.finished, finished)
        outer = Outer(time.monotonic, time.time, *ears)
        if settings.asynchronous:
            serve_asynchronously(run, asynchronous_strategy(settings), service, outer)
        else:
            serve(run, strategy_named(settings.strategy, settings), service, outer)


def last_rounds(run: Run) -> int:
    """How many trials' time the winner's training takes, with all of the play-off."""
    return ceil(playoff_size(run) * times_a_trial(run))


def seconds_to_serve(run: Run, budget: float | None) -> float:
    """What the budget, given now or when the run began, leaves after tuning."""
    whole = budget if budget is not None else run.plan.search["budget"]
    return float("inf") if whole is None else whole - tuning_seconds(run)
