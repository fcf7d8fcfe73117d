"""`autosf tune` from graph to run folder: ranges read, the study continued, the best settings kept as TOML."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autosf.app.wanted_settings import typed
from autosf.errors import UserError, quoted
from autosf.runs.ranges import Between, OneOf
from autosf.runs.tuning import tune
from autosf.whole import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from autosf.algebra.structure import Structure
    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.ranges import Range
    from autosf.runs.tuning import Progress

STUDY, SETTINGS = "study.sqlite3", "settings.toml"


@dataclass(frozen=True, slots=True)
class TuningJob:
    """What is to be tuned, by how much, and where it goes."""

    graph: KnowledgeGraph
    structure: Structure
    settings: TrainingSettings
    ranges: Mapping[str, Range]
    trials: int | None
    budget: float | None  # seconds
    seed: int
    device: str
    out: Path


def run_tuning(
    job: TuningJob,
    resume: bool,
    report: Callable[[Progress], None],
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Tune and tell the result; the folder holds the study and the best settings so far, also when cut.

    That there is nothing to go on from is told to `note`.
    """
    started, study = time.monotonic(), job.out / STUDY
    if study.exists() and not resume:
        raise UserError(
            f"{quoted(job.out)}: a tuning is there; add --resume to go on, or choose another --out"
        )
    if resume and not study.exists():
        note(f"{quoted(job.out)}: there is no tuning to go on from; it starts anew")
    written: list[TrainingSettings] = []

    def watch(progress: Progress) -> None:
        report(progress)
        if progress.best and progress.best.settings not in written[-1:]:
            written.append(progress.best.settings)
            write_settings(job.out / SETTINGS, progress.best.settings)

    tuned = tune(
        job.graph,
        job.structure,
        job.settings,
        seed=job.seed,
        clock=time.perf_counter,
        trials=job.trials,
        ranges=job.ranges,
        study_file=study,
        out_of_time=lambda: job.budget is not None and time.monotonic() - started > job.budget,
        watch=watch,
        device=job.device,
    )
    write_settings(job.out / SETTINGS, tuned.settings)
    best = tuned.best
    return {
        "best": {
            "valid_mrr": best.valid_mrr,
            "trial": best.trial,
            "epochs": best.epochs,
            "best_epoch": best.best_epoch,
        },
        "settings": best.settings.as_dict(),
        "trials": tuned.trials,
        "stopped": tuned.stopped,
        "ending": tuned.ending,
        "seconds": time.monotonic() - started,
        "path": str(job.out),
    }


def write_settings(path: Path, settings: TrainingSettings) -> None:
    """The settings as TOML, whole or not at all: numbers, texts and truths are written as in JSON."""
    lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.as_dict().items()]
    write_whole(path, "".join(lines))


def parsed_range(text: str) -> tuple[str, Range]:
    """A range given as NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=a,b,c."""
    name, _, wanted = (part.strip() for part in text.partition("="))
    ends = wanted.split(":")
    if len(ends) in (2, 3) and ends[2:] in ([], ["log"]):
        low, high = (typed(end) for end in ends[:2])
        if all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in (low, high)):
            return name, Between(low, high, log=len(ends) == 3)
    elif name and wanted and len(ends) == 1:
        return name, OneOf(tuple(typed(value) for value in wanted.split(",")))
    raise UserError(f"--range: expected name=low:high, name=low:high:log or name=a,b,c, found {quoted(text)}")
