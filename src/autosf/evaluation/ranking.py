"""Filtered ranks of the true answers, both sides (Sec. V-B): no sort, no mask matrix, one product a query.

With s the scores of a query's N candidates and s* the true answer's, the realistic rank, the mean over
all orders of equal scores, needs one sum only:

    rank = 1 + #greater + #equal / 2 = 1 + (others + sum of sign(s - s*)) / 2

where the others are the candidates but the true one. Known answers leave by the same sum: their signs are
taken off it, and they are no longer others. All signs of a query come from one row of scores, the true
answer's score included, so that equal is equal to the last bit.

A score that is not a number counts as minus infinity: it ties with its like and is behind all the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from autosf.evaluation.grouping import TargetsByQuery, targets_by_query
from autosf.graph.keys import consecutive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.graph.known_answers import Answers, KnownAnswers

    # Goes over the scores of some queries by chunks of entities, each with its first one's number; may be called
    # again and yields the same. [chunk, queries]
    Passes = Callable[[], Iterable[tuple[int, Tensor]]]

SCORE_BYTES = 128 << 20  # what the scores of one batch of queries may take
FEWEST = 16  # queries at a time: with fewer, a product waits for the memory that holds the entities
STREAMED = 8  # times as many queries go together where entities come in chunks: fewer passes over them
SCRATCH = 1 << 18  # signs at a time: they stay in a core's cache
PAIRS = 1 << 20  # pairs of a target and a known answer at a time
FEW = 8  # targets of a query up to here are counted in rounds, above it at once
MOST = 1 << 12  # targets of one query counted at once


class Rankable(Protocol):
    """What ranking needs of a model: queries whose inner products with the entities are the scores."""

    @property
    def entities(self) -> Tensor: ...

    def tail_query(self, heads: Tensor, relations: Tensor) -> Tensor: ...

    def head_query(self, relations: Tensor, tails: Tensor) -> Tensor: ...


class Scorer(Protocol):
    """What ranking needs of any other model: the scores of all N entities for some queries. [n, N] each"""

    def tail_scores(self, heads: Tensor, relations: Tensor) -> Tensor: ...

    def head_scores(self, relations: Tensor, tails: Tensor) -> Tensor: ...


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """Filtered ranks of [n, 3] `triples`: of the head among all heads, of the tail among all tails. [n] each

    Ranks are float64, 1 is best, halves come from ties; candidates count the true one and all that are
    not known answers.
    """

    triples: NDArray[np.int32]
    head_rank: NDArray[np.float64]
    tail_rank: NDArray[np.float64]
    head_candidates: NDArray[np.int64]
    tail_candidates: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.triples)

    def where(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> Ranks:
        """The ranks of some of the triples, by a mask or by places."""
        return Ranks(
            self.triples[chosen],
            self.head_rank[chosen],
            self.tail_rank[chosen],
            self.head_candidates[chosen],
            self.tail_candidates[chosen],
        )


@torch.no_grad()
def rank(
    model: Rankable,
    triples: NDArray[np.int32],
    known: KnownAnswers,
    *,
    batch: int = 512,
    score_bytes: int = SCORE_BYTES,
) -> Ranks:
    """Filtered ranks of each triple's head and tail among all entities, equal to `rank_plainly`.

    Triples that share a query share its row of scores. Memory: `score_bytes` at most, and a few MB. So many
    entities that it would not hold a fair number of rows come in chunks, twice: the true scores are known after
    the first pass, and compared in the second with scores that are the same to the last bit.
    """
    space = _Workspace.of(model, batch, score_bytes)
    return _ranks(
        space,
        triples,
        known,
        head_scores=lambda tails, relations: space.passes(model.head_query(relations, tails)),
        tail_scores=lambda heads, relations: space.passes(model.tail_query(heads, relations)),
    )


@torch.no_grad()
def rank_scores(
    scorer: Scorer, triples: NDArray[np.int32], known: KnownAnswers, *, batch: int = 512
) -> Ranks:
    """As `rank`, for a model of any kind; it is asked for at most `batch` queries at a time."""

    def usable(scores: Tensor) -> Passes:
        whole = torch.nan_to_num(scores.T, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf).contiguous()
        return lambda: [(0, whole)]

    return _ranks(
        _Workspace.without_rows(known.tails.width, batch),
        triples,
        known,
        head_scores=lambda tails, relations: usable(scorer.head_scores(relations, tails)),
        tail_scores=lambda heads, relations: usable(scorer.tail_scores(heads, relations)),
    )


@torch.no_grad()
def rank_plainly(model: Rankable, triples: NDArray[np.int32], known: KnownAnswers) -> Ranks:
    """The definition: for each triple score all entities, leave out the other known answers, and count."""
    found = np.empty((4, len(triples)))
    for place, (head, relation, tail) in enumerate(torch.from_numpy(triples.astype(np.int64))):
        h, r, t = int(head), int(relation), int(tail)
        head_query = model.head_query(relation[None], tail[None])
        tail_query = model.tail_query(head[None], relation[None])
        found[:2, place] = _rank_of_one(model.entities, head_query, h, known.heads_of(r, t))
        found[2:, place] = _rank_of_one(model.entities, tail_query, t, known.tails_of(h, r))
    candidates = found[1::2].astype(np.int64)
    return Ranks(triples, found[0], found[2], candidates[0], candidates[1])


def _rank_of_one(entities: Tensor, query: Tensor, true: int, known: NDArray[np.int32]) -> tuple[float, int]:
    """Rank and number of candidates of one true answer."""
    scores = torch.nan_to_num(entities @ query[0], nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
    is_other = torch.ones(len(scores), dtype=torch.bool)
    is_other[torch.from_numpy(known.astype(np.int64))] = False
    is_other[true] = False
    others = scores[is_other]
    greater, equal = int((others > scores[true]).sum()), int((others == scores[true]).sum())
    return 1 + greater + equal / 2, len(others) + 1


@dataclass(frozen=True, slots=True, eq=False)
class _Workspace:
    """What all batches share: entities, and memory that is allocated once.

    Most of the time of a plain version goes into page faults on fresh score matrices.
    """

    entities: Tensor  # [N, d]
    longest: float  # the largest norm of an entity
    scores: Tensor  # flat; viewed as [chunk, queries]
    scratch: Tensor  # flat; viewed as [rows, targets]
    batch: int  # queries at a time
    chunk: int  # entities at a time

    @classmethod
    def of(cls, model: Rankable, batch: int, score_bytes: int) -> _Workspace:
        dtype = torch.promote_types(model.entities.dtype, torch.float32)  # signs are summed up in it
        entities = model.entities.detach().to(dtype)
        whole, chunk = score_bytes // max(1, len(entities) * dtype.itemsize), len(entities)
        if whole >= min(batch, FEWEST):
            batch = min(batch, whole)
        else:
            batch *= STREAMED
            chunk = max(1, min(chunk, score_bytes // (batch * dtype.itemsize)))
        return cls(
            entities=entities,
            longest=float(torch.linalg.vector_norm(entities, dim=1).max()) if len(entities) else 0.0,
            scores=entities.new_empty(chunk * batch),
            scratch=entities.new_empty(max(SCRATCH, batch, MOST)),
            batch=batch,
            chunk=chunk,
        )

    @classmethod
    def without_rows(cls, entities: int, batch: int) -> _Workspace:
        """One for scores that somebody else computes, in float32."""
        scratch = torch.empty(max(SCRATCH, batch, MOST))
        return cls(torch.empty(entities, 0), 0.0, torch.empty(0), scratch, batch, chunk=entities)

    def passes(self, query: Tensor) -> Passes:
        """The scores of some queries by chunks of entities; a chunk is overwritten by the next."""
        asked = query.to(self.entities.dtype)
        if self.chunk >= len(self.entities):
            whole = [(0, self.score(asked, self.entities))]
            return lambda: whole
        starts = range(0, len(self.entities), self.chunk)
        return lambda: (
            (start, self.score(asked, self.entities[start : start + self.chunk])) for start in starts
        )

    def score(self, query: Tensor, entities: Tensor) -> Tensor:
        """Scores of entities for some queries, [entities, queries], without NaN; overwritten by the next call.

        Entities first: at d = 64 this product is about twice as fast as query @ entities.T on a CPU.
        """
        scores = self.scores[: len(entities) * len(query)].view(len(entities), len(query))
        torch.mm(entities, query.T, out=scores)
        largest = self.longest * torch.linalg.vector_norm(query, dim=1).max()  # bounds all scores
        if not torch.isfinite(largest):
            torch.nan_to_num_(scores, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
        return scores

    def sign_sums(self, scores: Tensor, true_scores: Tensor) -> Tensor:
        """For each target the sum over all entities of sign(score - true score). [targets] float64

        `scores` is [N, targets], or [N, 1] where all targets are of one query. Three passes in cache over
        floats: torch's comparisons into bytes, and sums over those, take more than twice as long.
        """
        width = len(true_scores)
        rows = len(self.scratch) // width
        sums = torch.zeros(width, dtype=torch.float64, device=scores.device)
        for part in torch.split(scores, rows):
            signs = self.scratch[: len(part) * width].view(len(part), width)
            torch.sub(part, true_scores, out=signs)  # inf - inf is NaN, whose sign torch has as 0: a tie
            sums += signs.sign_().sum(0)  # whole numbers below 2^24: exact in float32
        return sums


def _ranks(
    space: _Workspace,
    triples: NDArray[np.int32],
    known: KnownAnswers,
    *,
    head_scores: Callable[[Tensor, Tensor], Passes],
    tail_scores: Callable[[Tensor, Tensor], Passes],
) -> Ranks:
    """The ranks by functions from the entities and relations of some queries to their scores."""
    heads, relations, tails = (triples[:, side] for side in range(3))
    by_tail = targets_by_query(entities=tails, relations=relations, targets=heads, width=known.heads.width)
    by_head = targets_by_query(entities=heads, relations=relations, targets=tails, width=known.tails.width)
    head_rank, head_candidates = _ranks_of_side(space, by_tail, known.heads, head_scores)
    tail_rank, tail_candidates = _ranks_of_side(space, by_head, known.tails, tail_scores)
    return Ranks(triples, head_rank, tail_rank, head_candidates, tail_candidates)


def _ranks_of_side(
    space: _Workspace,
    grouped: TargetsByQuery,
    known: Answers,
    passes_of: Callable[[Tensor, Tensor], Passes],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rank and number of candidates of each triple's answer on one side, in the triples' order. [n] each"""
    device, entities = space.entities.device, len(space.entities)
    ranks = np.empty(len(grouped.order))
    candidates = np.empty(len(grouped.order), dtype=np.int64)
    for some in grouped.batches(space.batch):
        asked, links = (torch.from_numpy(ids).to(device) for ids in (some.entities, some.relations))
        passes = passes_of(asked, links)
        of_query = _known_of(some, known)
        rows = np.concatenate([some.targets, of_query.answers])
        picked = _picked_from(passes(), rows, np.concatenate([some.columns(), of_query.columns()]), space)
        true_scores, known_scores = picked[: len(some.targets)], picked[len(some.targets) :]
        sums = _sums_over_all(space, passes(), true_scores, some)
        off, removed = _sums_over_known(known_scores.cpu().numpy(), true_scores.cpu().numpy(), some, of_query)
        others = entities - 1 - removed
        ranks[some.order] = 1 + (others + sums.cpu().numpy() - off) / 2
        candidates[some.order] = others + 1
    return ranks, candidates


@dataclass(frozen=True, slots=True, eq=False)
class _KnownOf:
    """The known answers of some queries, query by query, and how many each has. [m], [q]"""

    answers: NDArray[np.int64]
    lengths: NDArray[np.int64]

    def columns(self) -> NDArray[np.int64]:
        """The query of each answer. [m]"""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)


def _known_of(some: TargetsByQuery, known: Answers) -> _KnownOf:
    starts, ends = known.slices(entities=some.entities, relations=some.relations)
    lengths = ends - starts
    return _KnownOf(known.answers[consecutive(starts, lengths)].astype(np.int64), lengths)


def _picked_from(
    chunks: Iterable[tuple[int, Tensor]],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    space: _Workspace,
) -> Tensor:
    """The score of each pair of an entity and a query. [n]"""
    if space.chunk >= len(space.entities):
        return torch.cat([_picked(scores, rows, columns) for _, scores in chunks])
    order = np.argsort(rows, kind="stable")
    ordered, parts = rows[order], []
    for start, scores in chunks:
        first, last = np.searchsorted(ordered, [start, start + len(scores)])
        some = order[first:last]
        parts.append(_picked(scores, rows[some] - start, columns[some]))
    found = torch.cat(parts)
    found[torch.from_numpy(order).to(found.device)] = found.clone()
    return found


def _picked(scores: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Tensor:
    """scores[row, column] of each pair. [n]"""
    places = torch.from_numpy(rows * scores.shape[1] + columns).to(scores.device)
    return scores.view(-1).index_select(0, places)


def _sums_over_all(
    space: _Workspace, chunks: Iterable[tuple[int, Tensor]], true_scores: Tensor, some: TargetsByQuery
) -> Tensor:
    """For each target, the sum of signs over all entities. [targets] float64"""
    sums = torch.zeros(len(true_scores), dtype=torch.float64, device=true_scores.device)
    rounds = [
        (columns, torch.from_numpy(targets).to(sums.device))
        for columns, targets in _rounds(some.counts(), some.offsets)
    ]
    for _, scores in chunks:
        for columns, chosen in rounds:
            sums[chosen] += space.sign_sums(scores[:, columns], true_scores[chosen])
    return sums


def _rounds(
    counts: NDArray[np.int64], offsets: NDArray[np.int64]
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Columns of scores beside the targets to compare them with, so that each target comes once.

    Queries come with the most targets first. Those with many take one round each, all targets against their
    only column; the rest go together, the first target of each, then the second of those that have one ...
    """
    many = int(np.count_nonzero(counts > FEW))
    for query in range(many):
        for start in range(offsets[query], offsets[query + 1], MOST):
            yield slice(query, query + 1), np.arange(start, min(start + MOST, offsets[query + 1]))
    for place in range(counts[many] if many < len(counts) else 0):
        end = int(np.count_nonzero(counts > place))
        yield slice(many, end), offsets[many:end] + place


def _sums_over_known(
    known_scores: NDArray[np.floating],
    true_scores: NDArray[np.floating],
    some: TargetsByQuery,
    known: _KnownOf,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each target, the sum of signs over its query's known answers, and how many others there are."""
    answers, lengths = known.answers, known.lengths
    query_of_target = some.columns()
    first = (np.cumsum(lengths) - lengths)[query_of_target]
    length = lengths[query_of_target]
    sums, others = np.zeros((2, len(length)), dtype=np.int64)
    for part in _parts(length):
        pairs = consecutive(first[part], length[part])
        ends = np.cumsum(length[part])
        against = np.repeat(true_scores[part], length[part])
        found = known_scores[pairs]
        signs = (found > against).view(np.int8) - (found < against).view(np.int8)
        is_other = answers[pairs] != np.repeat(some.targets[part], length[part])
        sums[part] = _sums_between(signs, ends)
        others[part] = _sums_between(is_other, ends)
    return sums, others


def _parts(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Consecutive slices whose lengths add up to about PAIRS, or of one."""
    total = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = total[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(total, before + PAIRS, side="right")))
        yield slice(start, end)
        start = end


def _sums_between(values: NDArray[np.int8] | NDArray[np.bool_], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sums of consecutive segments, which may be empty, by where each ends. [segments]"""
    running = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])[ends]
    return np.diff(running, prepend=0)
