"""A search without settings tunes them first; what was asked is kept meanwhile, so that a kill loses little."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
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
from autosf.runs.run import refuse_used
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
    place = folder.resolve() if folder.name in ("", "..") else folder  # such a name says nothing of the place
    return place.parent / f"{place.name}.tuning"


@dataclass(frozen=True, slots=True)
class Pending:
    """A search that has not begun, as its settings are tuned: what was asked for, and how long it has taken."""

    request: Request
    seconds: float


def tuned_settings(
    graph: KnowledgeGraph,
    settings: TrainingSettings,
    request: Request,
    folder: Path,
    report: Callable[[Progress], None],
    say: Callable[[str], None],
) -> tuple[TrainingSettings, dict[str, Any]]:
    """The settings that suit SimplE best, from as much of the tuning as was not done before; what it took.

    It begins with the settings of the trials, which may draw; the request is kept as it was asked for.
    """
    place, began, before = tuning_folder(folder), time.monotonic(), pending(folder)
    earlier = before.seconds if before else 0.0
    budget = None if request.budget is None else request.tuning_share * request.budget
    length = f"{budget:.0f} s" if budget is not None else f"{TUNING_TRIALS} trainings"
    say(f"no settings given and no preset for {graph.name}: tuning them first, for {length}")

    def keep() -> None:
        keep_request(place, request, earlier + time.monotonic() - began)

    def watch(progress: Progress) -> None:
        if progress.settings is None:  # the study is open and ours, or a trial has ended
            keep()
        report(progress)

    job = TuningJob(
        graph=graph,
        structure=named(TUNED_WITH).structure,
        settings=settings,
        ranges=tuning_ranges(settings, {}),
        trials=TUNING_TRIALS if budget is None else None,
        budget=None if budget is None else budget - earlier,
        seed=request.seed,
        device="cpu",
        out=place,
    )
    with threads_for(graph, settings):
        result = run_tuning(job, True, watch)
    keep()
    seconds = earlier + time.monotonic() - began
    found = {"trials": result["trials"], "seconds": seconds, "valid_mrr": result["best"]["valid_mrr"]}
    return TrainingSettings().changed(result["settings"]), found


def keep_request(place: Path, request: Request, seconds: float) -> None:
    """Write what was asked for, and how long it was tuned for: a kill before the run begins loses neither."""
    place.mkdir(parents=True, exist_ok=True)
    write_whole(place / REQUEST, json.dumps({"request": asdict(request), "seconds": seconds}))


def pending(folder: Path) -> Pending | None:
    """What is kept of a search that was ended while it tuned; None if there is none, or if its run has begun."""
    path = tuning_folder(folder) / REQUEST
    if is_run(folder) or not path.is_file():
        return None
    try:
        found = json.loads(path.read_bytes())
        settings = TrainingSettings().changed(found["request"]["settings"])
        return Pending(Request(**{**found["request"], "settings": settings}), float(found["seconds"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, UserError):
        raise UserError(
            f"{shown(path)}: expected a search's request, as this version keeps it, found another file;"
            f" delete {shown(path.parent)} and search anew"
        ) from None


def forget_request(folder: Path) -> None:
    """The run has begun, and holds all that was asked for."""
    (tuning_folder(folder) / REQUEST).unlink(missing_ok=True)


def refuse_taken(folder: Path) -> None:
    """Raise unless the folder is free for a new search."""
    refuse_used(folder)
    if pending(folder):
        raise UserError(
            f"{shown(folder)}: a search that was asked for before is still tuning its settings;"
            f" `autosf resume {shown(folder)}` goes on, or delete {shown(tuning_folder(folder))} to begin anew"
        )


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
    if pending(folder):
        raise UserError(
            f"{shown(folder)}: the search has not begun, its settings are being tuned;"
            f" if that was interrupted, `autosf resume {shown(folder)}` goes on"
        )
