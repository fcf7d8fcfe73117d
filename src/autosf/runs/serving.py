"""A strategy is served from the ledger first and by workers for the rest; every record is kept as it arrives.

Out of time, or at Ctrl-C, no further trial is begun and the running ones save their state after the epoch they
are in. A strategy hears of it in time for its last trials, and a second time when these have to end as well;
resuming loses nothing.
"""

from __future__ import annotations

import errno
import gc
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from threadpoolctl import threadpool_limits

from autosf.algebra.structure import from_json
from autosf.embedding.settings import stack_size
from autosf.errors import OF_DISKS, UserError, shown
from autosf.runs.cluster import Cluster, Site
from autosf.runs.history import added_epochs
from autosf.runs.ledger import Ledger, held, opened_ledger
from autosf.runs.run import discard_checkpoints, discard_halves
from autosf.runs.shared_graph import entity_count
from autosf.runs.task import SAVE_SECONDS, Key, Task, checkpoint_name, key_of
from autosf.runs.workers import Crew, Ears, Place, Progress, Workers
from autosf.search.asynchronous import Arrivals, Asynchronous, search_asynchronously
from autosf.search.record import OUT_OF_TIME, OutOfTime, Record, Round, Strategy, Trial, search

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from autosf.runs.run import Run

    Hands = Workers | Cluster  # both run tasks and tell of them in the same words

FEW_BESIDE = 3  # times as long a training takes with few beside it, as the last ones have, as with many
STORE_SECONDS = 10.0  # between two notes of the time spent: a kill forgets no more than this
THE_DISKS = OF_DISKS | {errno.EIO, errno.ENOENT}


@dataclass(frozen=True, slots=True)
class Service:
    """How a run is served. `budget` is in seconds over all sessions; `keep` where trials go on from others."""

    crew: Crew = field(default_factory=Crew)
    keep: bool = False
    budget: float = float("inf")
    # Full trainings that the strategy, by its records so far, would ask for if it heard that the time is over.
    last_trials: Callable[[Sequence[Record]], int] = lambda _: 0
    last_rounds: int = 0  # further ones that follow, one after the other
    save_seconds: float = SAVE_SECONDS  # between two checkpoints within a trial
    site: Site | None = None  # the cluster that runs the trials; without one this machine does


@dataclass(frozen=True, slots=True)
class Outer:
    """What the caller brings: a clock in seconds, the time of day, ears for epochs and for new records."""

    clock: Callable[[], float]
    now: Callable[[], float]
    progress: Callable[[Progress], None] = lambda _: None
    finished: Callable[[Record], None] = lambda _: None


def serve(run: Run, strategy: Strategy, service: Service, outer: Outer) -> tuple[list[Record], str]:
    """All records the strategy asked for, past ones included, and why it ended; out of time, those there are."""

    def searched(ledger: Ledger) -> tuple[list[Record], str]:
        with evaluator(run, ledger, service, outer) as evaluate:
            return search(strategy, evaluate)

    return session(run, outer, searched)


def serve_asynchronously(
    run: Run, strategy: Asynchronous, service: Service, outer: Outer
) -> tuple[list[Record], str]:
    """All records of the run, and why it ended."""

    def searched(ledger: Ledger) -> tuple[list[Record], str]:
        with exchanger(run, ledger, service, outer) as exchange:
            return search_asynchronously(strategy, exchange)

    return session(run, outer, searched)


def session(
    run: Run, outer: Outer, searched: Callable[[Ledger], tuple[list[Record], str]]
) -> tuple[list[Record], str]:
    """A search by the one driver of the run, with its beginning and its end in the ledger."""
    with told(run), held(run.lock), opened_ledger(run.ledger, outer.now, writes=True) as ledger:
        discard_halves(run)
        ledger.add_event("began", "")
        try:
            # The search thinks with one thread: the workers have the cores, and sums must not depend on them.
            with threadpool_limits(1), little_garbage():
                records, reason = searched(ledger)
        except KeyboardInterrupt:
            ledger.add_event("stopped", "interrupted")
            raise
        ledger.add_event("ended", reason)
        if reason != OUT_OF_TIME:  # else a larger budget may go on from them
            discard_checkpoints(run)
    return records, reason


@contextmanager
def little_garbage() -> Iterator[None]:
    """What is loaded by now is not looked through for garbage: that would take 0.1 s, and the workers wait."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def told(run: Run) -> Iterator[None]:
    """A full disk, or a folder that is gone or locked, as one line."""
    try:
        yield
    except OSError as error:
        if error.errno not in THE_DISKS:
            raise
        raise UserError(
            f"{shown(run.folder)}: cannot go on ({error.strerror or error}); all finished trials are safe:"
            " mend it, then resume the run"
        ) from error


@contextmanager
def evaluator(
    run: Run, ledger: Ledger, service: Service, outer: Outer
) -> Iterator[Callable[[Round], list[Record]]]:
    """The function that answers a round in its order, each class of trials trained at most once."""
    keys: dict[Task, Key] = {}
    with hands_at_work(run, ledger, service, outer, keys) as hands:

        def evaluate(trials: Round) -> list[Record]:
            wanted = [key_of(trial, run.graph, run.plan.settings) for trial in trials]
            past = ledger.known(wanted)
            missing = {task_of(run, key, service): key for key in wanted if key not in past}
            keys.update(missing)
            try:
                hands.add(list(missing))
                while hands.open_tasks():
                    hands.turn()
            except OutOfTime:
                hands.stop()
                raise OutOfTime(answered(ledger, wanted, trials)) from None
            return answered(ledger, wanted, trials)

        yield evaluate


@contextmanager
def exchanger(
    run: Run, ledger: Ledger, service: Service, outer: Outer
) -> Iterator[Callable[[Round], Arrivals]]:
    """The function that takes on trials and tells what has arrived since, the ledger's past at first.

    It waits until there is news: a record, or more room than the trials it was just given have left.
    """
    keys: dict[Task, Key] = {}
    news = ledger.records()

    def finished(record: Record) -> None:
        news.append(record)
        outer.finished(record)

    with hands_at_work(run, ledger, service, replace(outer, finished=finished), keys) as hands:

        def room() -> int:
            return max(0, hands.slots() - hands.open_tasks())

        def told() -> list[Record]:
            records = list(news)
            news.clear()
            return records

        def exchange(trials: Round) -> Arrivals:
            wanted = [key_of(trial, run.graph, run.plan.settings) for trial in trials]
            missing = {task_of(run, key, service): key for key in wanted if not ledger.known([key])}
            keys.update(missing)
            try:
                hands.add(list(missing))
                left = room()
                while hands.open_tasks() and not news and room() <= left:
                    hands.turn()
            except OutOfTime:
                hands.stop()
                raise OutOfTime(told()) from None
            return Arrivals(told(), room())

        yield exchange


@contextmanager
def hands_at_work(
    run: Run, ledger: Ledger, service: Service, outer: Outer, keys: Mapping[Task, Key]
) -> Iterator[Hands]:
    """Workers, here or on a cluster, whose records go into the ledger; they stop when the time is used up."""
    done = ledger.records()

    def finished(task: Task, record: Record, attempts: int, elapsed: float) -> None:
        ledger.add(keys[task], record, attempts, elapsed)
        done.append(record)
        if not task.keep:  # only now: until its record is safe, the state is all there is of the trial
            Path(task.checkpoint).unlink(missing_ok=True)
        outer.finished(record)

    def budget_without(trainings: int, most: float) -> float:
        """What is left of it by so many full trainings, one after the other, that take this share at most."""
        alone = seconds_of_one(len(done)) * (FEW_BESIDE if together > 1 else 1)
        return service.budget - min(alone * trainings, service.budget * most)

    @lru_cache(maxsize=1)  # these are asked at every turn, and have another answer only after another record
    def last_trials(_records: int) -> int:
        return service.last_trials(done)

    @lru_cache(maxsize=1)
    def seconds_of_one(_records: int) -> float:
        return full_training_seconds(done)

    def end_of_rounds() -> float:
        return budget_without(service.last_rounds - (-last_trials(len(done)) // hands.slots()), 1 / 2)

    def end_of_last_trials() -> float:
        return budget_without(service.last_rounds, 1 / 4)

    together = stack_size(entity_count(run.graph_folder), run.plan.settings)
    place = Place(run.graph_folder, run.logs, run.plan.threads, together)
    ends = () if service.budget == float("inf") else (end_of_rounds, end_of_last_trials)
    with timed(ledger, ends, outer.clock) as tick:
        ears = Ears(finished, ledger.add_attempt, outer.progress, tick)
        with hired(service, place, ears, outer.clock) as hands:
            yield hands


def hired(service: Service, place: Place, ears: Ears, clock: Callable[[], float]) -> Hands:
    """Those who run the trials."""
    if service.site is not None:
        return Cluster(service.site, place, service.crew, ears, clock)
    return Workers(place, service.crew, ears, clock)


def full_training_seconds(records: Sequence[Record]) -> float:
    """What a training of as many epochs as the longest so far takes on average."""
    epochs = sum(added_epochs(records))  # as `seconds` are those of a trial's own epochs
    seconds = sum(record.seconds for record in records)
    return max(record.epochs for record in records) * seconds / epochs if epochs else 0.0


def answered(ledger: Ledger, wanted: list[Key], trials: Round) -> list[Record]:
    """The records there are of a round, in its order."""
    known = ledger.known(wanted)
    pairs = zip(wanted, trials, strict=True)
    return [replace(known[key], trial=trial) for key, trial in pairs if key in known]


@contextmanager
def timed(
    ledger: Ledger, ends: Sequence[Callable[[], float]], clock: Callable[[], float]
) -> Iterator[Callable[[], None]]:
    """A function that keeps account of the time spent and raises at each of the ends, once."""
    began, earlier = clock(), ledger.seconds_spent()
    stored = began
    passed = 0

    def tick() -> None:
        nonlocal stored, passed
        now = clock()
        if now - stored > STORE_SECONDS:
            ledger.spend(now - began)
            stored = now
        if passed < len(ends) and earlier + now - began > ends[passed]():
            passed += 1
            raise OutOfTime

    try:
        yield tick
    finally:
        ledger.spend(clock() - began)


def task_of(run: Run, key: Key, service: Service) -> Task:
    """What a worker is told for a key."""
    return Task(
        trial=Trial(from_json(key.structure), key.epochs, key.seed),
        graph=run.graph,
        settings=run.plan.settings,
        checkpoint=str(run.checkpoints / checkpoint_name(key)),
        keep=service.keep and key.epochs < run.plan.settings.epochs,  # no trial goes on from a full one
        save_seconds=service.save_seconds,
    )
