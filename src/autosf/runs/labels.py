"""The labels of a run's graph, kept apart from the ids that workers map: they never need them, its model does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from autosf.embedding.sealed_folder import Kind, open_sealed, save_sealed
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.vocabulary import Vocabulary
from autosf.runs.shared_graph import shared

if TYPE_CHECKING:
    from pathlib import Path

KIND = Kind("labels of a run", "labels.json", "autosf labels", 1)
FILES = {"entity": "entities.parquet", "relation": "relations.parquet"}


def keep_labels(graph: KnowledgeGraph, folder: Path) -> None:
    """Write the labels of all entities and relations."""

    def write(beside: Path) -> list[str]:
        for vocabulary in (graph.entities, graph.relations):
            pl.DataFrame({"label": vocabulary.labels}).write_parquet(beside / FILES[vocabulary.kind])
        return file_names({})

    save_sealed(folder, KIND, {}, write)


def labelled_graph(graph_folder: Path, labels: Path) -> KnowledgeGraph:
    """The graph that workers see, with its labels: still without a test split."""
    open_sealed(labels, KIND, file_names)
    seen = shared(graph_folder).graph
    entities, relations = (
        Vocabulary(pl.read_parquet(labels / name)["label"], kind) for kind, name in FILES.items()
    )
    return KnowledgeGraph(seen.name, entities, relations, seen.train, seen.valid, seen.test)


def file_names(_: dict[str, Any]) -> list[str]:
    return list(FILES.values())
