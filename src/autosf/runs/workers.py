"""Trials are run by supervised processes, one a slot, which live through the run and import torch once.

A worker that dies or falls silent is ended with its group and replaced; its trial is tried again from its last
checkpoint, and counts as failed when that fails, too. Results do not depend on which worker ran what, or when.
"""

from __future__ import annotations

import selectors
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autosf.errors import UserError, shown
from autosf.runs.task import record_from_json, task_as_json
from autosf.runs.worker_process import WorkerProcess, cause
from autosf.search.record import Record, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import TracebackType

    from autosf.runs.task import Task

POLL_SECONDS = 0.2
ODD_SECONDS = 0.5  # of silence, after which it is watched whether a worker computes
STARTS = 5  # workers in a row that end before they are ready: the fault is not theirs
SLOW_EPOCHS = 20  # a silence as long as this many of the slowest epochs seen is a hang
BUSY = 0.05  # of the time spent computing: a worker that is not stuck, on a crowded machine
PATIENT = 10  # times as patient with imports, and with one that computes: a first validation may take long


@dataclass(frozen=True, slots=True)
class Crew:
    """How trials are run; no result depends on it."""

    workers: int = 1
    attempts: int = 2  # at a trial, before it counts as failed
    hang_seconds: float = 60.0  # the least silence that is a hang
    grace_seconds: float = 5.0  # for saving what is under way when a run stops


@dataclass(frozen=True, slots=True)
class Place:
    """What every worker is started with: the shared graph, the folder of the logs, its number of threads."""

    graph_folder: Path
    logs: Path
    threads: int = 1
    together: int = 1  # trials that a worker is given at once


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a running trial is: the last epoch it has finished."""

    slot: int
    trial: Trial
    epoch: int
    loss: float
    valid_mrr: float | None  # where this epoch was validated
    beside: int = 0  # other trials that the worker trains side by side with it


@dataclass(frozen=True, slots=True)
class Ears:
    """Who is told of what: finished trials with the attempts they took and the seconds since the last one began,
    failed attempts, epochs, passing time.

    Any of them may raise to stop the run.
    """

    finished: Callable[[Task, Record, int, float], None]
    failed: Callable[[Trial, str], None] = lambda _trial, _why: None
    progress: Callable[[Progress], None] = lambda _: None
    tick: Callable[[], None] = lambda: None


def longest_silence(crew: Crew, slowest: float | None) -> float:
    """Seconds without an epoch's end that are no hang yet, given the slowest end so far."""
    if slowest is None:
        return crew.hang_seconds * PATIENT
    return max(crew.hang_seconds, slowest * SLOW_EPOCHS)


def may_try_again(task: Task, why: str, elapsed: float, tried: Counter[Task], crew: Crew, ears: Ears) -> bool:
    """Tell of a failed attempt; whether another may follow. If not, the trial has failed: that is told, too."""
    ears.failed(task.trial, why)
    tried[task] += 1
    if tried[task] < crew.attempts:
        return True
    ears.finished(task, Record(task.trial, 0.0, 0, failure=why), tried.pop(task), elapsed)
    return False


class Workers:
    """Owns the worker processes of a run; leaving its block ends them all, saving what is under way."""

    def __init__(self, place: Place, crew: Crew, ears: Ears, clock: Callable[[], float]) -> None:
        self._place, self._crew, self._ears = place, crew, ears
        self._clock, self._last_poll = clock, clock()
        self._selector = selectors.DefaultSelector()
        self._staff: dict[int, WorkerProcess] = {}
        self._waiting: deque[Task] = deque()
        self._tried: Counter[Task] = Counter()
        self._false_starts = 0
        self._slowest: float | None = None  # silence before an epoch's end

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def slots(self) -> int:
        """How many tasks are run at once."""
        return self._crew.workers

    def open_tasks(self) -> int:
        """How many tasks are not finished."""
        return len(self._waiting) + sum(len(worker.tasks) for worker in self._staff.values())

    def add(self, tasks: Sequence[Task]) -> None:
        """Take on more tasks, to be begun in their order."""
        self._waiting.extend(tasks)
        self._last_poll = self._clock()

    def turn(self) -> None:
        """Let a moment pass: tasks are begun, and whatever is heard is told, a finished one at once."""
        self._ears.tick()
        self._hire()
        self._hand_out()
        heard = self._listen()
        self._replace_silent(heard)

    def close(self) -> None:
        """End all workers for good."""
        self.stop()
        for worker in list(self._staff.values()):
            self._dismiss(worker, self._crew.grace_seconds)
        self._selector.close()

    def stop(self) -> None:
        """Let go of all tasks: the busy workers save them after their epoch if that comes soon, else are ended.

        The others stay, as a new one takes seconds to start. No trial is lost.
        """
        self._waiting.clear()
        for worker in self._staff.values():
            if worker.tasks:
                self._send(worker, {"stop": worker.batch})
        deadline = self._clock() + self._crew.grace_seconds
        while self._clock() < deadline and any(worker.tasks for worker in self._staff.values()):
            for chosen, _ in self._selector.select(POLL_SECONDS):
                with suppress(UserError, ValueError):  # no room for a record, or a line that Ctrl-C has cut
                    self._last_messages(chosen.data)
        for worker in [worker for worker in self._staff.values() if worker.tasks]:
            self._dismiss(worker, 0.0)

    def _last_messages(self, worker: WorkerProcess) -> None:
        """Keep a record that arrives while stopping, if there is room for it; any last word ends the wait."""
        messages = worker.messages()
        if messages is None:
            worker.tasks = {}
            self._dismiss(worker, 0.0)
        for message in messages or ():
            if {"stopped", "error"} & set(message):
                worker.tasks = {}
            elif {"record", "ready"} & set(message):
                self._act(worker, message)

    def _hire(self) -> None:
        """Fill the slots that work is waiting for."""
        wanted = min(self._crew.workers, self.open_tasks())
        for slot in range(self._crew.workers):
            if len(self._staff) < wanted and slot not in self._staff:
                log = self._place.logs / f"worker-{slot}.log"
                worker = WorkerProcess(slot, self._place.graph_folder, self._place.threads, log)
                self._staff[slot] = worker
                self._selector.register(worker, selectors.EVENT_READ, worker)

    def _hand_out(self) -> None:
        """Give the next tasks to those who are free."""
        for worker in self._staff.values():
            if worker.ready and not worker.tasks and self._waiting:
                tasks = self._next_tasks()
                worker.batch += 1
                told = {"number": worker.batch, "tasks": [task_as_json(task) for task in tasks]}
                if self._send(worker, told):
                    worker.tasks, worker.silent = dict(enumerate(tasks)), 0.0
                    worker.began = self._clock()
                else:  # it died while idle, which its pipe will say
                    self._waiting.extendleft(reversed(tasks))

    def _next_tasks(self) -> list[Task]:
        """The next in line and others of its seed, a fair share of what waits; a second attempt is made alone."""
        idle = self._crew.workers - sum(bool(worker.tasks) for worker in self._staff.values())
        most = min(self._place.together, -(-len(self._waiting) // idle))
        first = self._waiting[0]
        alike = [
            task for task in self._waiting if task.trial.seed == first.trial.seed and not self._tried[task]
        ]
        tasks = alike[:most] if not self._tried[first] else [first]
        for task in tasks:
            self._waiting.remove(task)
        return tasks

    def _listen(self) -> set[int]:
        """Wait a moment for messages and act on them; the slots that said something, or have ended."""
        heard = set()
        for chosen, _ in self._selector.select(POLL_SECONDS):
            worker: WorkerProcess = chosen.data
            heard.add(worker.slot)
            messages = worker.messages()
            if messages is None:
                self._lose(worker, cause(self._dismiss(worker, 1.0)) + worker.last_words())
            for message in messages or ():
                self._act(worker, message)
        return heard

    def _act(self, worker: WorkerProcess, message: dict[str, Any]) -> None:
        """Do what a worker's message asks for."""
        task = worker.tasks.get(message.get("place", -1))
        if "ready" in message:
            worker.ready, self._false_starts = True, 0
        elif "error" in message:
            self._try_again(worker, message["error"])
        elif task is None:
            return
        elif "epoch" in message:
            self._slowest = max(self._slowest or 0.0, worker.silent)
            told = (message["epoch"], message["loss"], message["valid_mrr"], len(worker.tasks) - 1)
            self._ears.progress(Progress(worker.slot, task.trial, *told))
        elif "note" in message:
            self._ears.failed(task.trial, message["note"])
        elif "record" in message:
            del worker.tasks[message["place"]]
            record, attempts = record_from_json(message["record"]), self._tried.pop(task, 0) + 1
            self._ears.finished(task, record, attempts, self._clock() - worker.began)

    def _replace_silent(self, heard: set[int]) -> None:
        """End those who should have said something by now.

        Silence is counted in polls: time in which the driver itself was stopped or asleep tells nothing.
        """
        now = self._clock()
        passed, self._last_poll = min(now - self._last_poll, 5 * POLL_SECONDS), now
        for worker in list(self._staff.values()):
            worker.silent += passed
            if worker.slot in heard:
                worker.silent, worker.spared, worker.computed = 0.0, 0, None
            elif worker.computed is None and worker.silent > ODD_SECONDS:
                worker.computed = worker.cpu_seconds()
            if worker.silent > self._longest_silence(worker) and not self._is_spared(worker):
                self._dismiss(worker, 0.0)
                self._lose(worker, f"was silent for {worker.silent:.0f} s and was ended")

    def _is_spared(self, worker: WorkerProcess) -> bool:
        """Whether it computes, so that it has as long again: for ever where nobody knows yet how long an epoch
        takes, else some times, as the first one that is validated may take much longer than those before."""
        before, worker.computed = worker.computed, worker.cpu_seconds()
        worker.spared += 1
        if not worker.ready or worker.computed is None or (self._slowest and worker.spared >= PATIENT):
            return False
        if worker.computed - (before or 0.0) < BUSY * worker.silent:
            return False
        worker.silent = 0.0
        return True

    def _longest_silence(self, worker: WorkerProcess) -> float:
        """How long the worker may say nothing: an idle one for ever, one that starts for long."""
        if worker.ready and not worker.tasks:
            return float("inf")
        return longest_silence(self._crew, self._slowest if worker.ready else None)

    def _lose(self, worker: WorkerProcess, why: str) -> None:
        """Go on without a worker that has ended: its trials are another's now."""
        if not worker.ready:
            self._false_starts += 1
            if self._false_starts >= STARTS:
                raise UserError(f"worker {worker.slot} cannot start: it {why} (see {shown(worker.log)})")
        else:
            self._try_again(worker, f"worker {worker.slot} {why}")

    def _try_again(self, worker: WorkerProcess, why: str) -> None:
        """What a worker had under way is next in line once more, or failed for good."""
        tasks, worker.tasks = worker.tasks, {}
        elapsed = self._clock() - worker.began
        for task in reversed(tasks.values()):
            if may_try_again(task, why, elapsed, self._tried, self._crew, self._ears):
                self._waiting.appendleft(task)

    def _dismiss(self, worker: WorkerProcess, seconds: float) -> int:
        """End a worker, at once or letting it end by itself for so long, and forget it; its exit code."""
        if worker in self._selector.get_map():
            self._selector.unregister(worker)
        del self._staff[worker.slot]
        return worker.leave(seconds) if seconds else worker.kill()

    def _send(self, worker: WorkerProcess, message: dict[str, Any]) -> bool:
        """Whether the message could be sent."""
        try:
            worker.send(message)
        except OSError:
            return False
        return True
