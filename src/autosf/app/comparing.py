"""A comparison: every contestant on every graph, over seeds, with what is finished kept in a folder.

A result is one small file, written whole, named by all that decides it: a comparison that was killed, or is asked
again with further models or seeds, does only what is missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from autosf.app.contestants import Arena
from autosf.embedding.model_folder import plain as plain_json
from autosf.errors import UserError, quoted, shown
from autosf.graph.known_answers import known_answers
from autosf.runs.shared_graph import without_test
from autosf.runs.task import digest
from autosf.whole import make_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from autosf.app.contestants import Contestant
    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph

FORMAT = 1  # of a kept result; another number, and all are measured again
FINISHED, SUMMARY = "finished", "comparison.json"
SPLITS = {"test": ("valid", "test"), "valid": ("valid",)}


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """What is compared, and where finished results are kept, if anywhere."""

    arenas: Sequence[Arena]
    contestants: Sequence[Contestant]
    seeds: Sequence[int]
    out: Path | None = None

    def meetings(self) -> list[Meeting]:
        """All that is to be measured, graph by graph."""
        return [
            Meeting(arena, contestant, seed)
            for arena in self.arenas
            for contestant in self.contestants
            for seed in (self.seeds if contestant.seeded else self.seeds[:1])
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Meeting:
    """One contestant on one graph with one seed."""

    arena: Arena
    contestant: Contestant
    seed: int

    def file(self, folder: Path) -> Path | None:
        """Where its result is kept; None for what costs nothing to measure again."""
        identity = self.contestant.identity(self.arena.settings)
        if identity is None:
            return None
        place = self.contestant.device(self.arena)
        key = {
            "format": FORMAT,
            "graph": self.arena.digest,
            "splits": self.arena.splits,
            "seed": self.seed,
            **identity,
            **({} if place == "cpu" else {"device": place}),  # of the CPU: kept as they always were
        }
        return folder / FINISHED / f"{digest(plain_json(key))[:32]}.json"


def arena_of(
    graph: KnowledgeGraph,
    settings: TrainingSettings,
    split: str,
    device: str,
    watch: Callable[[int], None] = lambda _: None,
) -> Arena:
    """The arena of a graph; `split` is the last one to be ranked. With valid, test is not even known."""
    seen = graph if split == "test" else without_test(graph)
    if not len(getattr(seen, split)):
        other = "" if split == "valid" else "; --split valid goes without"
        raise UserError(f"{graph.name}: a comparison needs triples in {split}, found none{other}")
    return Arena(seen, known_answers(seen), settings, SPLITS[split], graph.digest, device, watch)


def refuse_early(comparison: Comparison) -> None:
    """Tell every mistake before anything is trained.

    Rows are told apart by the graphs' names. Of several graphs one is enough for those who need not meet
    everywhere; a matrix may have holes.
    """
    names = [arena.graph.name for arena in comparison.arenas]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"two graphs are called {quoted(twice)}: give one of them, or rename a folder")
    for contestant in comparison.contestants:
        refusals = [refusal(contestant, arena) for arena in comparison.arenas]
        found = [error for error in refusals if error is not None]
        may_be_absent = contestant.kind in ("published", "model")
        if found and (len(found) == len(refusals) or not may_be_absent):
            raise found[0]


def refusal(contestant: Contestant, arena: Arena) -> UserError | None:
    """Why a contestant cannot be measured there, if so."""
    try:
        contestant.refuse(arena)
    except UserError as error:
        return error
    return None


def compared(
    comparison: Comparison, tell: Callable[[Meeting, dict[str, Any]], None] = lambda *_: None
) -> dict[str, Any]:
    """All rows under the names that programs rely on; `tell` hears of every result."""
    refuse_early(comparison)
    if comparison.out is not None:
        prepare(comparison.out)
    results: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for meeting in comparison.meetings():
        if refusal(meeting.contestant, meeting.arena) is None:
            found = result_of(meeting, comparison.out)
            tell(meeting, found)
            results.setdefault((id(meeting.arena), id(meeting.contestant)), []).append(found)
    rows = [
        row_of(arena, contestant, results[id(arena), id(contestant)])
        for arena in comparison.arenas
        for contestant in comparison.contestants
        if (id(arena), id(contestant)) in results
    ]
    answer = {
        "rows": rows,
        "graphs": [arena.graph.name for arena in comparison.arenas],
        "models": [contestant.name for contestant in comparison.contestants],
        "seeds": list(comparison.seeds),
        "split": comparison.arenas[0].splits[-1],
        "matrix": matrix(comparison, rows),
        "settings": {arena.graph.name: arena.settings.as_dict() for arena in comparison.arenas},
    }
    if comparison.out is not None:
        write_whole(comparison.out / SUMMARY, json.dumps(answer, indent=1) + "\n")
    return answer


def prepare(folder: Path) -> None:
    """The folder for finished results; other people's files are not mixed with them."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{shown(folder)}: expected a folder for the comparison, found a file")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / FINISHED).is_dir():
        raise UserError(f"{shown(folder)}: holds other files and no comparison; name a new folder")
    make_folder(folder / FINISHED)


def result_of(meeting: Meeting, folder: Path | None) -> dict[str, Any]:
    """The kept result, or a new one. A failure is told in its row and not kept: others go on."""
    file = meeting.file(folder) if folder else None
    kept = None if file is None else kept_in(file)
    if kept is not None:
        return {**kept, "kept": True}
    try:
        found = meeting.contestant.measure(meeting.arena, meeting.seed)
    except UserError as error:
        nothing = ("valid", "test", "seconds", "train_seconds", "epochs", "parameters")
        return {"seed": meeting.seed, **dict.fromkeys(nothing), "failed": str(error)}
    result = plain_json({"seed": meeting.seed, **found, "failed": None})
    if file is not None:
        write_whole(file, json.dumps({"model": meeting.contestant.name, **result}) + "\n")
    return {**result, "kept": False}


def kept_in(file: Path) -> dict[str, Any] | None:
    """The result in a file; None where there is none that can be read."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def row_of(arena: Arena, contestant: Contestant, results: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over seeds, their spread, and every seed's own result."""
    good = [result for result in results if not result["failed"]]
    failed = next((result["failed"] for result in results if result["failed"]), None)
    return {
        "model": contestant.name,
        "valid": mean_metrics(result["valid"] for result in good),
        "test": mean_metrics(result["test"] for result in good),
        "seconds": mean_of(result["seconds"] for result in good),
        "train_seconds": mean_of(result["train_seconds"] for result in good),
        "spread": {
            split: spread_of(r[split]["mrr"] for r in good if r[split]) for split in ("valid", "test")
        },
        "seeds": len(good),
        "parameters": good[0]["parameters"] if good else None,
        "epochs": mean_of(result["epochs"] for result in good),
        "graph": arena.graph.name,
        "device": contestant.device(arena),
        "kind": contestant.kind,
        "structure": contestant.facts.get("structure"),
        "found_on": contestant.facts.get("found_on"),
        "published": contestant.kind == "published",
        "failed": failed,
        "runs": [{key: value for key, value in result.items() if key != "model"} for result in results],
    }


def mean_metrics(some: Iterable[dict[str, Any] | None]) -> dict[str, Any] | None:
    """The mean of each metric; None where there is nothing."""
    found = [metrics for metrics in some if metrics]
    if not found:
        return None
    means = {name: mean_of(metrics[name] for metrics in found) for name in found[0]}
    return {**means, "count": found[0]["count"]}


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of those that are there."""
    found = [value for value in values if value is not None]
    return fmean(found) if found else None


def spread_of(values: Iterable[float]) -> float | None:
    """The standard deviation over seeds; none with one."""
    found = list(values)
    return stdev(found) if len(found) > 1 else None


def matrix(comparison: Comparison, rows: Sequence[dict[str, Any]]) -> list[list[float | None]] | None:
    """MRR of the last split by model and graph, as in the paper's Table V; None for one graph."""
    if len(comparison.arenas) == 1:
        return None
    split = comparison.arenas[0].splits[-1]
    mrr = {(row["model"], row["graph"]): row[split]["mrr"] for row in rows if row[split]}
    graphs = [arena.graph.name for arena in comparison.arenas]
    return [[mrr.get((one.name, graph)) for graph in graphs] for one in comparison.contestants]
