"""Gen-Approx, the paper's general approximator (appendix, "Details of Taking MLP as G").

The scores are <NN1(h, r), t> over all tails and <NN2(t, r), h> over all heads: two networks 2d-d-d with ReLU
between (128-64-64 for d = 64), trained together with the embeddings by Alg. 1 and the multi-class loss. Not a
scoring function of a triple: the two sides of (h, r, t) may score it differently.

Each network is a matrix of 3d + 2 rows of width d, and both lie below the relations' embeddings in one matrix.
So a state, its optimisers, its best weights and going on from it are those of every other training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from autosf.embedding.epochs import multiclass_epoch, runner_of
from autosf.embedding.multiclass import Workspace, multiclass
from autosf.embedding.regularisers import penalised
from autosf.embedding.steps import Gradients
from autosf.embedding.training import best_weights, learned, moved, refuse_empty, start
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from autosf.embedding.queries import Batch
    from autosf.embedding.settings import TrainingSettings
    from autosf.embedding.state import State
    from autosf.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True, slots=True, eq=False)
class GenApprox:
    """Embeddings of entities [N, d] and relations [R, d], and a network for each side. [3d + 2, d] each"""

    entities: Tensor
    relations: Tensor
    tail_network: Tensor  # NN1
    head_network: Tensor  # NN2

    @classmethod
    def of(cls, entities: Tensor, below: Tensor) -> GenApprox:
        """The model of a state's two matrices: below the relations lie the networks."""
        rows = network_rows(entities.shape[1])
        return cls(entities, *torch.split(below, [len(below) - 2 * rows, rows, rows]))

    def tail_query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Vectors whose inner products with entities are the scores of (h, r, ?). [n, d]"""
        return combined(self.tail_network, self.entities[heads], self.relations[relations])

    def head_query(self, relations: Tensor, tails: Tensor) -> Tensor:
        """Vectors whose inner products with entities are the scores of (?, r, t). [n, d]"""
        return combined(self.head_network, self.entities[tails], self.relations[relations])


HIGHEST_RATE = 0.1  # that its networks bear, where bilinear models train best with more


@dataclass(frozen=True, slots=True, eq=False)
class TrainedGenApprox:
    """The best model, its curve, and why training ended."""

    model: GenApprox
    state: State
    ending: str  # as of `training.Trained`


def train_gen_approx(
    graph: KnowledgeGraph,
    settings: TrainingSettings,
    *,
    seed: int,
    clock: Callable[[], float],
    device: str = "cpu",
    validate: Callable[[GenApprox], float] | None = None,
    watch: Callable[[State], None] = lambda _: None,
    state: State | None = None,
) -> TrainedGenApprox:
    """Train as `training.train` does, with `fitting` settings."""
    if settings.loss != "multiclass":
        raise UserError(f"setting loss: Gen-Approx is trained by multiclass only, found {settings.loss}")
    refuse_empty(graph)
    settings = fitting(settings)
    place = torch.device(device)
    epoch = multiclass_epoch(graph, gradients, settings, place)
    check = None if validate is None else lambda weights: validate(GenApprox.of(*weights))
    state, ending = learned(
        runner_of(epoch, settings, seed=seed, clock=clock),
        moved(state or started(graph, settings, seed), place),
        settings,
        check,
        watch,
    )
    return TrainedGenApprox(GenApprox.of(*best_weights(state)), state, ending)


def fitting(settings: TrainingSettings) -> TrainingSettings:
    """The settings without what only bilinear models have, and with a rate that its networks bear.

    Reciprocal relations would be a second way to tell the sides apart, and (h, ?, t) has no query here.
    """
    rate = min(settings.learning_rate, HIGHEST_RATE)
    return replace(settings, reciprocal=False, relation_prediction=0.0, learning_rate=rate)


def started(graph: KnowledgeGraph, settings: TrainingSettings, seed: int) -> State:
    """The embeddings' usual start, and networks that keep the size of what goes through them (He et al.)."""
    state, d = start(graph, settings, seed), settings.dimension
    generator = torch.Generator().manual_seed(seed + (1 << 40))  # not the embeddings' numbers again

    def network() -> Tensor:
        weights = torch.randn(network_rows(d), d, generator=generator)
        weights[: 2 * d] *= (2 / (2 * d)) ** 0.5
        weights[2 * d : 3 * d] *= (1 / d) ** 0.5
        weights[3 * d :] = 0
        return weights

    return replace(state, relations=torch.cat([state.relations, network(), network()]))


def network_rows(dimension: int) -> int:
    """Rows of a network 2d-d-d: 2d of the hidden layer, d of the output, and a bias of each."""
    return 3 * dimension + 2


def combined(network: Tensor, entities: Tensor, relations: Tensor) -> Tensor:
    """The network's answer to [e; r]. [n, d]"""
    d = entities.shape[1]
    hidden, output, biases = torch.split(network, [2 * d, d, 2])
    inner = torch.relu(torch.addmm(biases[0], torch.cat([entities, relations], dim=1), hidden))
    return torch.addmm(biases[1], inner, output)


def gradients(
    entities: Tensor,
    below: Tensor,
    batch: Batch,
    settings: TrainingSettings,
    work: Workspace,
    kept: Tensor | None = None,
) -> Gradients:
    """Loss and gradients of a batch of queries: over all entities by the kernel, from there by autograd.

    The regulariser is on the embeddings, as for bilinear models; the paper names none for the networks.
    """
    model = GenApprox.of(entities, below)
    sources = [entities[batch.entities], model.relations[batch.relations]]
    counts = batch.targets.counts / batch.triples
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in (*sources, model.tail_network, model.head_network)]
        queries = asked(batch.tail_queries, *leaves)
        queries = queries if kept is None else queries * kept
    found = queries.detach()
    loss, by_query, by_entity = multiclass(found, entities, batch.targets, work, 1 / batch.triples)
    if settings.regulariser == "dura":
        loss = loss + penalised(found, by_query, counts, "dura", settings.entity_weight)
    by_source, by_relation, *by_network = torch.autograd.grad(queries, leaves, by_query)
    loss = loss + penalised(sources[0], by_source, counts, settings.regulariser, settings.entity_weight)
    loss = loss + penalised(sources[1], by_relation, counts, settings.regulariser, settings.relation_weight)
    by_entity.index_add_(0, batch.entities, by_source)
    by_relations = torch.zeros_like(model.relations).index_add_(0, batch.relations, by_relation)
    return Gradients(loss, by_entity, torch.cat([by_relations, *by_network]))


def asked(tail_queries: int, e: Tensor, r: Tensor, tail_network: Tensor, head_network: Tensor) -> Tensor:
    """The query vectors of a batch: tail queries first, then head queries. [n, d]"""
    tails = combined(tail_network, e[:tail_queries], r[:tail_queries])
    return torch.cat([tails, combined(head_network, e[tail_queries:], r[tail_queries:])])
