"""One epoch of training: over all entities, over drawn ones, or over negatives; what is made once is made here."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.drawn import Draws, copied
from autosf.embedding.multiclass import Workspace
from autosf.embedding.optimisers import Optimiser
from autosf.embedding.queries import batches, training_queries
from autosf.embedding.sampled import Asked, contrasted_gradients
from autosf.embedding.sampling import Cache, Negatives, bernoulli, tail_chances, uniform
from autosf.embedding.settings import SOFTMAX
from autosf.embedding.state import Epoch, State
from autosf.embedding.steps import ask, dropped, multiclass_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.embedding.queries import Batch
    from autosf.embedding.settings import TrainingSettings
    from autosf.embedding.steps import Gradients
    from autosf.graph.knowledge_graph import KnowledgeGraph

    # An epoch in the memory of the two optimisers, at a learning rate: its mean loss per triple.
    Learn = Callable[[Optimiser, Optimiser, float, np.random.Generator], float]
    GradientsOf = Callable[[Tensor, Tensor, Batch, TrainingSettings, Workspace, Tensor | None], Gradients]

CACHED = 50  # entities that the cache sampler keeps for each query


def epoch_runner(
    graph: KnowledgeGraph,
    structure: Structure,
    settings: TrainingSettings,
    *,
    seed: int,
    device: torch.device,
    clock: Callable[[], float],
) -> Callable[[State], State]:
    """A function that trains one epoch and returns the state after it."""
    if settings.loss in SOFTMAX:
        epoch = drawn_epoch if settings.loss == "sampled-softmax" else multiclass_epoch
        learn = epoch(graph, partial(multiclass_gradients, structure), settings, device)
        return runner_of(learn, settings, seed=seed, clock=clock)
    cache = Cache(graph, CACHED, np.random.default_rng(0)) if settings.sampler == "cache" else None
    run = runner_of(
        sampled_epoch(graph, structure, settings, device, cache), settings, seed=seed, clock=clock
    )
    return run if cache is None else remembering(run, cache)


def remembering(run: Callable[[State], State], cache: Cache) -> Callable[[State], State]:
    """The epoch with the cache of negatives as a part of the state before and after it, in the same memory."""

    def remembered(state: State) -> State:
        if state.cached_tails is not None and state.cached_heads is not None:
            cache.kept = {True: state.cached_tails.numpy(), False: state.cached_heads.numpy()}
        tails, heads = (torch.from_numpy(cache.kept[side]) for side in (True, False))
        return replace(run(state), cached_tails=tails, cached_heads=heads)

    return remembered


def runner_of(
    learn: Learn, settings: TrainingSettings, *, seed: int, clock: Callable[[], float]
) -> Callable[[State], State]:
    """A function that goes through one epoch by `learn` and returns the state after it."""
    in_place = changes_in_place(settings)

    def run(state: State) -> State:
        started, number = clock(), state.epochs
        entities, relations = optimisers(state, settings, in_place)
        rate = settings.learning_rate * settings.decay**number
        rng = np.random.default_rng((seed, number))
        with torch.no_grad():
            loss = learn(entities, relations, rate, rng)
        return replace(
            state,
            entities=entities.matrix,
            relations=relations.matrix,
            entity_sums=entities.state(),
            relation_sums=relations.state(),
            curve=(*state.curve, Epoch(number + 1, loss, clock() - started)),
        )

    return run


def changes_in_place(settings: TrainingSettings) -> bool:
    """The sampled losses, made for graphs that fill the memory, train in the state's own tensors; the
    multi-class loss leaves the state before an epoch as it was, to fall back to."""
    return settings.loss != "multiclass"


def optimisers(state: State, settings: TrainingSettings, in_place: bool) -> tuple[Optimiser, Optimiser]:
    """Optimisers of entities and relations that go on from the state, in its memory or in a copy."""

    def own(tensor: Tensor) -> Tensor:
        return tensor if in_place else tensor.clone()

    def made(matrix: Tensor, sums: dict[str, Tensor]) -> Optimiser:
        return Optimiser(own(matrix), settings, {name: own(value) for name, value in sums.items()})

    return made(state.entities, state.entity_sums), made(state.relations, state.relation_sums)


def multiclass_epoch(
    graph: KnowledgeGraph,
    gradients_of: GradientsOf,
    settings: TrainingSettings,
    device: torch.device,
) -> Learn:
    """An epoch over all unique queries against all entities; its mean loss per triple."""
    queries = training_queries(graph, settings.reciprocal)
    work: list[Workspace] = []

    def learn(entities: Optimiser, relations: Optimiser, rate: float, rng: np.random.Generator) -> float:
        if not work:
            work.append(Workspace.of(entities.matrix, settings.batch_size, settings.score_megabytes))
        total = torch.zeros((), device=device)
        for batch in (made.on(device) for made in batches(queries, settings.batch_size, rng)):
            kept = dropped(len(batch.entities), settings, rng, entities.matrix)
            found = gradients_of(entities.matrix, relations.matrix, batch, settings, work[0], kept)
            entities.step(found.entities, rate)
            relations.step(found.relations, rate)
            if settings.unit_ball:
                project_to_unit_ball(entities.matrix)
            total += found.loss * batch.triples
        return float(total) / len(queries.answers)

    return learn


def drawn_epoch(
    graph: KnowledgeGraph, gradients_of: GradientsOf, settings: TrainingSettings, device: torch.device
) -> Learn:
    """The same against entities that are drawn for each step; only touched rows move."""
    draws = Draws(graph, settings)
    most = draws.most_entities(settings.batch_size)
    work: list[Workspace] = []

    def learn(entities: Optimiser, relations: Optimiser, rate: float, rng: np.random.Generator) -> float:
        if not work:
            like = entities.matrix.new_empty(most, entities.matrix.shape[1])
            work.append(Workspace.of(like, settings.batch_size, settings.score_megabytes))
        total = torch.zeros((), device=device)
        for asked in batches(draws.queries, settings.batch_size, rng):
            drawn = draws.draw(asked, rng).on(device)
            rows, links, batch = drawn.entity_rows, drawn.relation_rows, drawn.batch
            kept = dropped(len(batch.entities), settings, rng, entities.matrix)
            some = copied(entities.matrix, rows)
            told = relations.matrix if links is None else copied(relations.matrix, links)
            found = gradients_of(some, told, batch, settings, work[0].among(len(rows)), kept)
            entities.step_distinct_rows(rows, found.entities, rate)
            if links is None:
                relations.step(found.relations, rate)
            else:
                relations.step_distinct_rows(links, found.relations, rate)
            if settings.unit_ball:
                entities.matrix[rows] = project_to_unit_ball(entities.matrix[rows])
            total += found.loss * batch.triples
        return float(total) / len(draws.queries.answers)

    return learn


def sampled_epoch(
    graph: KnowledgeGraph,
    structure: Structure,
    settings: TrainingSettings,
    device: torch.device,
    cache: Cache | None,
) -> Learn:
    """An epoch over all triples, each against negatives of its own; only touched rows move."""
    reciprocal = len(graph.relations) if settings.reciprocal else 0
    drawer = negative_drawer(graph, structure, settings, cache)

    def learn(entities: Optimiser, relations: Optimiser, rate: float, rng: np.random.Generator) -> float:
        total, count = torch.zeros((), device=device), 0
        for triples in shuffled(graph.train, settings.batch_size, rng):
            found = drawer(triples, entities.matrix, relations.matrix, rng)
            asked, candidates = one_side(triples, found, reciprocal, device)
            kept = dropped(len(asked.entities), settings, rng, entities.matrix)
            step = contrasted_gradients(
                structure, entities.matrix, relations.matrix, asked, candidates, settings, kept
            )
            entities.step_rows(step.entity_rows, step.entities, rate)
            relations.step_rows(step.relation_rows, step.relations, rate)
            if settings.unit_ball:
                rows = torch.unique(step.entity_rows)
                entities.matrix[rows] = project_to_unit_ball(entities.matrix[rows])
            total += step.loss * len(triples)
            count += len(triples)
        return float(total) / count

    return learn


def shuffled(triples: NDArray[np.int32], size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int32]]:
    """Every triple once, in random order, `size` at a time."""
    order = rng.permutation(len(triples))
    for start in range(0, len(order), size):
        yield triples[order[start : start + size]]


def negative_drawer(
    graph: KnowledgeGraph, structure: Structure, settings: TrainingSettings, cache: Cache | None
) -> Callable[[NDArray[np.int32], Tensor, Tensor, np.random.Generator], Negatives]:
    """The chosen sampler as a function of a batch and the embeddings so far."""
    entities, wanted = len(graph.entities), settings.negatives
    if settings.sampler == "bernoulli":
        chances = tail_chances(graph)
        return lambda triples, _e, _r, rng: bernoulli(triples, entities, wanted, rng, chances)
    if cache is None:
        return lambda triples, _e, _r, rng: uniform(triples, entities, wanted, rng)
    reciprocal = len(graph.relations) if settings.reciprocal else 0

    def draw(triples: NDArray[np.int32], e: Tensor, r: Tensor, rng: np.random.Generator) -> Negatives:
        def score(some: NDArray[np.int32], side: bool, pool: NDArray[np.int64]) -> NDArray[np.float32]:
            negatives = Negatives(np.full(len(some), side), pool)
            asked, candidates = one_side(some, negatives, reciprocal, e.device)
            query = ask(structure, e[asked.entities], r[asked.relations], asked.tail_queries)
            scores: NDArray[np.float32] = torch.bmm(e[candidates], query[:, :, None])[:, :, 0].cpu().numpy()
            return scores

        cache.renew(triples, score, rng)
        return cache.draw(triples, wanted, rng)

    return draw


def one_side(
    triples: NDArray[np.int32], negatives: Negatives, reciprocal: int, device: torch.device
) -> tuple[Asked, Tensor]:
    """One query for each triple, for the side that its negatives replace; tail queries first."""
    order = np.argsort(~negatives.tails, kind="stable")
    (h, r, t), tails = triples[order].T, negatives.tails[order]
    asked = Asked(
        entities=moved(np.where(tails, h, t), device),
        relations=moved(np.where(tails, r, r + reciprocal), device),
        answers=moved(np.where(tails, t, h), device),
        tail_queries=len(triples) if reciprocal else int(tails.sum()),
    )
    return asked, moved(negatives.candidates[order], device)


def moved(array: NDArray[np.integer], device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device=device, dtype=torch.int64)


def project_to_unit_ball(matrix: Tensor) -> Tensor:
    """Rows longer than one are cut to length one, in place (the released code's habit)."""
    return matrix.div_(matrix.norm(dim=1, keepdim=True).clamp_(min=1))
