"""Alg. 1: embeddings of a graph for a structure, with validation, best weights kept, and exact resumption.

All that is random is drawn from generators made from (seed, epoch), so that a state after an epoch is all
there is to save, and going on from it leads to the same weights as never having stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.epochs import changes_in_place, epoch_runner
from autosf.embedding.model import Model
from autosf.embedding.settings import TrainingSettings, refuse_odd_dimension
from autosf.embedding.state import State
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.graph.knowledge_graph import KnowledgeGraph

    Weights = tuple[Tensor, Tensor]  # of entities and relations, as in a state


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
    refuse_empty(graph)
    place = torch.device(device)
    state = moved(state or start(graph, settings, seed), place)
    run = epoch_runner(graph, structure, settings, seed=seed, device=place, clock=clock)

    def model_of(weights: Weights) -> Model:
        return Model(structure, *weights, settings.reciprocal)

    check = None if validate is None else lambda weights: validate(model_of(weights))
    state, ending = learned(run, state, settings, check, watch)
    return Trained(model_of(best_weights(state)), state, ending)


def refuse_empty(graph: KnowledgeGraph) -> None:
    """Training needs triples."""
    if not len(graph.train):
        raise UserError(f"{graph.name}: expected triples to train on, found none")


def learned(
    run: Callable[[State], State],
    state: State,
    settings: TrainingSettings,
    validate: Callable[[Weights], float] | None,
    watch: Callable[[State], None],
) -> tuple[State, str]:
    """The state after as many epochs as it takes, and why they ended, whatever kind of model is trained."""
    try:
        while state.epochs < settings.epochs:
            after = run(state)
            if not np.isfinite(after.curve[-1].loss):
                return state, "diverged"
            state = validated(averaged(after, settings), settings, validate)
            watch(state)
            if settings.patience and state.stale() >= settings.patience:
                return state, "no better"
    except KeyboardInterrupt:
        return state, "interrupted"
    return state, "all epochs"


def start(graph: KnowledgeGraph, settings: TrainingSettings, seed: int) -> State:
    """Normal embeddings of the start scale: symmetric in sign, so that the extended invariances are exact."""
    generator = torch.Generator().manual_seed(seed)
    relations = len(graph.relations) * (2 if settings.reciprocal else 1)

    def drawn(rows: int) -> Tensor:
        return torch.randn(rows, settings.dimension, generator=generator) * settings.start_scale

    return State(drawn(len(graph.entities)), drawn(relations))


def averaged(state: State, settings: TrainingSettings) -> State:
    """The state with its running average over epochs, each epoch's share falling with age.

    The average lies nearer to the minimum than any one epoch: it validates better early, and less at random.
    """
    past = settings.averaging
    if not past:
        return state
    share = (1 - past) / (1 - past**state.epochs)  # as if the first epochs had no zeros before them

    def mixed(old: Tensor | None, new: Tensor) -> Tensor:
        if old is None:
            return new.clone()
        return old.lerp_(new, share) if changes_in_place(settings) else old.lerp(new, share)

    return replace(
        state,
        average_entities=mixed(state.average_entities, state.entities),
        average_relations=mixed(state.average_relations, state.relations),
    )


def validated(state: State, settings: TrainingSettings, validate: Callable[[Weights], float] | None) -> State:
    """The state with its validation MRR where one is due, and the best weights so far."""
    due = settings.validate_every and (
        state.epochs % settings.validate_every == 0 or state.epochs == settings.epochs
    )
    if validate is None or not due:
        return state
    best = state.best
    entities, relations = state.weights
    mrr = validate((entities, relations))
    state = replace(state, curve=(*state.curve[:-1], replace(state.curve[-1], valid_mrr=mrr)))
    if best is not None and best.valid_mrr is not None and mrr <= best.valid_mrr:
        return state
    if changes_in_place(settings):
        entities, relations = entities.clone(), relations.clone()
    return replace(state, best_entities=entities, best_relations=relations)


def best_weights(state: State) -> Weights:
    """The best validated weights, or the last ones where none were validated."""
    if state.best_entities is not None and state.best_relations is not None:
        return state.best_entities, state.best_relations
    return state.weights


def moved(state: State, device: torch.device) -> State:
    """The state with its tensors on the device."""

    def there(value: Tensor | None) -> Tensor | None:
        return None if value is None else value.to(device)

    return replace(
        state,
        entities=state.entities.to(device),
        relations=state.relations.to(device),
        entity_sums={name: value.to(device) for name, value in state.entity_sums.items()},
        relation_sums={name: value.to(device) for name, value in state.relation_sums.items()},
        average_entities=there(state.average_entities),
        average_relations=there(state.average_relations),
    )
