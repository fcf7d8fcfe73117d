"""What a search is training at the moment, in a small file of its run: a view for others, no state.

The ledger knows what is finished; this file says what is not. It is replaced at most once a second, and gone when
the search is. A reader who finds it after a kill knows by the run's lock that it is stale.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from autosf.algebra.structure import Structure, from_json, to_json
from autosf.errors import UserError
from autosf.whole import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.embedding.state import State
    from autosf.runs.run import Run
    from autosf.runs.workers import Progress
    from autosf.search.record import Record

NAME = "live.json"
WRITE_SECONDS = 1.0
WINNER = -1  # the slot of the last training, which no worker does


@dataclass(frozen=True, slots=True)
class Running:
    """A training that is under way: the last epoch it has finished and its last validation."""

    slot: int  # of its worker, or WINNER
    structure: Structure
    epochs: int  # in all
    seed: int
    epoch: int
    valid_mrr: float | None
    at: float  # when it was heard of, in seconds since 1970

    @property
    def is_winner(self) -> bool:
        return self.slot == WINNER


class LiveFile:
    """Owns the file of one session; its ears are `progress`, `finished` and what `winner` gives."""

    def __init__(self, run: Run, write_seconds: float = WRITE_SECONDS) -> None:
        self._path = run.folder / NAME
        self._write_seconds = write_seconds
        self._running: dict[int, Running] = {}
        self._written: float | None = None

    def __enter__(self) -> LiveFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._written is not None:  # else it is that of another, who holds the run
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    def progress(self, told: Progress) -> None:
        """A worker has finished an epoch of its trial."""
        trial = told.trial
        self._hear(
            Running(
                told.slot, trial.structure, trial.epochs, trial.seed, told.epoch, told.valid_mrr, time.time()
            )
        )

    def finished(self, record: Record) -> None:
        """A trial is in the ledger."""
        done = record.trial
        self._running = {
            slot: running
            for slot, running in self._running.items()
            if (running.structure, running.epochs, running.seed) != (done.structure, done.epochs, done.seed)
        }
        self._write_now_and_then()

    def winner(self, structure: Structure, epochs: int, seed: int) -> Callable[[State], None]:
        """An ear for the epochs of the winner's own training."""

        def heard(state: State) -> None:
            mrr = state.curve[-1].valid_mrr
            self._hear(Running(WINNER, structure, epochs, seed, state.epochs, mrr, time.time()))

        return heard

    def _hear(self, running: Running) -> None:
        before = self._running.get(running.slot)
        if running.valid_mrr is None and before and before.structure == running.structure:
            running = replace(running, valid_mrr=before.valid_mrr)
        self._running[running.slot] = running
        self._write_now_and_then()

    def _write_now_and_then(self) -> None:
        now = time.monotonic()
        if self._written is not None and now - self._written < self._write_seconds:
            return
        self._written = now
        rows = [
            {**asdict(running), "structure": to_json(running.structure)} for running in self._running.values()
        ]
        with suppress(UserError):  # a full disk costs the view, not the search
            write_whole(self._path, json.dumps({"running": rows}))


def running_trials(run: Run) -> tuple[Running, ...]:
    """What the run's file says, by slot; nothing if there is none or it is no such file."""
    try:
        found = json.loads((run.folder / NAME).read_bytes())
        rows = [running_from_json(row) for row in found["running"]]
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return ()
    return tuple(sorted(rows, key=lambda row: row.slot))


def running_from_json(row: dict[str, Any]) -> Running:
    return Running(**{**row, "structure": from_json(row["structure"])})


def both(*ears: Callable[[Any], None]) -> Callable[[Any], None]:
    """One ear for several listeners."""

    def heard(told: Any) -> None:
        for ear in ears:
            ear(told)

    return heard
