"""Training runs over queries, not triples: each unique (h, r, ?) and (?, r, t) once, with all its answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.multiclass import Targets
from autosf.graph.keys import consecutive
from autosf.graph.known_answers import head_queries, tail_queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True, slots=True, eq=False)
class TrainingQueries:
    """All tail queries, then all head queries. The answers of query i are answers[offsets[i]:offsets[i+1]]."""

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]
    offsets: NDArray[np.int64]
    answers: NDArray[np.int32]
    tail_queries: int  # how many of them ask for the tail

    def __len__(self) -> int:
        return len(self.entities)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some queries, those asking for the tail first, with their targets; made on the CPU."""

    entities: Tensor
    relations: Tensor
    tail_queries: int
    targets: Targets
    triples: int

    def on(self, device: torch.device) -> Batch:
        """The same on the training's device."""
        if self.entities.device == device:
            return self
        return replace(
            self,
            entities=self.entities.to(device),
            relations=self.relations.to(device),
            targets=self.targets.on(device),
        )


def training_queries(graph: KnowledgeGraph, reciprocal: bool) -> TrainingQueries:
    """The queries of the graph's train split; with reciprocal relations all of them ask for the tail."""
    sizes = {"entities": len(graph.entities), "relations": len(graph.relations)}
    tails, heads = tail_queries(graph.train, **sizes), head_queries(graph.train, **sizes)
    shift = len(graph.relations) if reciprocal else 0
    return TrainingQueries(
        entities=np.concatenate([tails.entities, heads.entities]),
        relations=np.concatenate([tails.relations, heads.relations + np.int32(shift)]),
        offsets=np.concatenate([tails.offsets, heads.offsets[1:] + tails.offsets[-1]]),
        answers=np.concatenate([tails.answers, heads.answers]),
        tail_queries=len(tails) + (len(heads) if reciprocal else 0),
    )


def in_pieces(queries: TrainingQueries, most: int) -> TrainingQueries:
    """The same answers, but a query with more than `most` of them comes several times, with some each time."""
    counts = np.diff(queries.offsets)
    pieces = -(-counts // most)
    query = np.repeat(np.arange(len(counts)), pieces)
    starts = queries.offsets[query] + most * consecutive(np.zeros_like(pieces), pieces)
    return TrainingQueries(
        entities=queries.entities[query],
        relations=queries.relations[query],
        offsets=np.append(starts, queries.offsets[-1]),
        answers=queries.answers,
        tail_queries=int(pieces[: queries.tail_queries].sum()),
    )


def batches(queries: TrainingQueries, size: int, rng: np.random.Generator) -> Iterator[Batch]:
    """Every query once, in random order, `size` at a time."""
    order = rng.permutation(len(queries))
    for start in range(0, len(order), size):
        yield batch_of(queries, np.sort(order[start : start + size]))


def batch_of(queries: TrainingQueries, chosen: NDArray[np.int64]) -> Batch:
    """The chosen queries, ascending, with their answers gathered."""
    starts = queries.offsets[chosen]
    counts = queries.offsets[chosen + 1] - starts
    rows = np.repeat(np.arange(len(chosen)), counts)
    places = consecutive(starts, counts)
    targets = Targets(
        rows=tensor(rows),
        starts=tensor(np.cumsum(counts) - counts),
        answers=tensor(queries.answers[places]),
        counts=torch.from_numpy(counts.astype(np.float32)),
    )
    return Batch(
        entities=tensor(queries.entities[chosen]),
        relations=tensor(queries.relations[chosen]),
        tail_queries=int(np.searchsorted(chosen, queries.tail_queries)),
        targets=targets,
        triples=len(rows),
    )


def tensor(ids: NDArray[np.integer]) -> Tensor:
    """As torch takes indices: 64 bits."""
    return torch.from_numpy(ids.astype(np.int64, copy=False))
