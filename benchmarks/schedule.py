"""How long a search takes with 1 to 1,000 workers, in rounds and without: simulated, with the real strategies.

    python -m benchmarks.schedule [--graph FB15k-237 | --run RUN] [--structures 64] [--failures 0.02] [--graphs 3]

A trial's time is one that was measured: seconds per epoch of a training in docs/results/records/training.jsonl,
or of a trial in a run's ledger. Its MRR is made up: a smooth function of the structure's features, something of
its own, a learning curve and the luck of the seed. Nodes fail at random; their trials go on elsewhere from
the last state they have sent. The same seed prints the same table.
"""

from __future__ import annotations

import heapq
import json
import time
from collections import deque
from dataclasses import astuple, dataclass, replace
from functools import cache
from math import exp, inf, tanh
from pathlib import Path
from random import Random
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import click
from threadpoolctl import threadpool_limits

from autosf.algebra.features import invariants
from autosf.app.searching import SEND_SECONDS
from autosf.runs.ledger import opened_ledger
from autosf.runs.run import open_run
from autosf.search.asynchronous import Arrivals, asynchronous_free, search_asynchronously
from autosf.search.free import free
from autosf.search.record import Record, Trial, search
from autosf.search.settings import SearchSettings
from autosf.search.typical import known_good
from autosf.search.verdict import verdict
from benchmarks.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from autosf.algebra.structure import Structure
    from autosf.search.record import Round

MEASURED = Path(__file__).parents[1] / "docs" / "results" / "records" / "training.jsonl"
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
AWAY_SECONDS = 300.0  # until a lost node is replaced
VALIDATE_EVERY = 5
POOL = 32  # candidates that a proposal is drawn from: fewer than in a search, to be done in seconds


@dataclass(frozen=True, slots=True)
class World:
    """Times that were measured, and how often a node fails; `seed` decides all that is random."""

    epochs: int  # of a full training
    seconds_per_epoch: tuple[float, ...]
    failures: float = 0.0  # of a node, per hour
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A simulated search: its seconds, the share of them in which workers trained, its size, the winner's MRR."""

    seconds: float
    busy: float
    trials: float
    winner: float


@dataclass(slots=True, eq=False)
class Job:
    """A trial on a worker, or waiting for one."""

    trial: Trial
    left: float  # seconds of training
    spent: float = 0.0  # of them, on the worker it is on


class Simulation:
    """So many workers with a clock of their own; nodes have one worker each."""

    def __init__(self, workers: int, world: World) -> None:
        self.now, self.trained = 0.0, 0.0
        self._world, self._workers, self._free = world, workers, workers
        self._rng = Random(f"{world.seed} {workers}")
        self._waiting: deque[Job] = deque()
        self._events: list[tuple[float, int, str, Job | None]] = []
        self._count = self._under_way = 0
        self._reached: dict[tuple[Structure, int], int] = {}

    @property
    def open_trials(self) -> int:
        return len(self._waiting) + self._under_way

    @property
    def room(self) -> int:
        return max(0, self._free - len(self._waiting))

    def begin(self, trials: Round) -> None:
        for trial in trials:
            earlier = self._reached.get((trial.structure, trial.seed), 0)
            pace = Random(f"{self._world.seed} {trial}").choice(self._world.seconds_per_epoch)
            self._waiting.append(Job(trial, max(0, trial.epochs - earlier) * pace))
        self._hand_out()

    def next_record(self) -> Record | None:
        """Let time pass until something happens; the record if a trial has ended."""
        self.now, _, what, job = heapq.heappop(self._events)
        if what == "back":
            self._free += 1
        elif job is not None:
            self._under_way -= 1
            if what == "ended":
                self._free += 1
                self.trained += job.left
            else:
                self._lose(job)
        self._hand_out()
        if what != "ended" or job is None:
            return None
        self._reached[job.trial.structure, job.trial.seed] = job.trial.epochs
        return record_of(job.trial, self._world.seed)

    def _hand_out(self) -> None:
        while self._free and self._waiting:
            job = self._waiting.popleft()
            self._free -= 1
            self._under_way += 1
            rate = self._world.failures / 3600
            failure = self._rng.expovariate(rate) if rate else inf
            job.spent = min(failure, job.left)
            self._at(self.now + job.spent, "lost" if failure < job.left else "ended", job)

    def _lose(self, job: Job) -> None:
        """The trial goes on from its last state wherever there is room; the node comes back later."""
        kept = max(0.0, job.spent - self._rng.uniform(0, SEND_SECONDS))
        self.trained += kept
        self._waiting.appendleft(Job(job.trial, job.left - kept))
        self._at(self.now + AWAY_SECONDS, "back", None)

    def _at(self, when: float, what: str, job: Job | None) -> None:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, what, job))


def in_rounds(rounds: Sequence[Round], workers: int, world: World) -> Simulation:
    """The schedule of rounds, each of which waits for its last trial. What they ask for depends on no worker."""
    simulation = Simulation(workers, world)
    for trials in rounds:
        simulation.begin(trials)
        while simulation.open_trials:
            simulation.next_record()
    return simulation


def rounds_of(settings: SearchSettings, seed: int) -> tuple[list[Round], list[Record]]:
    """All rounds of `free`, and their records."""
    rounds: list[Round] = []

    def evaluate(trials: Round) -> list[Record]:
        rounds.append(trials)
        return [record_of(trial, seed) for trial in trials]

    records, _ = search(free(settings), evaluate)
    return rounds, records


def without_rounds(settings: SearchSettings, workers: int, world: World) -> Outcome:
    """A search that proposes whenever a worker is free."""
    simulation = Simulation(workers, world)

    def exchange(trials: Round) -> Arrivals:
        simulation.begin(trials)
        news: list[Record] = []
        left = simulation.room
        while simulation.open_trials and not news and simulation.room <= left:
            record = simulation.next_record()
            news += [record] if record else []
        return Arrivals(news, simulation.room)

    records, _ = search_asynchronously(asynchronous_free(settings), exchange)
    return outcome_of(simulation, workers, records, settings, world)


def outcome_of(
    simulation: Simulation, workers: int, records: Sequence[Record], settings: SearchSettings, world: World
) -> Outcome:
    decided = verdict(records, settings)
    assert decided is not None, "every search has its finals"
    winner = true_mrr(decided.winner.structure, world.seed)
    return Outcome(simulation.now, simulation.trained / (workers * simulation.now), len(records), winner)


@cache
def scales() -> tuple[tuple[float, float], ...]:
    """Mean and spread of each feature over the known good structures."""
    columns = zip(*(invariants(structure) for structure in known_good()), strict=True)
    return tuple((fmean(column), stdev(column) or 1.0) for column in columns)


@cache
def true_mrr(structure: Structure, seed: int) -> float:
    """What a structure is worth on a made-up graph: mostly in its features, partly its own."""
    rng = Random(f"graph {seed}")
    standard = [
        (value - mean) / spread for value, (mean, spread) in zip(invariants(structure), scales(), strict=True)
    ]
    smooth = fmean(rng.gauss(0, 1) * value for value in standard)
    return 0.3 + 0.04 * tanh(4 * smooth) + 0.01 * Random(f"{seed} {structure}").random()


def record_of(trial: Trial, seed: int) -> Record:
    """A record with a learning curve towards the structure's MRR, some faster than others, and a seed's luck."""
    rng = Random(f"{seed} {trial.structure} {trial.seed}")
    luck = rng.gauss(0, 0.003)
    slowness = 4 + 4 * Random(f"pace {trial.structure}").random()
    curve = tuple(
        (epoch, (true_mrr(trial.structure, seed) + luck) * (1 - exp(-epoch / slowness)))
        for epoch in range(VALIDATE_EVERY, trial.epochs + 1, VALIDATE_EVERY)
    )
    return Record(trial, max(mrr for _, mrr in curve), trial.epochs, curve)


def measured_world(graph: str, failures: float, seed: int) -> World:
    """The times of the graph's trainings on record."""
    rows = [json.loads(line) for line in MEASURED.read_text(encoding="utf-8").splitlines()]
    chosen = [row for row in rows if row["graph"] == graph]
    if not chosen:
        raise click.UsageError(
            f"no training of {graph} on record; there are {sorted({r['graph'] for r in rows})}"
        )
    paces = tuple(row["train_seconds"] / row["epochs"] for row in chosen)
    return World(rounded(chosen[0]["settings"]["epochs"]), paces, failures, seed)


def world_of_run(folder: Path, failures: float, seed: int) -> World:
    """The times of a run's trials."""
    run = open_run(folder)
    with opened_ledger(run.ledger, time.time) as ledger:
        records = [record for record in ledger.records() if record.seconds and record.epochs]
    paces = tuple(record.seconds / record.trial.epochs for record in records)
    return World(rounded(run.plan.settings.epochs), paces, failures, seed)


def rounded(epochs: int) -> int:
    """Made-up curves are validated every so many epochs."""
    return max(VALIDATE_EVERY, epochs // VALIDATE_EVERY * VALIDATE_EVERY)


def compared(structures: int, world: World, graphs: int = 1) -> Iterator[tuple[int, Outcome, Outcome]]:
    """For each number of workers: a search in rounds, and one without, as means over so many made-up graphs."""
    worlds = [replace(world, seed=world.seed + number) for number in range(graphs)]
    wishes = [settings_of(structures, each) for each in worlds]
    with threadpool_limits(1):  # as a search thinks
        asked = [rounds_of(settings, each.seed) for settings, each in zip(wishes, worlds, strict=True)]
        for workers in WORKERS:
            pairs = list(zip(wishes, worlds, strict=True))
            in_step = [
                outcome_of(in_rounds(rounds, workers, each), workers, records, settings, each)
                for (rounds, records), (settings, each) in zip(asked, pairs, strict=True)
            ]
            running = [without_rounds(settings, workers, each) for settings, each in pairs]
            yield workers, mean(in_step), mean(running)


def settings_of(structures: int, world: World) -> SearchSettings:
    return SearchSettings(
        epochs=world.epochs, seed=world.seed, trials=structures, candidates=POOL, grain=VALIDATE_EVERY
    )


def mean(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(*(fmean(values) for values in zip(*map(astuple, outcomes), strict=True)))


def run() -> list[Measured]:
    """What `make bench` shows."""
    lines, gain = [], 0.0
    for workers, in_step, running in compared(64, measured_world("FB15k-237", 0.02, 0)):
        without = f"{running.seconds / 3600:.2f} h, {running.busy:.0%}"
        busy = f"workers busy {in_step.busy:.0%}; without rounds {without}"
        lines.append(
            Measured(f"FB15k-237, 64 structures, {workers} workers", in_step.seconds / 3600, "h", None, busy)
        )
        gain = in_step.seconds / running.seconds if workers == 64 else gain
    return [*lines, Measured("64 workers without rounds: times as fast as in rounds", gain, "x", 1.25)]


@click.command()
@click.option(
    "--graph", default="FB15k-237", show_default=True, help="Whose trainings on record give the times."
)
@click.option("--run", "folder", type=click.Path(path_type=Path), help="A run that gives the times instead.")
@click.option("--structures", default=64, show_default=True)
@click.option("--failures", default=0.02, show_default=True, help="Of a node, per hour.")
@click.option("--graphs", default=1, show_default=True, help="Made-up graphs to take means over.")
@click.option("--seed", default=0, show_default=True)
def main(graph: str, folder: Path | None, structures: int, failures: float, graphs: int, seed: int) -> None:
    """Print the table of a search."""
    world = world_of_run(folder, failures, seed) if folder else measured_world(graph, failures, seed)
    print(
        "| workers | in rounds: hours | times as fast | busy | MRR | without: hours | times as fast | busy | MRR |"
    )
    print("| " + " | ".join(["--:"] * 9) + " |")
    alone = 0.0
    for workers, *both in compared(structures, world, graphs):
        alone = alone or both[0].seconds
        cells = [
            f"{o.seconds / 3600:.2f} | {alone / o.seconds:.1f} | {o.busy:.0%} | {o.winner:.4f}" for o in both
        ]
        print(f"| {workers} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
