"""Many structures trained side by side: on a small graph a step is mostly its calls, not its sums.

All structures see the same batches and the same dropped entries, those that the seed gives, so that these are made
once. Where there is a compiled step they then take it one after the other, and come to the bits of training each
alone. Elsewhere they are a `stack`, and one call of torch serves all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from autosf.embedding.epochs import optimisers
from autosf.embedding.multiclass import Workspace
from autosf.embedding.optimisers import Optimiser
from autosf.embedding.queries import batches, training_queries
from autosf.embedding.stack import Stack
from autosf.embedding.state import Epoch
from autosf.embedding.steps import dropped, multiclass_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.embedding.queries import Batch
    from autosf.embedding.settings import TrainingSettings
    from autosf.embedding.state import State
    from autosf.graph.knowledge_graph import KnowledgeGraph

    Owned = tuple[Tensor, dict[str, Tensor]]  # a matrix and its optimiser's running sums


def epoch_of_many(
    graph: KnowledgeGraph,
    settings: TrainingSettings,
    *,
    seed: int,
    device: torch.device,
    clock: Callable[[], float],
) -> Callable[[Sequence[Structure], Sequence[State]], list[State]]:
    """A function that trains some structures for one epoch, from states that have come equally far."""
    queries = training_queries(graph, settings.reciprocal)
    stacks: dict[tuple[Structure, ...], Stack] = {}
    rooms: list[Workspace] = []

    def company(structures: Sequence[Structure], states: Sequence[State]) -> Company:
        if not rooms:
            rooms.append(Workspace.of(states[0].entities, settings.batch_size, settings.score_megabytes))
        if rooms[0].kernel is not None:
            return OneByOne(structures, states, settings, rooms[0])
        key = tuple(structures)
        if key not in stacks:
            stacks[key] = Stack(structures, device)
        return Stacked(stacks[key], states, settings)

    def run(structures: Sequence[Structure], states: Sequence[State]) -> list[State]:
        began, number = clock(), states[0].epochs
        training = company(structures, states)
        rate = settings.learning_rate * settings.decay**number
        rng = np.random.default_rng((seed, number))
        total = torch.zeros(len(structures), device=device)
        with torch.no_grad():
            for batch in (made.on(device) for made in batches(queries, settings.batch_size, rng)):
                kept = dropped(len(batch.entities), settings, rng, states[0].entities)
                total += training.step(batch, kept, rate) * batch.triples
        losses = (total / len(queries.answers)).tolist()
        seconds = (clock() - began) / len(structures)
        return [
            replace(
                state,
                entities=entities,
                relations=relations,
                entity_sums=entity_sums,
                relation_sums=relation_sums,
                curve=(*state.curve, Epoch(number + 1, loss, seconds)),
            )
            for state, loss, ((entities, entity_sums), (relations, relation_sums)) in zip(
                states, losses, training.owned(), strict=True
            )
        ]

    return run


class Company(Protocol):
    """Structures under way together."""

    def step(self, batch: Batch, kept: Tensor | None, rate: float) -> Tensor:
        """One step of each, on the same batch; their mean losses per triple. [S]"""

    def owned(self) -> Sequence[tuple[Owned, Owned]]:
        """What each has of entities and of relations."""


class OneByOne:
    """Each structure by the compiled step, in the same memory."""

    def __init__(
        self,
        structures: Sequence[Structure],
        states: Sequence[State],
        settings: TrainingSettings,
        work: Workspace,
    ) -> None:
        self._structures, self._settings, self._work = structures, settings, work
        self._optimisers = [optimisers(state, settings, in_place=False) for state in states]

    def step(self, batch: Batch, kept: Tensor | None, rate: float) -> Tensor:
        losses = []
        for structure, (entities, relations) in zip(self._structures, self._optimisers, strict=True):
            found = multiclass_gradients(
                structure, entities.matrix, relations.matrix, batch, self._settings, self._work, kept
            )
            entities.step(found.entities, rate)
            relations.step(found.relations, rate)
            losses.append(float(found.loss))
        return torch.tensor(losses)

    def owned(self) -> list[tuple[Owned, Owned]]:
        return [((e.matrix, e.state()), (r.matrix, r.state())) for e, r in self._optimisers]


class Stacked:
    """All structures by one step of a stack."""

    def __init__(self, stack: Stack, states: Sequence[State], settings: TrainingSettings) -> None:
        self._stack, self._settings, self._count = stack, settings, len(states)
        self._entities = joined(settings, [(state.entities, state.entity_sums) for state in states])
        self._relations = joined(settings, [(state.relations, state.relation_sums) for state in states])

    def step(self, batch: Batch, kept: Tensor | None, rate: float) -> Tensor:
        loss, by_entity, by_relation = self._stack.gradients(
            self._entities.matrix, self._relations.matrix, batch, self._settings, kept
        )
        self._entities.step(by_entity, rate)
        self._relations.step(by_relation, rate)
        return loss

    def owned(self) -> list[tuple[Owned, Owned]]:
        each = parted(self._entities, self._count), parted(self._relations, self._count)
        return list(zip(*each, strict=True))


def joined(settings: TrainingSettings, owned: Sequence[Owned]) -> Optimiser:
    """One optimiser for the matrices of all structures, column beside column."""
    sums = {
        name: value.clone() if name == "step" else torch.cat([of_one[name] for _, of_one in owned], 1)
        for name, value in owned[0][1].items()
    }
    return Optimiser(torch.cat([matrix for matrix, _ in owned], 1), settings, sums)


def parted(optimiser: Optimiser, count: int) -> list[Owned]:
    """Each structure's own matrix and running sums."""

    def parts(matrix: Tensor) -> list[Tensor]:
        return [part.contiguous() for part in matrix.chunk(count, 1)]

    sums = {
        name: [value.clone() for _ in range(count)] if name == "step" else parts(value)
        for name, value in optimiser.state().items()
    }
    return [
        (matrix, {name: values[place] for name, values in sums.items()})
        for place, matrix in enumerate(parts(optimiser.matrix))
    ]
