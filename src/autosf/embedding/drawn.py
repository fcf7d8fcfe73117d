"""The multi-class loss over some entities that stand for all: drawn anew for every step.

A step sees the entities of its own queries and answers, and others drawn at random. One that is seen with
probability p stands for 1 / p entities, so that the sum of exponentials over those seen is on average that over
all; a query's own entities, which are always there, stand for themselves. Hubs are seen in most steps, by way of
some query, and stand for hardly more than themselves: their share of the sum, the largest, is hardly estimated.
A step is then that of the multi-class loss on a small graph, and touches no rows but those.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.multiclass import StandIns
from autosf.embedding.queries import in_pieces, training_queries
from autosf.graph.keys import sorted_distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.embedding.queries import Batch, TrainingQueries
    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph

MOST_ANSWERS = 16  # of a query in one step: all that a step asks of are entities it has to hold


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A batch whose ids are places among the rows that it touches. [entities], [relations]"""

    entity_rows: Tensor
    relation_rows: Tensor | None  # None where all are at hand
    batch: Batch

    def on(self, device: torch.device) -> Drawn:
        """The same on the training's device."""
        if self.entity_rows.device == device:
            return self
        links = self.relation_rows
        return Drawn(
            self.entity_rows.to(device), None if links is None else links.to(device), self.batch.on(device)
        )


class Draws:
    """What draws need of a graph: its queries, what each entity stands for, and room to number those of a step."""

    def __init__(self, graph: KnowledgeGraph, settings: TrainingSettings) -> None:
        self.queries = in_pieces(training_queries(graph, settings.reciprocal), MOST_ANSWERS)
        self._entities, self._count = len(graph.entities), min(settings.negatives, len(graph.entities))
        self._all_relations = settings.relation_prediction > 0
        self._stands_for: dict[int, NDArray[np.float32]] = {}  # by the queries of a batch
        self._place = np.zeros(self._entities, dtype=np.int64)

    def most_entities(self, batch_size: int) -> int:
        """The most entities that a step of `batch_size` queries can touch."""
        return min(self._entities, self._count + batch_size * (1 + MOST_ANSWERS))

    def draw(self, batch: Batch, rng: np.random.Generator) -> Drawn:
        """A batch against its own entities and drawn ones."""
        asked, answers = batch.entities.numpy(), batch.targets.answers.numpy()
        others = rng.choice(self._entities, self._count, replace=False, shuffle=False)
        rows = sorted_distinct(np.concatenate([others, asked, answers]))
        self._place[rows] = np.arange(len(rows))
        links, link_places = None, batch.relations
        if not self._all_relations:
            links, link_places = torch.unique(batch.relations, return_inverse=True)
        sources = torch.from_numpy(self._place[asked])
        targets = replace(
            batch.targets,
            answers=torch.from_numpy(self._place[answers]),
            drawn=StandIns(torch.from_numpy(self._weights(len(asked))[rows]), sources),
        )
        places = replace(batch, entities=sources, relations=link_places, targets=targets)
        return Drawn(torch.from_numpy(rows), links, places)

    def _weights(self, size: int) -> NDArray[np.float32]:
        """What each entity stands for in a batch of so many queries: an epoch's last one has less company."""
        if size not in self._stands_for:
            self._stands_for[size] = stands_for(self.queries, self._entities, self._count, size)
        return self._stands_for[size]


def stands_for(queries: TrainingQueries, entities: int, drawn: int, batch_size: int) -> NDArray[np.float32]:
    """One over the probability that a query sees an entity that is not its own, by a draw or by way of one of the
    other queries in its step. [N]"""
    stands_in = np.bincount(queries.answers, minlength=entities)
    stands_in += np.bincount(queries.entities, minlength=entities)
    company = min(1.0, (batch_size - 1) / max(1, len(queries) - 1))
    missed = (1 - drawn / entities) * (1 - company) ** stands_in
    return (1 / (1 - missed)).astype(np.float32)


def copied(matrix: Tensor, rows: Tensor) -> Tensor:
    """Some rows of a matrix, copied by one thread: threads of torch's would be waited for at each step where other
    processes have the cores (`hands`), and there is little to copy."""
    if matrix.device.type != "cpu":
        return matrix.index_select(0, rows)
    return torch.from_numpy(matrix.numpy().take(rows.numpy(), axis=0))  # half as long as by brackets
