"""`make torture`: kills drivers and workers of small searches at random moments, and compares what they come to.

    python -m benchmarks.torture [KILLS] [SEED]

Every search is resumed until it ends, and its rows must be those of a search that nobody touched, to the bit;
no row twice, and no process left a second after its driver is gone. Exit code 1 if anything differs.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from autosf.runs.leaderboard import leaderboard
from autosf.runs.ledger import opened_ledger
from benchmarks.small_search import workers_of

LONGEST_WAIT = 5.0  # seconds before a kill: long enough to get beyond the start of workers, mostly
ATTEMPTS = 1_000  # at a trial: here no death is the trial's own fault
EPOCHS = 40  # of the first round, so that a search takes some twenty seconds of training


def begun(folder: Path, workers: int) -> subprocess.Popen[bytes]:
    options = [f"workers={workers}", f"attempts={ATTEMPTS}", f"epochs={EPOCHS}"]
    return subprocess.Popen([sys.executable, "-m", "benchmarks.small_search", str(folder), *options])


def found(folder: Path) -> tuple[list[Any], list[Any]]:
    """All rows of a run in one order, without what depends on the hour, and its leaderboard."""
    with opened_ledger(folder / "ledger.sqlite", time.time) as ledger:
        records = ledger.records()
    rows = sorted((str(r.trial), r.valid_mrr, r.epochs, r.curve, r.failure) for r in records)
    return rows, leaderboard(records)


def tortured(folder: Path, rng: random.Random, kills: int, counts: Counter[str]) -> None:
    """Run a search to its end, killing it up to so many times on the way."""
    driver = begun(folder, rng.choice([1, 2]))
    while driver.poll() is None:
        if counts["kills"] >= kills:
            driver.wait()
            break
        try:
            driver.wait(rng.uniform(0.05, LONGEST_WAIT))
            break
        except subprocess.TimeoutExpired:
            pass
        victims = workers_of(folder)
        if victims and rng.random() < 0.5:
            kill(rng.choice(victims))
            counts.update(kills=1, workers=1)
            continue
        kill(driver.pid)
        driver.wait()
        counts.update(kills=1, drivers=1, resumes=1)
        time.sleep(1.0)
        counts["orphans"] += len(workers_of(folder))
        driver = begun(folder, rng.choice([1, 2]))
    counts["failures"] += driver.returncode != 0
    counts["orphans"] += len(workers_of(folder))


def kill(process: int) -> None:
    with suppress(ProcessLookupError):  # it may have ended by itself in the meantime
        os.kill(process, signal.SIGKILL)


def main(kills: int = 50, seed: int = 0) -> int:
    counts: Counter[str] = Counter()
    rng, started = random.Random(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        begun(Path(name) / "untouched", 2).wait()
        expected = found(Path(name) / "untouched")
        while counts["kills"] < kills:
            folder = Path(name) / f"search{counts['searches']}"
            tortured(folder, rng, kills, counts)
            counts.update(searches=1, rows=len(found(folder)[0]), different=found(folder) != expected)
    for what in (
        "kills",
        "drivers",
        "workers",
        "resumes",
        "searches",
        "rows",
        "different",
        "failures",
        "orphans",
    ):
        print(f"{what:10}{counts[what]:6}")
    print(f"rows of each search: {len(expected[0])}; {time.monotonic() - started:.0f} s; seed {seed}")
    return 1 if counts["different"] or counts["failures"] or counts["orphans"] else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
