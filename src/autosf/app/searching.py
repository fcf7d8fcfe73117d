"""`autosf search` from graph to run folder: settings tuned if need be, the strategy served; then `final_model`.

Each step picks up what is there already, so that going on after any end is doing the steps again.
"""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from autosf.algebra.zoo import named
from autosf.app.cost import cost_with_threads
from autosf.app.final_model import has_model_of_winner
from autosf.app.graphs import graph_of
from autosf.app.live_file import LiveFile, both
from autosf.app.opening import trainings_within, with_opening
from autosf.app.request import refuse_unsearchable, staff
from autosf.app.run_results import outcome_of, playoff_size, search_settings, tuning_seconds
from autosf.app.search_sample import (
    searched_part,
    times_a_trial,
    told_draw,
    trial_settings,
)
from autosf.app.tuned_first import TUNED_WITH, forget_request, refuse_taken, tuned_settings
from autosf.counting import counted
from autosf.errors import UserError, shown
from autosf.runs.labels import labelled_graph
from autosf.runs.ledger import held, opened_ledger
from autosf.runs.run import Plan, create_run, open_run, refuse_other_graph, refuse_used
from autosf.runs.serving import Outer, Service, serve, serve_asynchronously
from autosf.runs.task import SAVE_SECONDS
from autosf.runs.workers import Crew
from autosf.search.free import expected_finals
from autosf.search.record import OUT_OF_TIME
from autosf.search.strategies import asynchronous_strategy, strategy_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from autosf.app.request import Request
    from autosf.app.run_results import Outcome
    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.cluster import Site
    from autosf.runs.run import Run
    from autosf.runs.tuning import Progress as TuningProgress
    from autosf.runs.workers import Progress
    from autosf.search.record import Record
    from autosf.search.settings import SearchSettings

VALIDATIONS = 4  # at least, of a full trial: short trainings end on them
SEND_SECONDS = 60.0  # between two checkpoints that a trial on a cluster sends: all arrive at one driver


def often_validated(settings: TrainingSettings) -> TrainingSettings:
    """The settings with enough validations for a strategy that compares short trainings."""
    most = max(1, settings.epochs // VALIDATIONS)
    return replace(settings, validate_every=min(settings.validate_every, most))


def begun(
    graph: KnowledgeGraph,
    request: Request,
    folder: Path,
    tuning: Callable[[TuningProgress], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
    workers: int | None = None,
    *,
    is_pending: bool = False,
) -> Run:
    """The new run, with settings that were tuned first where nobody gave any; on a sample where one is wanted.

    One `is_pending` that was ended while it tuned: its tuning goes on.
    """
    (refuse_used if is_pending else refuse_taken)(folder)
    refuse_unsearchable(graph, request)
    graph, sample = searched_part(graph, request.sample, request.sample_by, request.seed, say)
    settings, draw = with_draw(request, len(graph.entities), say)
    tuned = None
    if request.tuning_share:
        settings, tuned = tuned_settings(graph, settings, request, folder, tuning, say)
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
    run = create_run(folder, graph, plan)
    forget_request(folder)
    return run


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
) -> tuple[TrainingSettings, dict[str, int] | None]:
    """The request's settings so that steps draw, and what there is to tell of it; or as they are, and nothing."""
    if not 0 < request.draw < entities:
        return request.settings, None
    told = {"entities": request.draw, "of": entities}
    say(f"trials see {told_draw(told)}; the best are then trained with all (--draw 0 takes all at once)")
    return trial_settings(request.settings, request.draw), told


@contextmanager
def gone_without_cluster(run: Run, site: Site | None) -> Iterator[None]:
    """A new run for which no cluster has answered leaves nothing: the mended command finds its folder free."""
    try:
        yield
    except UserError:
        if site is not None:
            with opened_ledger(run.ledger, time.time) as ledger:
                is_empty = not ledger.records() and not ledger.attempts()
            if is_empty:
                shutil.rmtree(run.folder, ignore_errors=True)
        raise


def graph_again(run: Run, say: Callable[[str], None] = lambda _: None) -> KnowledgeGraph:
    """The run's graph from its source, if that is unchanged; if it is gone, as far as the run holds it.

    A source that is there and cannot be read is no reason to go on without the test triples.
    """
    try:
        graph = graph_of(run.plan.source) if run.plan.source else None
    except UserError as error:
        source = Path(run.plan.source)
        if source.is_file() or (source.is_dir() and any(source.iterdir())):
            raise UserError(
                f"{error}; it is the graph of {shown(run.folder)}: mend it, or move it away to go on without it"
            ) from None
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


def new_wish(run: Run, budget: float | None, trials: int | None) -> dict[str, float]:
    """What of this a run has not been asked for before: seconds over all sessions, and trials in all."""
    given = {"budget": budget, "trials": trials}
    return {
        name: value for name, value in given.items() if value is not None and value != run.plan.search[name]
    }


def done_trials(run: Run, records: Sequence[Record]) -> int:
    """How many there are of what `trials` counts: structures of `free`, trainings of the others."""
    is_free = run.plan.search["strategy"] == "free"
    return len({record.trial.structure for record in records}) if is_free else len(records)


def refuse_fewer(run: Run, trials: int | None) -> None:
    """Raise if a search is to have fewer trials than it has had."""
    if trials is None:
        return
    with opened_ledger(run.ledger, time.time) as ledger:
        done = done_trials(run, ledger.records())
    if trials < done:
        raise UserError(
            f"trials: {done} are done already, found {trials}; give more, or none to go on as before"
        )


def is_done(run: Run, outcome: Outcome, wish: Mapping[str, float]) -> bool:
    """Whether the strategy has nothing left to ask for, with this wish either."""
    longer = wish.get("trials", 0) > done_trials(run, outcome.records)
    wider = outcome.ending == OUT_OF_TIME and wish.get("budget", 0.0) > outcome.seconds
    return outcome.state == "ended" and not longer and not wider


def asked(run: Run, outcome: Outcome, wish: Mapping[str, float]) -> Run:
    """The run with this wish in its plan. It is in the ledger by then, so that no end of the work loses it.

    A search that has ended is open again first: a kill in between leaves one that comes to its end once more.
    """
    if not wish:
        return run
    with held(run.lock), opened_ledger(run.ledger, time.time, writes=True) as ledger:
        if outcome.state == "ended" and not is_done(run, outcome, wish):
            ledger.add_event("stopped", "more is asked for")
        ledger.ask(wish)
    return open_run(run.folder)


def reopened(
    folder: Path,
    budget: float | None,
    trials: int | None,
    *,
    retry_failed: bool,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Run, Outcome, KnowledgeGraph | None]:
    """The run with this wish, what it has come to, and its graph: none where nothing is left to do."""
    run = open_run(folder)
    refuse_fewer(run, trials)
    if retry_failed and (again := forget_failures(run)):
        say(f"{counted(again, 'failed trial')} to be tried again")
    outcome, wish = outcome_of(run), new_wish(run, budget, trials)
    if is_done(run, outcome, wish) and has_model_of_winner(run, outcome):
        return run, outcome, None
    graph = graph_again(run, say)
    return asked(run, outcome, wish), outcome, graph


def served(
    run: Run,
    workers: int | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    finished: Callable[[Record], None] = lambda _: None,
    site: Site | None = None,
) -> None:
    """Bring the strategy to its end; all it asked for is in the ledger then."""
    settings = search_settings(run)
    service = Service(
        Crew(workers=staff(run.plan.threads, workers)),
        keep=settings.strategy == "free",
        budget=seconds_to_serve(run),
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


def seconds_to_serve(run: Run) -> float:
    """What the budget leaves after tuning."""
    whole = run.plan.search["budget"]
    return float("inf") if whole is None else whole - tuning_seconds(run)
