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
from autosf.embedding.storage import MEMORY, ROWS, Storage, is_finite, running_sums, stored
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
    storage: Storage = MEMORY,
) -> Trained:
    """Train until the epochs are done or validation no longer improves; `watch` sees every state between."""
    refuse_odd_dimension(settings.dimension, structure.parts)
    refuse_empty(graph)
    refuse_unstorable(settings, device, storage)
    place = torch.device(device)
    state = moved(own(state, settings, storage) if state else start(graph, settings, seed, storage), place)
    run = epoch_runner(graph, structure, settings, seed=seed, device=place, clock=clock)

    def model_of(weights: Weights) -> Model:
        return Model(structure, *weights, settings.reciprocal)

    check = None if validate is None else lambda weights: validate(model_of(weights))
    state, ending = learned(run, state, settings, check, watch, storage)
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
    storage: Storage = MEMORY,
) -> tuple[State, str]:
    """The state after as many epochs as it takes, and why they ended, whatever kind of model is trained."""
    try:
        while not state.is_over(settings.epochs, settings.patience):
            after = run(state)
            if has_diverged(after):
                return state, "diverged"
            state = validated(averaged(after, settings, storage), settings, validate, storage)
            watch(state)
    except KeyboardInterrupt:
        return state, "interrupted"
    return state, "all epochs" if state.epochs >= settings.epochs else "no better"


def has_diverged(after: State) -> bool:
    """Whether the loss of the last epoch or a weight after it, which its last step has changed, is not finite."""
    return not (
        np.isfinite(after.curve[-1].loss) and is_finite(after.entities) and is_finite(after.relations)
    )


def refuse_unstorable(settings: TrainingSettings, device: str, storage: Storage) -> None:
    """Files take the place of memory only where steps touch some rows, and where the CPU can map them."""
    if storage.folder is None:
        return
    if not changes_in_place(settings):
        raise UserError(
            f"training on disk: the {settings.loss} loss changes all rows in every step;"
            " use loss sampled-softmax, logistic or hinge"
        )
    if device != "cpu":
        raise UserError(f"training on disk: expected the device cpu, found {device}")


def start(graph: KnowledgeGraph, settings: TrainingSettings, seed: int, storage: Storage = MEMORY) -> State:
    """Normal embeddings of the start scale: symmetric in sign, so that the extended invariances are exact."""
    if seed >= 2**63:
        raise UserError(f"seed: expected a number below 2^63, found {seed}")
    generator = torch.Generator().manual_seed(seed)
    relations = len(graph.relations) * (2 if settings.reciprocal else 1)

    def drawn(matrix: Tensor) -> Tensor:
        for part in torch.split(matrix, ROWS):
            part.normal_(generator=generator).mul_(settings.start_scale)
        return matrix

    entities = drawn(storage.zeros("entities", len(graph.entities), settings.dimension))
    sums = {} if storage.folder is None else running_sums({}, len(entities), settings, storage)
    return State(entities, drawn(torch.empty(relations, settings.dimension)), sums)


def own(state: State, settings: TrainingSettings, storage: Storage) -> State:
    """A given state to go on from: in the storage, its best weights apart from the last ones, which may change."""
    best = state.best_entities
    if storage.folder is not None:
        return stored(state, settings, storage)
    if best is None or best.data_ptr() != state.weights[0].data_ptr() or not changes_in_place(settings):
        return state
    assert state.best_relations is not None
    return replace(state, best_entities=best.clone(), best_relations=state.best_relations.clone())


def averaged(state: State, settings: TrainingSettings, storage: Storage = MEMORY) -> State:
    """The state with its running average over epochs, each epoch's share falling with age.

    The average lies nearer to the minimum than any one epoch: it validates better early, and less at random.
    """
    past = settings.averaging
    if not past:
        return state
    share = (1 - past) / (1 - past**state.epochs)  # as if the first epochs had no zeros before them

    def mixed(name: str, new: Tensor, place: Storage = MEMORY) -> Tensor:
        old: Tensor | None = getattr(state, name)
        if old is None:
            return place.copy(name, new)
        return old.lerp_(new, share) if changes_in_place(settings) else old.lerp(new, share)

    return replace(
        state,
        average_entities=mixed("average_entities", state.entities, storage),
        average_relations=mixed("average_relations", state.relations),
    )


def validated(
    state: State,
    settings: TrainingSettings,
    validate: Callable[[Weights], float] | None,
    storage: Storage = MEMORY,
) -> State:
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
    if changes_in_place(settings) and state.epochs < settings.epochs:  # after the last epoch nothing changes
        entities = storage.copy("best_entities", entities, into=state.best_entities)
        relations = relations.clone()
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
        best_entities=there(state.best_entities),
        best_relations=there(state.best_relations),
    )
