"""The best answers of queries: exact, in a settled order, in bounded memory.

Equal scores stand in the order of their ids, so that the answer never depends on how the work is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.graph.keys import consecutive

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.embedding.model import Model

SCORES_AT_ONCE = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """Candidates of queries, by query and then best first; ids are places, scores float64. [m] each"""

    query: NDArray[np.int64]
    candidate: NDArray[np.int64]
    score: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Hidden:
    """Candidates that are left out: of query i, `answers[starts[i]:ends[i]]` and, if given, `also[i]`."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    answers: NDArray[np.int32]
    also: NDArray[np.int32] | None = None

    def pairs(self, first: int, last: int) -> tuple[Tensor, Tensor]:
        """Query, counted from `first`, and candidate of all that queries `first` to `last` leave out."""
        starts, counts = self.starts[first:last], self.ends[first:last] - self.starts[first:last]
        query = np.repeat(np.arange(len(counts)), counts)
        answer = self.answers[consecutive(starts, counts)].astype(np.int64)
        if self.also is not None:
            query = np.append(query, np.arange(len(counts)))
            answer = np.append(answer, self.also[first:last].astype(np.int64))
        return torch.from_numpy(query), torch.from_numpy(answer)


def best_tails(
    model: Model, heads: Tensor, relations: Tensor, top: int, hidden: Hidden | None = None
) -> Best:
    """The best answers of each (h, r, ?)."""

    def queries(first: int, last: int) -> Tensor:
        return model.tail_query(heads[first:last], relations[first:last])

    return best(queries, len(heads), model.entities, top, hidden)


def best_heads(
    model: Model, relations: Tensor, tails: Tensor, top: int, hidden: Hidden | None = None
) -> Best:
    """The best answers of each (?, r, t)."""

    def queries(first: int, last: int) -> Tensor:
        return model.head_query(relations[first:last], tails[first:last])

    return best(queries, len(tails), model.entities, top, hidden)


def best_relations(
    model: Model, heads: Tensor, tails: Tensor, top: int, hidden: Hidden | None = None
) -> Best:
    """The best answers of each (h, ?, t), by `model.score`: both directions with reciprocal relations."""
    count = model.relation_count
    straight, reciprocal = model.relations[:count], model.relations[count:]

    def queries(first: int, last: int) -> Tensor:
        head, tail = heads[first:last], tails[first:last]
        forward = model.relation_query(head, tail)
        return torch.cat([forward, model.relation_query(tail, head)], 1) / 2 if model.reciprocal else forward

    rows = torch.cat([straight, reciprocal], 1) if model.reciprocal else straight  # one product for both
    return best(queries, len(heads), rows, top, hidden)


def nearest(rows: Tensor, place: int, top: int) -> Best:
    """The rows [N, d] with the largest cosine to the one at `place`, itself left out."""
    units = torch.nn.functional.normalize(rows.detach())
    itself = Hidden(np.array([0]), np.array([1]), np.array([place], np.int32))
    return best(lambda _first, _last: units[place : place + 1], 1, units, top, itself)


@torch.no_grad()
def best(
    queries: Callable[[int, int], Tensor],
    count: int,
    candidates: Tensor,
    top: int,
    hidden: Hidden | None = None,
    scores_at_once: int = SCORES_AT_ONCE,
) -> Best:
    """The `top` candidates, [N, d], with the largest inner products for each of `count` queries.

    `queries(first, last)` are the vectors of some of them, [last - first, d].
    """
    step = max(1, scores_at_once // max(1, len(candidates)))
    found = [_no_answers()]
    for first in range(0, count, step):
        last = min(first + step, count)
        scores = scores_by_query(candidates, queries(first, last))  # [last - first, N]
        if hidden is not None:
            query, answer = hidden.pairs(first, last)
            scores[query.to(scores.device), answer.to(scores.device)] = -torch.inf
        found.append(_best_of_rows(scores, top, first))
    return Best(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def scores_against(candidates: Tensor, queries: Tensor, out: Tensor | None = None) -> Tensor:
    """The inner products of candidates with queries, the same for equal candidates. [candidates, queries]

    A lone query is asked twice, and half of the answer is left: a product of a matrix and a vector is rounded in
    blocks of rows, each in its own way. On 40,943 candidates of 128 numbers that takes half the time, too.
    """
    if len(queries) != 1:
        return torch.mm(candidates, queries.T, out=out)
    scores = torch.mm(candidates, queries.repeat(2, 1).T)[:, :1]
    return scores.contiguous() if out is None else out.copy_(scores)


def scores_by_query(candidates: Tensor, queries: Tensor) -> Tensor:
    """The same by query. [queries, candidates]

    With queries first a product by several threads rounds equal candidates in several ways, too.
    """
    return scores_against(candidates, queries).T.contiguous()


Columns = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.float64]"]


def _best_of_rows(scores: Tensor, top: int, first: int) -> Columns:
    """The row's `top` best in order. Where the next one is worse, `topk` alone has found them; else see below."""
    if not scores.numel() or top < 1:
        return _no_answers()
    values, places = scores.topk(min(top + 1, scores.shape[1]), dim=1)
    last = min(top, scores.shape[1]) - 1
    unsettled = values.isnan().any(1)
    if values.shape[1] > top:
        unsettled |= values[:, last] == values[:, top]
    if unsettled.any():
        return _best_of_tied_rows(scores, top, first)
    reach = values[:, : last + 1] > -torch.inf
    query = reach.nonzero()[:, 0]
    return _in_order(query, places[:, : last + 1][reach], values[:, : last + 1][reach], top, first)


def _best_of_tied_rows(scores: Tensor, top: int, first: int) -> Columns:
    """All that reach the row's `top`-th score, put in order and cut: `topk` alone settles ties by chance.

    Several passes more over all scores than above: on 16 rows of 40,000 they take five times as long.
    """
    scores.masked_fill_(scores.isnan(), -torch.inf)
    bar = scores.topk(min(top, scores.shape[1]), dim=1, sorted=False).values.amin(1, keepdim=True)
    reach = (scores >= bar).logical_and_(scores > -torch.inf)
    query, candidate = reach.nonzero(as_tuple=True)
    return _in_order(query, candidate, scores[reach], top, first)


def _in_order(queries: Tensor, candidates: Tensor, scores: Tensor, top: int, first: int) -> Columns:
    """The answers by query, then best first, then by id; `top` of each query. Queries count from `first`."""
    query, candidate = queries.cpu().numpy(), candidates.cpu().numpy()
    score = scores.cpu().double().numpy()
    order = np.lexsort((candidate, -score, query))
    query, candidate, score = query[order], candidate[order], score[order]
    place = np.arange(len(query)) - np.searchsorted(query, query)
    kept = place < top
    return query[kept] + first, candidate[kept], score[kept]


def _no_answers() -> Columns:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64)
