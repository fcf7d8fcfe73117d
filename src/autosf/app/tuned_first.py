"""A search without settings tunes them first; what was asked is kept meanwhile, so that a kill loses little."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from autosf.algebra.zoo import named
from autosf.app.graphs import graph_of
from autosf.app.request import Request
from autosf.app.run_results import is_run
from autosf.app.training import threads_for
from autosf.app.tuning import TuningJob, run_tuning
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError, shown
from autosf.runs.ranges import tuning_ranges
from autosf.whole import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.tuning import Progress

TUNED_WITH = "simple"  # as in the paper's Sec. V-A2
TUNING_TRIALS = 12  # without a budget
REQUEST = "search.json"


def tuning_folder(folder: Path) -> Path:
    """Where a run's tuning is: beside it, as the run begins with what the tuning has found."""
    return folder.with_name(folder.name + ".tuning")


def tuned_settings(
    graph: KnowledgeGraph,
    request: Request,
    folder: Path,
    report: Callable[[Progress], None],
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

    def watch(progress: Progress) -> None:
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
