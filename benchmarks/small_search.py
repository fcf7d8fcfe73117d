"""A search of a few seconds that can be killed at any moment: `python -m benchmarks.small_search RUN workers=2`.

With `cluster=ADDRESS` a Ray cluster runs its trials.
Its strategy halves: all structures at few epochs, the better half at twice as many, and so on, so that trials go
on from the checkpoints of others. Run again on the same folder it resumes. The torture and the tests kill it.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from autosf.algebra.zoo import named
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.graph.synthetic import Planting, planted_graph
from autosf.runs.cluster import Site
from autosf.runs.run import Plan, Run, create_run, open_run
from autosf.runs.serving import Outer, Service, serve
from autosf.runs.workers import Crew
from autosf.search.record import Trial

if TYPE_CHECKING:
    from autosf.search.record import Record, Strategy

STRUCTURES = (
    "distmult",
    "complex",
    "analogy",
    "simple",
    "quate",
    "autosf-wn18",
    "autosf-fb15k",
    "autosf-wn18rr",
)
SETTINGS = TrainingSettings(
    dimension=8, batch_size=64, start_scale=0.1, validate_every=2, patience=10, learning_rate=0.3
)
FIRST_EPOCHS, ROUNDS = 4, 3


def halving(seeds: int, epochs: int = FIRST_EPOCHS) -> Strategy:
    """Rounds of trials, each with half of the structures and twice the epochs."""
    structures = [named(name).structure for name in STRUCTURES]
    for number in range(ROUNDS):
        trials = [Trial(s, epochs << number, seed) for s in structures for seed in range(seeds)]
        records = yield trials
        totals = {s: sum(r.valid_mrr for r in records if r.trial.structure == s) for s in structures}
        structures = sorted(structures, key=lambda s: (-totals[s], s))[: len(structures) // 2]
    return "all rounds"


def small_run(folder: Path, settings: TrainingSettings = SETTINGS) -> Run:
    """A new run on a planted graph of some hundred triples."""
    size = Planting(entities=60, relations=5, triples_per_relation=120)
    graph = planted_graph(named("simple").structure, size, seed=1)
    return create_run(folder, graph, Plan(settings, {"strategy": "halving"}))


def run_search(
    folder: Path,
    *,
    workers: int,
    seeds: int = 2,
    epochs: int = FIRST_EPOCHS,
    site: Site | None = None,
    **crew: float,
) -> tuple[list[Record], str]:
    """Begin the search in the folder, or go on with it; checkpoints come after every epoch."""
    run = open_run(folder) if (folder / "run.json").exists() else small_run(folder)
    staff = replace(Crew(workers=workers), **crew)  # type: ignore[arg-type]
    service = Service(staff, keep=True, save_seconds=0.0, site=site)
    return serve(run, halving(seeds, epochs), service, Outer(time.monotonic, time.time))


def workers_of(folder: Path) -> list[int]:
    """The live worker processes of a run, whoever started them."""
    marker = f"{folder}/graph".encode()
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if (command := command_of(path)) and b"autosf.runs.worker" in command and marker in command
    ]


def command_of(path: Path) -> bytes:
    """A process's command line; empty if it is gone or dead."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    numbers = dict(text.split("=") for text in sys.argv[2:])
    try:
        run_search(
            Path(sys.argv[1]),
            workers=int(numbers.pop("workers", 2)),
            seeds=int(numbers.pop("seeds", 2)),
            epochs=int(numbers.pop("epochs", FIRST_EPOCHS)),
            site=Site(numbers.pop("cluster")) if "cluster" in numbers else None,
            **{name: float(value) for name, value in numbers.items()},
        )
    except UserError as error:
        sys.exit(f"error: {error}")
