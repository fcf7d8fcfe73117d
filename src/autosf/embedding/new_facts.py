"""The triples that a model holds most likely of all that are not known: a stream with a short memory.

All (h, r, ?) are scored, a slab at a time; of each slab only what reaches the worst of the best so far is
looked at. The result does not depend on how the stream is cut, up to the rounding of scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.answering import Hidden, best, scores_against
from autosf.embedding.kernels import contract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.embedding.model import Model
    from autosf.graph.known_answers import Answers

SLAB = 1 << 22  # scores at a time: few enough to stay in the last cache, enough for a fast product
Block = tuple["NDArray[np.int32]", "NDArray[np.int32]"]  # heads and relations of some queries, [n] each


@dataclass(frozen=True, slots=True, eq=False)
class ScoredTriples:
    """Triples [n, 3] int32 with their scores [n] float64, best first, equal ones in the order of ids."""

    triples: NDArray[np.int32]
    scores: NDArray[np.float64]


@torch.no_grad()
def new_facts(
    model: Model,
    blocks: Iterable[Block],
    known: Answers,
    top: int,
    *,
    each: int | None = None,
    loops: bool = False,
    scores_at_once: int = SLAB,
    progress: Callable[[int], None] = lambda _: None,
) -> ScoredTriples:
    """The `top` unknown triples over all queries in `blocks`, at most `each` of one query if that is given.

    Triples of an entity with itself are left out unless `loops`: bilinear models favour them without reason.

    Scores are the model's: the mean of both directions with reciprocal relations. `known` are the known tails.
    Memory: `scores_at_once` scores and the triples that reach the bar in one slab. `progress` is told how many
    queries were done.
    """
    found = ScoredTriples(np.empty((0, 3), np.int32), np.empty(0))
    slab = max(1, scores_at_once // max(1, len(model.entities)))
    space = model.entities.new_empty(len(model.entities) * slab if each is None else 0)
    for heads, relations in _slabs(blocks, slab):
        slices = known.slices(entities=heads, relations=relations)
        hidden = Hidden(*slices, known.answers, also=None if loops else heads)
        if each is None:
            bar = found.scores[-1] if len(found.scores) == top else -np.inf
            more = _above(bar, top, model, heads, relations, hidden, space)
        else:
            more = _best_of_each(each, model, heads, relations, hidden)
        found = _best_of_both(found, more, top) if len(more.scores) else found
        progress(len(heads))
    return found


def fact_query(model: Model, heads: Tensor, relations: Tensor) -> Tensor:
    """Vectors whose inner products with entities are `model.score` of (h, r, t) for every t. [n, d]

    The score is linear in t in both directions, so that their mean is one vector too.
    """
    forward = model.tail_query(heads, relations)
    if not model.reciprocal:
        return forward
    reciprocals = model.relations[relations + model.relation_count]
    backward = contract(model.structure, relation=reciprocals, tail=model.entities[heads])
    return (forward + backward) / 2


def _slabs(blocks: Iterable[Block], size: int) -> Iterator[Block]:
    for heads, relations in blocks:
        for start in range(0, len(heads), size):
            yield heads[start : start + size], relations[start : start + size]


def _above(
    bar: float,
    top: int,
    model: Model,
    heads: NDArray[np.int32],
    relations: NDArray[np.int32],
    hidden: Hidden,
    space: Tensor,
) -> ScoredTriples:
    """The triples of a slab of queries that reach the bar, which rises if they are too many."""
    query = fact_query(model, _ids(heads, model), _ids(relations, model))
    scores = space[: len(model.entities) * len(heads)].view(len(model.entities), len(heads))
    scores_against(model.entities, query, out=scores)  # entities first: twice as fast on a CPU
    left_out, answers = hidden.pairs(0, len(heads))
    scores[answers.to(scores.device), left_out.to(scores.device)] = -torch.inf
    hopeful = (~(scores.amax(0) < bar)).nonzero()[:, 0]  # most queries leave here, after one pass
    scores = scores if len(hopeful) == len(heads) else scores[:, hopeful]
    scores.masked_fill_(scores.isnan(), -torch.inf)
    if scores.numel() > top:
        bar = max(bar, float(scores.flatten().topk(top, sorted=False).values.min()))
    tail, place = (found.cpu().numpy() for found in (scores >= bar).nonzero(as_tuple=True))
    values = scores[tail, place].cpu().double().numpy()
    real = values > -np.inf
    tail, place, values = tail[real], hopeful.cpu().numpy()[place[real]], values[real]
    return ScoredTriples(_triples(heads[place], relations[place], tail), values)


def _best_of_each(
    each: int, model: Model, heads: NDArray[np.int32], relations: NDArray[np.int32], hidden: Hidden
) -> ScoredTriples:
    """The best tails of each query of a slab."""
    query = fact_query(model, _ids(heads, model), _ids(relations, model))
    found = best(lambda first, last: query[first:last], len(heads), model.entities, each, hidden)
    return ScoredTriples(_triples(heads[found.query], relations[found.query], found.candidate), found.score)


def _best_of_both(left: ScoredTriples, right: ScoredTriples, top: int) -> ScoredTriples:
    triples = np.concatenate([left.triples, right.triples])
    scores = np.concatenate([left.scores, right.scores])
    order = np.lexsort((triples[:, 2], triples[:, 1], triples[:, 0], -scores))[:top]
    return ScoredTriples(triples[order], scores[order])


def _triples(
    heads: NDArray[np.int32], relations: NDArray[np.int32], tails: NDArray[np.int64]
) -> NDArray[np.int32]:
    return np.stack([heads, relations, tails.astype(np.int32)], axis=1)


def _ids(ids: NDArray[np.int32], model: Model) -> Tensor:
    return torch.from_numpy(ids.astype(np.int64)).to(model.entities.device)
