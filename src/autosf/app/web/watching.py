"""A run as it is seen from outside while it changes: looked at again only when its files have changed."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from autosf.app.drawing import formula
from autosf.app.live_file import NAME, running_trials
from autosf.app.run_results import Outcome, best_as_json, outcome_of, standing_as_json, zoo_names
from autosf.runs.ledger import is_held

if TYPE_CHECKING:
    from pathlib import Path

    from autosf.app.live_file import Running
    from autosf.runs.run import Run

LOOK_SECONDS = 0.5  # between two looks at the files, however many users look


@dataclass(frozen=True, slots=True)
class Sight:
    """A run at one moment; `version` is another whenever anything of it is."""

    version: str
    outcome: Outcome
    running: tuple[Running, ...]

    @property
    def state(self) -> str:
        """running, stopped or ended; or training, when only the winner's own training is still to come."""
        return "training" if any(row.is_winner for row in self.running) else self.outcome.state


class Watch:
    """Owns the last sight of a run, for all threads."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._lock = Lock()
        self._looked = -LOOK_SECONDS
        self._stamp: tuple[object, ...] | None = None
        self._sight: Sight | None = None

    def sight(self) -> Sight:
        """The run as it is, or was half a second ago."""
        with self._lock:
            now = time.monotonic()
            if self._sight is None or now - self._looked >= LOOK_SECONDS:
                stamp = stamp_of(self.run)
                if self._sight is None or stamp != self._stamp:
                    self._sight, self._stamp = seen(self.run, stamp), stamp
                self._looked = time.monotonic()
            return self._sight


def seen(run: Run, stamp: tuple[object, ...]) -> Sight:
    """Look at the run: what is in the ledger no longer runs."""
    outcome = outcome_of(run)
    done = {record.trial for record in outcome.records}
    running = running_trials(run) if is_held(run.lock) else ()
    current = tuple(row for row in running if row.is_winner or not is_done(row, outcome, done))
    return Sight(hashlib.sha256(repr(stamp).encode()).hexdigest()[:16], outcome, current)


def is_done(row: Running, outcome: Outcome, done: set[Any]) -> bool:
    """Whether a trial of the live file is over: it has its record, or the search has ended since."""
    from autosf.search.record import Trial

    return outcome.state != "running" or Trial(row.structure, row.epochs, row.seed) in done


def stamp_of(run: Run) -> tuple[object, ...]:
    """What differs when anything of a run has changed: sizes and times of its files, and whether it is held."""
    wal = run.ledger.with_name(run.ledger.name + "-wal")
    return (is_held(run.lock), *(stamp_of_file(path) for path in (run.ledger, wal, run.folder / NAME)))


def stamp_of_file(path: Path) -> tuple[int, int] | None:
    """Time and size; readers make an empty log and delete it, which is no change."""
    try:
        found = path.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if found.st_size else None


def status_of(sight: Sight, run: Run) -> dict[str, Any]:
    """The state of a search, without its leaderboard."""
    outcome = sight.outcome
    best = outcome.best
    return {
        "state": sight.state,
        "ending": outcome.ending,
        "version": sight.version,
        "trials": len(outcome.records),
        "structures": len(outcome.standings),
        "failed": sum(record.failed for record in outcome.records),
        "seconds": outcome.seconds,
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
        "state": sight.state,
        "ending": outcome.ending,
        "version": sight.version,
        "trials": len(outcome.records),
        "structures": len(outcome.standings),
        "seconds": outcome.seconds,
        "best": best_as_json(outcome.best) if outcome.best else None,
        "leaderboard": [standing_as_json(row) for row in outcome.standings[:limit]],
    }
