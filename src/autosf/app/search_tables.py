"""A search's outcome as people read it."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table

from autosf.algebra.constraints import relation_kinds
from autosf.algebra.disguise import twins
from autosf.algebra.structure import from_rows
from autosf.algebra.zoo import named
from autosf.app.drawing import as_text
from autosf.app.duration import time_in_words
from autosf.app.search_sample import told_part
from autosf.counting import counted
from autosf.search.record import OUT_OF_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

ROWS = 10
MORE_TIME = "the time was used up; resume with a larger --budget"
DECIDED = {
    "playoff": "the play-off, where the best were trained in full",
    "finals": "seeds that took no part in the search",
    "trainings": "all trainings together, as a lucky seed alone leads nobody",
}


def result_for_people(result: Mapping[str, Any]) -> list[RenderableType]:
    """The winner drawn, the best ten, and what to do with it."""
    run = shlex.quote(result["run"])
    return [
        winner(result["best"], result["playoff"] or (), one_seed_why(result)),
        *leaderboard_for_people({**result, "leaderboard": result["leaderboard"][:ROWS]}),
        f"\nmodel: {result['model']}\nask it: autosf predict {run} --head ... --relation ...",
    ]


def winner(
    best: Mapping[str, Any], playoff: Sequence[Mapping[str, Any]] = (), one_seed: str = ""
) -> RenderableType:
    """The structure beside what is known of it."""
    structure = from_rows(best["structure"])
    title = f"{title_of(best)}: " if best["names"] else ""
    facts = [
        f"{title}validation MRR {measured(best)}{' in the search' if playoff else ''}",
        *in_disguise(best),
        *chances(best, one_seed),
        *on_the_whole(playoff),
        f"models {', '.join(relation_kinds(structure))} relations",
        best["formula"],
    ]
    table = Table.grid(padding=(0, 3))
    table.add_row(as_text(structure), "\n".join(facts))
    return Padding(table, (1, 0))


def in_disguise(best: Mapping[str, Any]) -> list[str]:
    """What a structure without a name of the zoo's classes is all the same, seen in another way."""
    found = [] if best["names"] else twins(from_rows(best["structure"]))
    return [f"the same function as {twin.known.title}, {twin.how}" for twin in found]


def one_seed_why(result: Mapping[str, Any]) -> str:
    """What to do where finals of one seed each cannot tell how surely a structure is better."""
    return MORE_TIME if result["ending"] == OUT_OF_TIME else "--fresh-seeds"


def chances(best: Mapping[str, Any], one_seed: str = "--fresh-seeds") -> list[str]:
    """How surely the winner is better than the runner-up and than the best human-designed structure."""
    lines = []
    if best["beats_runner_up"] is not None:
        lines.append(f"better than the runner-up with probability {best['beats_runner_up']:.2f}")
    human = best["human"]
    if human and best["beats_human"] is not None:
        gain = best["valid_mrr"] - human["valid_mrr"]
        lines.append(
            f"better than {title_of(human)}, the best human-designed one, {measured(human)}:"
            f"\nby {gain:.4f} ± {standard_error(best, human):.4f}, with probability {best['beats_human']:.2f}"
        )
    elif human and human["structure"] != best["structure"]:
        told = f"ahead of {title_of(human)}, the best human-designed one, {measured(human)}"
        lines.append(f"{told}:\none seed each does not tell how surely ({one_seed})")
    elif human:
        lines.append("the best human-designed one: no other was found to be better")
    return lines


def on_the_whole(playoff: Sequence[Mapping[str, Any]]) -> list[str]:
    """How the play-off came out."""
    if not playoff:
        return []
    first, *others = playoff
    told = ", ".join(f"{played(row)} {title_of(row)}" for row in others)
    return [f"trained in full: {played(first)}; the others: {told}"]


def played(row: Mapping[str, Any]) -> str:
    """A contestant's figure, or why it has none."""
    if row["valid_mrr"] is None:
        return "no time for"
    if not row["valid_mrr"]:
        return "diverged:"
    return measured(row) if row["seeds"] > 1 else f"{row['valid_mrr']:.4f}"


def standard_error(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Of the difference of two means over seeds."""
    parts = ((row["spread"] or 0.0) ** 2 / row["seeds"] for row in (one, other))
    return float(sum(parts) ** 0.5)


def measured(row: Mapping[str, Any]) -> str:
    """A mean with its spread and the number of seeds."""
    spread = "" if row["spread"] is None else f" ± {row['spread']:.4f}"
    return f"{row['valid_mrr']:.4f}{spread} ({counted(row['seeds'], 'seed')})"


def title_of(row: Mapping[str, Any]) -> str:
    """The name of a structure of the zoo as its authors write it, or its rows."""
    return named(row["names"][0]).title if row["names"] else compact(row["structure"])


def compact(rows: Any) -> str:
    return json.dumps(rows, separators=(",", ":"))


def leaderboard_for_people(result: Mapping[str, Any]) -> list[RenderableType]:
    """What the run has done so far, and its rows."""
    failed = f" ({result['failed']} failed)" if result["failed"] else ""
    go_on = f"autosf resume {shlex.quote(result['run'])}"
    states = {
        "ended": f"ended: {result['ending']}",
        "running": "running",
        "stopped": f"stopped: `{go_on}` goes on",
    }
    trials = counted(result["trials"], "trial")
    head = f"{trials}{failed} in {time_in_words(result['seconds'])}; {states[result['state']]}"
    if result["failed"] and result["state"] == "ended":
        head += f"\n`{go_on} --retry-failed` tries again what was lost with its worker"
    head = "\n".join([head, *told_part(result)])
    if not result["leaderboard"]:
        return [head]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("place", "MRR", "spread", "seeds", "epochs", "blocks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("structure", overflow="fold")  # where it is narrow, figures matter more than a long name
    winning = winning_structure(result)
    for place, row in enumerate(result["leaderboard"], 1):
        spread = "" if row["spread"] is None else f"{row['spread']:.4f}"
        counts = (str(row[name]) for name in ("seeds", "epochs", "blocks"))
        mark = "  (the winner)" if row["structure"] == winning else ""
        table.add_row(str(place), f"{row['valid_mrr']:.4f}", spread, *counts, title_of(row) + mark)
    return [head, "", table, *(f"\n{line}" for line in how_decided(result))]


def winning_structure(result: Mapping[str, Any]) -> Any:
    """Whose row is the winner's; None as long as there is none."""
    return result["best"]["structure"] if result["best"] and result["state"] == "ended" else None


def how_decided(result: Mapping[str, Any]) -> list[str]:
    """A line where the finals were not held, or where the winner is another than the first row, whose seeds took
    part in choosing it."""
    winning = winning_structure(result)
    if winning is None:
        return []
    title, decided = title_of(result["best"]), result["decided_by"]
    if lacks_finals(result):
        again = f"`autosf resume {shlex.quote(result['run'])} --budget ...` goes on to them"
        return [f"the time ended before the finals: {title} is the best guess from all trainings; {again}"]
    if result["leaderboard"][0]["structure"] == winning:
        return []
    return [f"{title} is the winner by {DECIDED[decided]}; figures here are over all seeds"]


def lacks_finals(result: Mapping[str, Any]) -> bool:
    """Whether the winner is the best guess, as fresh seeds had no time."""
    chosen = result["decided_by"] == "trainings" and result["strategy"] == "free"
    return bool(chosen and result["ending"] == OUT_OF_TIME)
