"""Alg. 1: embeddings of a graph for a structure, with validation, best weights kept, and exact resumption.

All that is random is drawn from generators made from (seed, epoch), so that a state after an epoch is all
there is to save, and going on from it leads to the same weights as never having stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.model import Model
from autosf.embedding.multiclass import Workspace
from autosf.embedding.optimisers import Optimiser
from autosf.embedding.queries import batches, training_queries
from autosf.embedding.settings import TrainingSettings, refuse_odd_dimension
from autosf.embedding.steps import multiclass_gradients
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.graph.knowledge_graph import KnowledgeGraph


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch came to; `valid_mrr` where the model was validated after it."""

    number: int
    loss: float
    seconds: float  # of training alone
    valid_mrr: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Training between two epochs: everything needed to go on."""

    entities: Tensor
    relations: Tensor
    entity_sums: dict[str, Tensor] = field(default_factory=dict)
    relation_sums: dict[str, Tensor] = field(default_factory=dict)
    curve: tuple[Epoch, ...] = ()
    best_entities: Tensor | None = None
    best_relations: Tensor | None = None

    @property
    def epochs(self) -> int:
        return len(self.curve)

    @property
    def best(self) -> Epoch | None:
        """The validated epoch with the highest MRR, the first among equals."""
        validated = [epoch for epoch in self.curve if epoch.valid_mrr is not None]
        return max(validated, key=lambda epoch: epoch.valid_mrr or 0.0, default=None)

    def stale(self) -> int:
        """Validations since the best one."""
        best = self.best
        return sum(
            e.valid_mrr is not None and best is not None and e.number > best.number for e in self.curve
        )


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """The best model, its curve, and why training ended."""

    model: Model
    state: State
    ending: str  # "all epochs", "no better", "diverged", "interrupted"

    @property
    def train_seconds(self) -> float:
        return sum(epoch.seconds for epoch in self.state.curve)


def train(
    graph: KnowledgeGraph,
    structure: Structure,
    settings: TrainingSettings,
    *,
    seed: int,
    clock: Callable[[], float],
    device: str = "cpu",
    validate: Callable[[Model], float] | None = None,
    watch: Callable[[State], None] = lambda _: None,
    state: State | None = None,
) -> Trained:
    """Train until the epochs are done or validation no longer improves; `watch` sees every state between."""
    refuse_odd_dimension(settings.dimension, structure.parts)
    if not len(graph.train):
        raise UserError(f"{graph.name}: expected triples to train on, found none")
    place = torch.device(device)
    state = moved(state or start(graph, settings, seed), place)
    run = epoch_runner(graph, structure, settings, seed, place, clock)
    while state.epochs < settings.epochs:
        try:
            after = run(state)
        except KeyboardInterrupt:
            return Trained(best_model(structure, state, settings), state, "interrupted")
        if not np.isfinite(after.curve[-1].loss):
            return Trained(best_model(structure, state, settings), state, "diverged")
        state = validated(after, structure, settings, validate)
        watch(state)
        if settings.patience and state.stale() >= settings.patience:
            return Trained(best_model(structure, state, settings), state, "no better")
    return Trained(best_model(structure, state, settings), state, "all epochs")


def start(graph: KnowledgeGraph, settings: TrainingSettings, seed: int) -> State:
    """Normal embeddings of the start scale: symmetric in sign, so that the extended invariances are exact."""
    generator = torch.Generator().manual_seed(seed)
    relations = len(graph.relations) * (2 if settings.reciprocal else 1)

    def drawn(rows: int) -> Tensor:
        return torch.randn(rows, settings.dimension, generator=generator) * settings.start_scale

    return State(drawn(len(graph.entities)), drawn(relations))


def epoch_runner(
    graph: KnowledgeGraph,
    structure: Structure,
    settings: TrainingSettings,
    seed: int,
    device: torch.device,
    clock: Callable[[], float],
) -> Callable[[State], State]:
    """A function that trains one epoch; queries and working memory are made once."""
    queries = training_queries(graph, settings.reciprocal)
    work: Workspace | None = None

    def run(state: State) -> State:
        nonlocal work
        started, number = clock(), state.epochs
        entities = Optimiser(state.entities.clone(), settings, state.entity_sums)
        relations = Optimiser(state.relations.clone(), settings, state.relation_sums)
        work = work or Workspace.of(state.entities, settings.batch_size, settings.score_megabytes)
        generator = torch.Generator(device).manual_seed(hash_of(seed, number))
        rng = np.random.default_rng((seed, number))
        rate = settings.learning_rate * settings.decay**number
        total = torch.zeros((), device=device)
        with torch.no_grad():
            for batch in batches(queries, settings.batch_size, rng, device):
                found = multiclass_gradients(
                    structure, entities.matrix, relations.matrix, batch, settings, work, generator
                )
                entities.step(found.entities, rate)
                relations.step(found.relations, rate)
                if settings.unit_ball:
                    project_to_unit_ball(entities.matrix)
                total += found.loss * batch.triples
        loss = float(total) / len(queries.answers)
        return replace(
            state,
            entities=entities.matrix,
            relations=relations.matrix,
            entity_sums=entities.state(),
            relation_sums=relations.state(),
            curve=(*state.curve, Epoch(number + 1, loss, clock() - started)),
        )

    return run


def validated(
    state: State, structure: Structure, settings: TrainingSettings, validate: Callable[[Model], float] | None
) -> State:
    """The state with its validation MRR where one is due, and the best weights so far."""
    due = settings.validate_every and (
        state.epochs % settings.validate_every == 0 or state.epochs == settings.epochs
    )
    if validate is None or not due:
        return state
    best = state.best
    mrr = validate(Model(structure, state.entities, state.relations, settings.reciprocal))
    state = replace(state, curve=(*state.curve[:-1], replace(state.curve[-1], valid_mrr=mrr)))
    if best is not None and best.valid_mrr is not None and mrr <= best.valid_mrr:
        return state
    return replace(state, best_entities=state.entities, best_relations=state.relations)


def best_model(structure: Structure, state: State, settings: TrainingSettings) -> Model:
    """The best validated weights, or the last ones where none were validated."""
    if state.best_entities is not None and state.best_relations is not None:
        return Model(structure, state.best_entities, state.best_relations, settings.reciprocal)
    return Model(structure, state.entities, state.relations, settings.reciprocal)


def project_to_unit_ball(matrix: Tensor) -> None:
    """Rows longer than one are cut to length one, in place (the released code's habit)."""
    matrix.div_(matrix.norm(dim=1, keepdim=True).clamp_(min=1))


def hash_of(seed: int, number: int) -> int:
    """A seed for torch's generator that differs for every epoch of every seed."""
    return int(np.random.SeedSequence((seed, number)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def moved(state: State, device: torch.device) -> State:
    """The state's tensors on the device; running sums stay where torch keeps them."""
    return replace(state, entities=state.entities.to(device), relations=state.relations.to(device))
