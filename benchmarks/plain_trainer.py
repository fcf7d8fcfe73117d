"""The reference: per-triple two-sided training as a good engineer would write it in an hour.

`F.cross_entropy` over all entities, autograd, `torch.optim.Adagrad`, N3; ComplEx written with its own formula.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

if TYPE_CHECKING:
    from collections.abc import Iterator

    from autosf.graph.knowledge_graph import KnowledgeGraph


class PlainComplEx(torch.nn.Module):
    def __init__(self, entities: int, relations: int, d: int) -> None:
        super().__init__()
        self.entity = torch.nn.Embedding(entities, d)
        self.relation = torch.nn.Embedding(relations, d)
        for table in (self.entity, self.relation):
            torch.nn.init.normal_(table.weight, std=1e-3)

    def forward(self, triples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        h, r, t = self.entity(triples[:, 0]), self.relation(triples[:, 1]), self.entity(triples[:, 2])
        (h1, h2), (r1, r2), (t1, t2) = (x.chunk(2, dim=1) for x in (h, r, t))
        tails = torch.cat([h1 * r1 - h2 * r2, h1 * r2 + h2 * r1], dim=1) @ self.entity.weight.T
        heads = torch.cat([r1 * t1 + r2 * t2, r1 * t2 - r2 * t1], dim=1) @ self.entity.weight.T
        return tails, heads, [h, r, t]


def plain_steps(
    graph: KnowledgeGraph, model: PlainComplEx, optimiser: torch.optim.Optimizer, *, batch: int
) -> Iterator[float]:
    """The steps of one epoch, each told by its seconds."""
    triples = torch.from_numpy(graph.train.astype(np.int64))
    for chosen in torch.randperm(len(triples)).split(batch):
        started = time.perf_counter()
        part = triples[chosen]
        tails, heads, factors = model(part)
        loss = functional.cross_entropy(tails, part[:, 2]) + functional.cross_entropy(heads, part[:, 0])
        loss = loss + 0.05 * sum((factor.abs() ** 3).sum() for factor in factors) / len(part)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield time.perf_counter() - started
