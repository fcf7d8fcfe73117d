"""`python -m benchmarks [NAME ...]`: runs the named benchmarks, or all, and fails if a bar is missed."""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import sys
from pathlib import Path

from benchmarks.measured import show

TITLES = {
    "algebra": "The algebra: filter and features",
    "reading": "Graphs: reading, known answers, statistics",
    "pykeen_interaction": "PyKEEN: a step with our interaction beside its own",
    "growth": "Growth: from 10 thousand to 5 million entities",
    "ranking": "Ranking: filtered evaluation beside PyKEEN",
    "schedule": "Search: simulated schedule for 1 to 1,000 workers, in rounds and without",
    "search_overhead": "Search: filter and predictor of a greedy step",
    "serving": "Serving: what 16 users wait for answers",
    "search_running": "Search: overhead, and what a second worker is worth",
    "time_to_quality": "Training: seconds to 99 % of the best validation MRR",
    "training": "Training: an epoch of ComplEx beside a plain reference",
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(TITLES)
    if unknown:
        print(f"benchmarks: unknown {sorted(unknown)}; known: {', '.join(TITLES)}", file=sys.stderr)
        return 2
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    if beside.is_dir():
        os.environ.setdefault("AUTOSF_DATA", str(beside))
    cores = f"{os.cpu_count()} cores, {platform.machine()}"
    print(f"{datetime.date.today()}, Python {platform.python_version()}, {cores}")
    passed = [
        show(TITLES[name], importlib.import_module(f"benchmarks.{name}").run()) for name in names or TITLES
    ]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
