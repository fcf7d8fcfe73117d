"""The stored records of docs/results, as the tables read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def records(name: str) -> list[dict[str, Any]]:
    """The lines of a file of records, none if there is no such file."""
    path = RESULTS / "records" / f"{name}.jsonl"
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def newest_trainings() -> list[dict[str, Any]]:
    """The last training of each structure, seed and dimension on each graph: recipes get better."""
    keyed = {
        (run["graph"], run["settings"]["dimension"], run["structure"], run["seed"]): run
        for run in records("training")
    }
    return list(keyed.values())
