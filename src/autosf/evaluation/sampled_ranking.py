"""Ranks estimated from some candidates: for graphs where ranking among all entities takes too long.

A rank is 1 + the number of entities that score higher (ties count half), known answers left out. That number is
a sum over all entities, and a sum can be estimated from a sample. The entities of a query are cut in two: those
that stand in the asked place of the relation somewhere in the known triples, where the rivals of a true answer
mostly are, and all the rest. Half of the candidates are drawn from each, without repetition, all where there
are no more; one drawn stands for as many as were not. Each estimated rank is unbiased, and exact where the
candidates are all entities. MRR and hits are functions of ranks that bend: from estimated ranks they
come out a little too high, the less so the more candidates there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.answering import scores_against
from autosf.errors import UserError
from autosf.evaluation.ranking import Ranking, Ranks
from autosf.graph.keys import consecutive

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.evaluation.ranking import Rankable
    from autosf.graph.known_answers import Answers, KnownAnswers

AT_ONCE = 512  # triples of one relation that are scored together


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Candidates, ascending, and how many entities each of them stands for. [m]"""

    entities: NDArray[np.int64]
    weights: NDArray[np.float64]


@torch.no_grad()
def rank_sampled(
    model: Rankable,
    triples: NDArray[np.int32],
    known: KnownAnswers,
    *,
    candidates: int,
    rng: np.random.Generator,
) -> Ranks:
    """Estimated filtered ranks of each triple's head and tail, from `count` candidates for each relation and side.

    The numbers of candidates of the result are those of all entities, which the ranks are estimates for.
    """
    if candidates < 2:
        raise UserError(f"candidates: expected a number from 2, found {candidates}")
    found = np.empty((4, len(triples)))
    order = np.argsort(triples[:, 1], kind="stable")
    starts = np.flatnonzero(np.diff(triples[order, 1], prepend=-1))
    for members in np.split(order, starts[1:]) if len(order) else []:
        h, r, t = triples[members].astype(np.int64).T
        heads, tails = (
            sample(pool(side, int(r[0])), side.width, candidates, rng) for side in (known.tails, known.heads)
        )
        found[:2, members] = _estimates(
            model.entities, heads, (t, r, h), known.heads, lambda e, r: model.head_query(r, e)
        )
        found[2:, members] = _estimates(model.entities, tails, (h, r, t), known.tails, model.tail_query)
    others = found[1::2].astype(np.int64)
    return Ranks(triples, found[0], found[2], others[0], others[1])


def rank_among(
    model: Rankable, triples: NDArray[np.int32], known: KnownAnswers, candidates: int, seed: int = 0
) -> Ranks:
    """Exact ranks, or ranks estimated from so many candidates where that is fewer than all and not 0."""
    return ranker(triples, known, candidates, seed)(model)


def ranker(
    triples: NDArray[np.int32], known: KnownAnswers, candidates: int, seed: int = 0
) -> Callable[[Rankable], Ranks]:
    """`rank_among` for one model after the other, all with the same candidates, those of the seed."""
    if not candidates or candidates >= known.tails.width:
        return Ranking(triples, known)
    return lambda model: rank_sampled(
        model, triples, known, candidates=candidates, rng=np.random.default_rng(seed)
    )


def pool(asked: Answers, relation: int) -> NDArray[np.int64]:
    """The entities from which a relation is asked, ascending: those that stand on that side of it. [p]"""
    first, last = np.searchsorted(asked.keys, [relation * asked.width, (relation + 1) * asked.width])
    return asked.keys[first:last] - relation * asked.width


def sample(likely: NDArray[np.int64], entities: int, size: int, rng: np.random.Generator) -> Sample:
    """About `size` candidates, half of them from the `likely` ones, ascending."""
    rest = entities - len(likely)
    of_likely = min(len(likely), max(size // 2, size - rest))
    of_rest = min(rest, size - of_likely)
    some = rng.choice(likely, of_likely, replace=False) if of_likely else likely[:0]
    others = _drawn_outside(likely, entities, of_rest, rng)
    chosen = np.concatenate([some, others])
    weights = np.repeat([len(likely) / max(of_likely, 1), rest / max(of_rest, 1)], [len(some), len(others)])
    order = np.argsort(chosen)
    return Sample(chosen[order], weights[order])


def _drawn_outside(
    likely: NDArray[np.int64], entities: int, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Distinct entities that are not among the likely ones, each with the same chance. [size]

    Where most entities are outside and few are wanted, drawing again beats listing them.
    """
    if 4 * (len(likely) + size) > entities:
        outside = np.delete(np.arange(entities), likely)
        return rng.choice(outside, size, replace=False)
    found = np.empty(0, np.int64)
    while len(found) < size:
        found = np.concatenate([found, rng.integers(0, entities, 2 * (size - len(found)) + 8)])
        _, first = np.unique(found, return_index=True)
        found = found[np.sort(first)]
        found = found[~_is_in(likely, found)]
    return found[:size]


def _is_in(ascending: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the wanted are among ascending numbers. [n]"""
    return _places(ascending, wanted)[1] if len(ascending) else np.zeros(len(wanted), dtype=bool)


def _places(
    ascending: NDArray[np.int64], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Where each of the wanted would be among ascending numbers, of which there are some, and whether it is."""
    places = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return places, ascending[places] == wanted


def _estimates(
    entities: Tensor,
    drawn: Sample,
    asked: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    known: Answers,
    query_of: Callable[[Tensor, Tensor], Tensor],
) -> NDArray[np.float64]:
    """Estimated rank and number of candidates of each triple: (entity asked from, relation, answer). [2, n]"""
    found = np.empty((2, len(asked[0])))
    rows = entities.index_select(0, torch.from_numpy(drawn.entities).to(entities.device))
    for start in range(0, len(asked[0]), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        sources, links, answers = (column[part] for column in asked)
        e, r = (torch.from_numpy(np.ascontiguousarray(ids)).to(entities.device) for ids in (sources, links))
        behind = _is_above(entities, rows, query_of(e, r), answers)
        # Triples that ask the same, as those of a hub do, share its known answers: these may be many.
        first, query = _distinct(sources, links)
        starts, ends = known.slices(entities=sources[first], relations=links[first])
        others = known.answers[consecutive(starts, ends - starts)].astype(np.int64)
        asker = np.repeat(np.arange(len(first)), ends - starts)
        places, there = _places(drawn.entities, others)
        hidden = np.zeros((len(drawn.entities), len(first)), dtype=bool)
        hidden[places[there], asker[there]] = True
        behind[hidden[:, query]] = 0
        places, there = _places(drawn.entities, answers)
        behind[places[there], np.flatnonzero(there)] = 0
        found[0, part] = 1 + drawn.weights @ behind
        is_known = _is_in(asker * len(entities) + others, query * len(entities) + answers)
        found[1, part] = len(entities) - ((ends - starts)[query] - is_known)
    return found


def _distinct(
    sources: NDArray[np.int64], links: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each distinct query is met first, and which of them each query is."""
    numbers = links * (sources.max(initial=0) + 1) + sources
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    return first, which


def _is_above(
    entities: Tensor, rows: Tensor, queries: Tensor, answers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """1 where a candidate scores above a query's true answer, 1/2 where both score the same, else 0. [m, n]

    The true answers are scored in the same product, so that equal embeddings have equal scores, but for a last
    bit where the product's edge is rounded otherwise.
    """
    true, places = np.unique(answers, return_inverse=True)
    all_rows = torch.cat([rows, entities.index_select(0, torch.from_numpy(true).to(entities.device))])
    scores = scores_against(all_rows, queries)
    scores = torch.nan_to_num(scores, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    found: NDArray[np.float32] = scores.cpu().numpy()
    of_answer = found[len(rows) + places, np.arange(len(answers))]
    candidates = found[: len(rows)]
    above: NDArray[np.float64] = (candidates > of_answer) + (candidates == of_answer) / 2
    return above
