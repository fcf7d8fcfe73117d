"""The stored records of docs/results, as the tables read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def records(name: str) -> list[dict[str, Any]]:
    """The lines of a file of records, none if there is no such file."""
    path = RESULTS / "records" / f"{name}.jsonl"
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def newest_trainings() -> list[dict[str, Any]]:
    """The last training of each structure, seed and dimension on each graph: recipes get better.

    Its seconds are those of the fastest run of as many epochs: others had to share the machine.
    """
    keyed: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in records("training"):
        key = (run["graph"], run["settings"]["dimension"], run["structure"], run["seed"])
        earlier = keyed.get(key, run)
        alike = [past["train_seconds"] for past in (earlier, run) if past["epochs"] == run["epochs"]]
        keyed[key] = {**run, "train_seconds": min(alike)}
    return list(keyed.values())


def table(head: str, rows: Iterable[Sequence[str]], left: int = 2) -> str:
    """Markdown, the first columns to the left, the others to the right."""
    columns = head.count("|") + 1
    lines = [f"| {head} |", "|" + " --- |" * left + " ---: |" * (columns - left)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"
