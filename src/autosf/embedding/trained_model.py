"""A model with what makes it usable: the labels of its rows, the graph it knows, and how it came to be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from autosf.algebra.notebook import beside, facts, grid
from autosf.errors import UserError, quoted
from autosf.graph.knowledge_graph import KnowledgeGraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from autosf.embedding.model import Model
    from autosf.graph.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel:
    """A model, the vocabularies of its rows, and facts: what a model folder holds.

    `facts` is what JSON can hold: `graph` (name, digest, source), `settings`, `metrics`, `seed`, `versions`,
    `command`, ... `graph` holds the triples known to be true; None where they were left out.
    """

    model: Model
    entities: Vocabulary
    relations: Vocabulary
    facts: Mapping[str, Any]
    graph: KnowledgeGraph | None = None

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value}" for name, value in self._in_short())
        return f"<model of {self.graph_name}: {self.model.structure}, {shown}>"

    def _repr_html_(self) -> str:
        return beside(grid(self.model.structure), facts(f"model of {self.graph_name}", self._in_short()))

    def _in_short(self) -> list[tuple[str, object]]:
        metrics = self.facts.get("metrics")
        valid = metrics.get("valid") if isinstance(metrics, dict) else None
        return [
            ("entities", f"{len(self.entities):,}"),
            ("relations", f"{len(self.relations):,}"),
            ("dimension", self.model.dimension),
            *([("validation MRR", f"{valid['mrr']:.4f}")] if isinstance(valid, dict) else []),
        ]

    @property
    def graph_name(self) -> str:
        return str(_graph_facts(self).get("name", "graph"))


def with_graph(trained: TrainedModel, graph: KnowledgeGraph) -> TrainedModel:
    """The model with the triples of `graph`, which must be the one it was trained on, by its digest."""
    expected = _graph_facts(trained).get("digest")
    if expected not in (None, graph.digest):
        raise UserError(
            f"graph {quoted(graph.name)}: not the one the model was trained on: expected"
            f" {quoted(trained.graph_name)} with digest {str(expected)[:12]}, found {graph.digest[:12]}"
        )
    return replace(trained, graph=_in_the_models_ids(trained, graph))


def _in_the_models_ids(trained: TrainedModel, graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph in the model's numbering; two graphs of one digest may differ in labels that no triple uses."""
    if graph.entities.labels.equals(trained.entities.labels) and graph.relations.labels.equals(
        trained.relations.labels
    ):
        return graph
    splits = {split: _encoded(trained, graph, split) for split, _ in graph.splits()}
    return KnowledgeGraph(graph.name, trained.entities, trained.relations, **splits, warnings=graph.warnings)


def _encoded(trained: TrainedModel, graph: KnowledgeGraph, split: str) -> NDArray[np.int32]:
    columns = graph.columns(split)
    triples = np.empty((len(columns.heads), 3), dtype=np.int32)
    triples[:, 0] = trained.entities.encode(columns.heads)
    triples[:, 1] = trained.relations.encode(columns.relations)
    triples[:, 2] = trained.entities.encode(columns.tails)
    triples.flags.writeable = False
    return triples


def _graph_facts(trained: TrainedModel) -> Mapping[str, Any]:
    facts = trained.facts.get("graph")
    return facts if isinstance(facts, dict) else {}
