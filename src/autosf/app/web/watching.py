"""A run as it is seen from outside while it changes: looked at again only when its files have changed."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from autosf.app.drawing import formula
from autosf.app.live_file import running_trials
from autosf.app.run_results import (
    Outcome,
    best_as_json,
    outcome_of,
    playoff_as_json,
    standing_as_json,
    zoo_names,
)
from autosf.runs.ledger import is_held
from autosf.runs.playoff import playoff_file
from autosf.search.record import Trial

if TYPE_CHECKING:
    from pathlib import Path

    from autosf.app.live_file import Running
    from autosf.runs.run import Run

LOOK_SECONDS = 0.5  # between two looks at the files, however many users look


@dataclass(frozen=True, slots=True)
class Sight:
    """A run at one moment; `version` is another whenever its records or its state are."""

    version: str
    outcome: Outcome
    running: tuple[Running, ...]

    @property
    def state(self) -> str:
        """running, stopped or ended; or training, when only the winner's own training is still to come; or
        playoff, when the best are trained in full before it."""
        if not any(row.is_winner for row in self.running):
            return self.outcome.state
        return "training" if self.outcome.is_played_off else "playoff"


class Watch:
    """Owns the last sight of a run, for all threads. The ledger is read again only after it has changed."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._lock = Lock()
        self._looked = -LOOK_SECONDS
        self._stamp: tuple[object, ...] = ()
        self._sight: Sight | None = None

    def sight(self) -> Sight:
        """The run as it is, or was half a second ago."""
        with self._lock:
            if self._sight is None or time.monotonic() - self._looked >= LOOK_SECONDS:
                self._sight = self._look(self._sight)
                self._looked = time.monotonic()
            return self._sight

    def _look(self, last: Sight | None) -> Sight:
        stamp = stamp_of(self.run)
        outcome = outcome_of(self.run) if last is None or stamp != self._stamp else last.outcome
        self._stamp = stamp
        version = hashlib.sha256(repr(stamp).encode()).hexdigest()[:16]
        return Sight(version, outcome, current_trials(self.run, outcome))


def current_trials(run: Run, outcome: Outcome) -> tuple[Running, ...]:
    """What is being trained: a file that a kill has left says nothing, nor does what has its record by now."""
    if not is_held(run.lock):
        return ()
    done = {record.trial for record in outcome.records}
    return tuple(
        row
        for row in running_trials(run)
        if row.is_winner
        or (outcome.state == "running" and Trial(row.structure, row.epochs, row.seed) not in done)
    )


def stamp_of(run: Run) -> tuple[object, ...]:
    """What differs when ledger or play-off do: sizes and times of their files, and whether somebody is at work."""
    wal = run.ledger.with_name(run.ledger.name + "-wal")
    files = (run.ledger, wal, playoff_file(run))
    return (is_held(run.lock), *map(stamp_of_file, files))


def stamp_of_file(path: Path) -> tuple[int, int] | None:
    """Time and size; readers make an empty log and delete it, which is no change."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if found.st_size else None


def how_far(sight: Sight) -> dict[str, Any]:
    """Where a search is: what every answer about it begins with."""
    outcome = sight.outcome
    return {
        "state": sight.state,
        "ending": outcome.ending,
        "decided_by": outcome.decided_by,
        "version": sight.version,
        "trials": len(outcome.records),
        "structures": len(outcome.standings),
        "seconds": outcome.seconds,
    }


def status_of(sight: Sight, run: Run) -> dict[str, Any]:
    """The state of a search, without its leaderboard."""
    best = sight.outcome.best
    return {
        **how_far(sight),
        "failed": sum(record.failed for record in sight.outcome.records),
        "best_mrr": best.valid_mrr if best else None,
        "strategy": run.plan.search["strategy"],
        "running": [running_as_json(row) for row in sight.running],
    }


def running_as_json(row: Running) -> dict[str, Any]:
    return {
        "worker": None if row.is_winner else row.slot,
        "structure": row.structure.rows,
        "names": zoo_names(row.structure),
        "formula": formula(row.structure),
        "seed": row.seed,
        "epoch": row.epoch,
        "epochs": row.epochs,
        "valid_mrr": row.valid_mrr,
    }


def leaderboard_of(sight: Sight, limit: int) -> dict[str, Any]:
    """The best structures, under the names that `autosf leaderboard --json` has."""
    outcome = sight.outcome
    return {
        **how_far(sight),
        "best": best_as_json(outcome.best) if outcome.best else None,
        "leaderboard": [standing_as_json(row) for row in outcome.standings[:limit]],
        "playoff": playoff_as_json(outcome),
    }
