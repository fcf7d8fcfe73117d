"""What a search costs beside its training, and what a second worker is worth."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from autosf.algebra.zoo import ZOO
from autosf.embedding.presets import preset
from autosf.graph.reading import read_graph
from autosf.runs.run import Plan, create_run
from autosf.runs.serving import Outer, Service, serve
from autosf.runs.workers import Crew
from autosf.search.record import Trial
from autosf.search.settings import SearchSettings
from autosf.search.strategies import strategy_named
from benchmarks.measured import Measured
from benchmarks.training import data_folder

if TYPE_CHECKING:
    from autosf.search.record import Record, Strategy

OVERHEAD, EFFICIENCY = 3, 1.7
REPEATS = 3


def timed(
    graph_name: str, strategy: Strategy, settings: SearchSettings, workers: int, **changes: object
) -> tuple[float, list[Record]]:
    """Seconds from the first trial's start to the end, and the records."""
    graph = read_graph(data_folder() / graph_name)
    training = preset(graph.name).changed({**changes, "patience": 0})
    heard: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        run = create_run(Path(folder) / "run", graph, Plan(training, asdict(settings)))
        outer = Outer(
            time.monotonic,
            time.time,
            progress=lambda _: heard.append(time.monotonic()),
            finished=lambda _: heard.append(time.monotonic()),
        )
        records, _ = serve(run, strategy, Service(Crew(workers), keep=True), outer)
    first = next(record for record in records if record.seconds)
    return heard[-1] - heard[0] + first.seconds / max(first.epochs, 1), records


def in_one_round(trials: list[Trial]) -> Strategy:
    yield trials
    return "all trials"


def run() -> list[Measured]:
    settings = SearchSettings(epochs=40, trials=48, candidates=128)
    spent, records = timed("UMLS", strategy_named("free", settings), settings, 1)
    training = sum(record.seconds for record in records)
    structures = [known.structure for known in ZOO if known.structure.parts == 4]
    trials = [Trial(structure, 10, 0) for structure in structures[:8]]
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(REPEATS):  # in turn, so that a machine that is busy for a while disturbs both
        for workers, spans in times.items():
            spans.append(timed("CoDEx-S", in_one_round(trials), settings, workers)[0])
    one, two = map(min, times.values())
    return [
        Measured(
            "UMLS, free, 1 worker: what is neither training nor ranking",
            100 * (1 - training / spent),
            "%",
            OVERHEAD,
            f"of {spent:.0f} s",
        ),
        Measured(
            "CoDEx-S: two workers beside one, a thread each",
            one / two,
            "x",
            EFFICIENCY,
            f"{one:.0f} s and {two:.0f} s for eight trials, the best of {REPEATS} each",
        ),
    ]
