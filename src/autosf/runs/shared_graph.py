"""A graph as workers see it: ids and known answers in files that all of them map, without labels or test split.

The driver writes them once; a worker's own memory does not hold them, however many workers there are. Known
answers are those of train and valid, so that nothing in a search depends on the test triples; the benchmarks'
usual protocol, which also hides the test's answers while validation is ranked, is there for the asking.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from autosf.embedding.sealed_folder import Kind, open_sealed, save_sealed
from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.known_answers import Answers, KnownAnswers, known_answers
from autosf.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

KIND = Kind("graph shared by workers", "graph.json", "autosf shared graph", 1)
SEEN = ("train", "valid")
ARRAYS = (
    *SEEN,
    *(f"{side}_{part}" for side in ("tails", "heads") for part in ("keys", "offsets", "answers")),
)


@dataclass(frozen=True, slots=True, eq=False)
class SearchGraph:
    """What a trial may see of a graph: it has no test split, and its labels are numbers only."""

    graph: KnowledgeGraph
    known: KnownAnswers


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """The same as plain arrays, in the order of ARRAYS, for whoever keeps or sends them."""

    name: str
    entities: int
    relations: int
    arrays: tuple[NDArray[Any], ...]


def without_test(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The same graph and ids with an empty test split."""
    return replace(graph, test=np.empty((0, 3), np.int32))


def share(graph: KnowledgeGraph, folder: Path, hide_test: bool = False) -> None:
    """Write what workers need of the graph; a search needs triples to train on and to validate with."""
    for split in SEEN:
        if not len(getattr(graph, split)):
            raise UserError(f"{graph.name}: a search needs triples in {split}, found none")
    known = known_answers(graph) if hide_test else known_answers(without_test(graph), SEEN)
    arrays = dict(
        zip(ARRAYS, (graph.train, graph.valid, *parts(known.tails), *parts(known.heads)), strict=True)
    )

    def write(beside: Path) -> list[str]:
        for name, array in arrays.items():
            np.save(beside / f"{name}.npy", array)
        return file_names({})

    sizes = {"entities": len(graph.entities), "relations": len(graph.relations)}
    save_sealed(folder, KIND, {"name": graph.name, **sizes}, write)


def shared(folder: Path) -> SearchGraph:
    """The graph in the folder, mapped into memory and read-only."""
    return search_graph(stored(folder))


def stored(folder: Path) -> Stored:
    """What the folder holds, mapped into memory and read-only."""
    facts = open_sealed(folder, KIND, file_names)
    arrays = tuple(mapped(folder / name) for name in file_names(facts))
    return Stored(facts["name"], facts["entities"], facts["relations"], arrays)


def entity_count(folder: Path) -> int:
    """How many entities the graph in the folder has; its arrays are not looked at."""
    return int(open_sealed(folder, KIND, lambda _: [])["entities"])


def search_graph(found: Stored) -> SearchGraph:
    """The graph over the same memory."""
    train, valid, *rows = found.arrays
    width = found.entities
    graph = KnowledgeGraph(
        found.name,
        unlabelled(width, "entity"),
        unlabelled(found.relations, "relation"),
        train,
        valid,
        np.empty((0, 3), np.int32),
    )
    tails, heads = (Answers(keys, offsets, answers, width) for keys, offsets, answers in (rows[:3], rows[3:]))
    return SearchGraph(graph, KnownAnswers(tails, heads))


def parts(answers: Answers) -> tuple[NDArray[Any], ...]:
    return answers.keys, answers.offsets, answers.answers


def file_names(_: dict[str, Any]) -> list[str]:
    return [f"{name}.npy" for name in ARRAYS]


def mapped(path: Path) -> NDArray[Any]:
    """The array in the file, as plain as any other, but for being read-only and in nobody's own memory."""
    return np.asarray(np.load(path, mmap_mode="r"))


def unlabelled(count: int, kind: str) -> Vocabulary:
    """A vocabulary of which only the size is known; it takes no memory."""
    return Vocabulary(pl.repeat(None, count, dtype=pl.Null, eager=True), kind)
