"""The stored records of docs/results, as the tables read them."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.algebra.summands import summands
from autosf.algebra.zoo import structure_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def records(name: str) -> list[dict[str, Any]]:
    """The lines of a file of records, none if there is no such file."""
    path = RESULTS / "records" / f"{name}.jsonl"
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


BESIDE_THE_RECIPE = {"score_megabytes", "validation_candidates"}  # settings that change no weights


def recipe_of(run: dict[str, Any]) -> dict[str, Any]:
    """The settings that decide what a training comes to."""
    return {name: value for name, value in run["settings"].items() if name not in BESIDE_THE_RECIPE}


def follows(run: dict[str, Any], recipe: dict[str, Any]) -> bool:
    """Whether the run would come to the same with the recipe: for a structure that mixes no parts, moduli are
    what N3 takes anyway."""
    own = recipe_of(run)
    if (own["regulariser"], recipe["regulariser"]) == ("n3", "n3-moduli"):
        parts = chain.from_iterable(summands(structure_from(run["structure"])))
        own["regulariser"] = "n3-moduli" if all(len(each) == 1 for each in parts) else "n3"
    return own == recipe


def newest_trainings(loss: str | None = None) -> list[dict[str, Any]]:
    """The last training of each structure and seed with the newest recipe, by that loss, of graph and dimension.

    Recipes get better, and figures of different ones are not to be compared. The seconds are those of the fastest
    run of as many epochs, whatever its recipe and seed: others had to share the machine.
    """
    runs = [run for run in records("training") if loss in (None, run["settings"]["loss"])]
    newest = {place_of(run): recipe_of(run) for run in runs}
    keyed: dict[tuple[Any, ...], dict[str, Any]] = {}
    fastest: dict[tuple[Any, ...], float] = {}
    for run in runs:
        alike = (*place_of(run), run["structure"], run["epochs"])
        fastest[alike] = min(run["train_seconds"], fastest.get(alike, float("inf")))
    for run in runs:
        if follows(run, newest[place_of(run)]):
            seconds = fastest[(*place_of(run), run["structure"], run["epochs"])]
            keyed[(*place_of(run), run["structure"], run["seed"])] = {**run, "train_seconds": seconds}
    return list(keyed.values())


def place_of(run: dict[str, Any]) -> tuple[str, int]:
    """The graph and dimension that a recipe is for."""
    return run["graph"], run["settings"]["dimension"]


def table(head: str, rows: Iterable[Sequence[str]], left: int = 2) -> str:
    """Markdown, the first columns to the left, the others to the right."""
    columns = head.count("|") + 1
    lines = [f"| {head} |", "|" + " --- |" * left + " ---: |" * (columns - left)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"
