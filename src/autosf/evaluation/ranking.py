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

from autosf.embedding.answering import scores_against
from autosf.evaluation.asked_side import MOST, SCRATCH, Side, sums_between

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.evaluation.asked_side import AskedBatch
    from autosf.graph.known_answers import KnownAnswers

    # Goes over the scores of some queries by chunks of entities, each with its first one's number; may be called
    # again and yields the same. [chunk, queries]
    Passes = Callable[[], Iterable[tuple[int, Tensor]]]

SCORE_BYTES = 128 << 20  # what the scores of one batch of queries may take
FEWEST = 16  # queries at a time: with fewer, a product waits for the memory that holds the entities
STREAMED = 8  # times as many queries go together where entities come in chunks: fewer passes over them


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
    return Ranking(triples, known, batch=batch, score_bytes=score_bytes)(model)


class Ranking:
    """Ranks of the same triples for one model after the other, as while validating.

    Which queries there are, and which answers they have, is worked out for the first model and kept for the next
    ones, if it is small: on a small graph it takes longer than the scores.
    """

    def __init__(
        self,
        triples: NDArray[np.int32],
        known: KnownAnswers,
        *,
        batch: int = 512,
        score_bytes: int = SCORE_BYTES,
    ) -> None:
        self._triples, self._known = triples, known
        self._batch, self._score_bytes = batch, score_bytes
        self._kept: dict[tuple[int, torch.device], tuple[Side, Side]] = {}

    @torch.no_grad()
    def __call__(self, model: Rankable) -> Ranks:
        """Filtered ranks of each triple's head and tail among all entities."""
        space = _Workspace.of(model, self._batch, self._score_bytes)
        return _ranks(
            space,
            self._triples,
            *self._sides(space.batch, space.entities.device),
            head_scores=lambda tails, relations: space.passes(model.head_query(relations, tails)),
            tail_scores=lambda heads, relations: space.passes(model.tail_query(heads, relations)),
        )

    @torch.no_grad()
    def of_scores(self, scorer: Scorer, device: str = "cpu") -> Ranks:
        """The same for a model of any kind, which is asked, and answers, on the device."""
        space = _Workspace.without_rows(self._known.tails.width, self._batch, device)

        def usable(scores: Tensor) -> Passes:
            whole = torch.nan_to_num(scores.T, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
            chunks = [(0, whole.contiguous())]
            return lambda: chunks

        return _ranks(
            space,
            self._triples,
            *self._sides(space.batch, space.entities.device),
            head_scores=lambda tails, relations: usable(scorer.head_scores(relations, tails)),
            tail_scores=lambda heads, relations: usable(scorer.tail_scores(heads, relations)),
        )

    def _sides(self, batch: int, device: torch.device) -> tuple[Side, Side]:
        """The queries for heads and those for tails, `batch` at a time."""
        found = self._kept.get((batch, device))
        if found is None:
            heads, relations, tails = (self._triples[:, side] for side in range(3))
            found = (
                Side.of(tails, relations, heads, self._known.heads, batch, device),
                Side.of(heads, relations, tails, self._known.tails, batch, device),
            )
            if all(side.is_small() for side in found):
                self._kept[batch, device] = found
        return found


def rank_scores(
    scorer: Scorer, triples: NDArray[np.int32], known: KnownAnswers, *, batch: int = 512, device: str = "cpu"
) -> Ranks:
    """As `rank`, for a model of any kind; it is asked for at most `batch` queries at a time."""
    return Ranking(triples, known, batch=batch).of_scores(scorer, device)


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
    scores = scores_against(entities, query)[:, 0]
    scores = torch.nan_to_num(scores, nan=-torch.inf, posinf=torch.inf, neginf=-torch.inf)
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
    def without_rows(cls, entities: int, batch: int, device: str) -> _Workspace:
        """One for scores that somebody else computes, in float32."""
        rows = torch.empty(entities, 0, device=device)
        scratch = rows.new_empty(max(SCRATCH, batch, MOST))
        return cls(rows, 0.0, rows.new_empty(0), scratch, batch, chunk=entities)

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
        scores_against(entities, query, out=scores)
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
        sums = torch.zeros(width, dtype=_exact(scores.device), device=scores.device)
        for part in torch.split(scores, rows):
            signs = self.scratch[: len(part) * width].view(len(part), width)
            torch.sub(part, true_scores, out=signs)  # inf - inf is NaN, whose sign torch has as 0: a tie
            sums += signs.sign_().sum(0)  # whole numbers below 2^24: exact in float32
        return sums


def _ranks(
    space: _Workspace,
    triples: NDArray[np.int32],
    for_heads: Side,
    for_tails: Side,
    *,
    head_scores: Callable[[Tensor, Tensor], Passes],
    tail_scores: Callable[[Tensor, Tensor], Passes],
) -> Ranks:
    """The ranks by functions from the entities and relations of some queries to their scores."""
    head_rank, head_candidates = _ranks_of_side(space, for_heads, head_scores)
    tail_rank, tail_candidates = _ranks_of_side(space, for_tails, tail_scores)
    return Ranks(triples, head_rank, tail_rank, head_candidates, tail_candidates)


def _ranks_of_side(
    space: _Workspace, side: Side, passes_of: Callable[[Tensor, Tensor], Passes]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rank and number of candidates of each triple's answer on one side, in the triples' order. [n] each"""
    ranks = np.empty(side.triples)
    candidates = np.empty(side.triples, dtype=np.int64)
    for some in side.batches():
        passes = passes_of(some.entities, some.relations)
        picked = _picked_from(passes(), some, space)
        true_scores, known_scores = picked[: len(some.order)], picked[len(some.order) :]
        sums = _sums_over_all(space, passes(), true_scores, some)
        off = _sums_over_known(known_scores.cpu().numpy(), true_scores.cpu().numpy(), some)
        others = len(space.entities) - 1 - some.removed
        ranks[some.order] = 1 + (others + sums.cpu().numpy() - off) / 2
        candidates[some.order] = others + 1
    return ranks, candidates


def _picked_from(chunks: Iterable[tuple[int, Tensor]], some: AskedBatch, space: _Workspace) -> Tensor:
    """The score of each pair of an entity and a query. [n]"""
    rows, columns = some.rows, some.columns
    if space.chunk >= len(space.entities):
        return torch.cat([_picked(scores, rows, columns) for _, scores in chunks])
    order = np.argsort(rows, kind="stable")
    ordered, parts = rows[order], []
    for start, scores in chunks:
        first, last = np.searchsorted(ordered, [start, start + len(scores)])
        here = order[first:last]
        parts.append(_picked(scores, rows[here] - start, columns[here]))
    found = torch.cat(parts)
    found[torch.from_numpy(order).to(found.device)] = found.clone()
    return found


def _picked(scores: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Tensor:
    """scores[row, column] of each pair. [n]"""
    places = torch.from_numpy(rows * scores.shape[1] + columns).to(scores.device)
    return scores.view(-1).index_select(0, places)


def _exact(device: torch.device) -> torch.dtype:
    """What sums signs exactly. Apple's GPUs have no float64; their float32 is exact up to 16 million entities."""
    return torch.float32 if device.type == "mps" else torch.float64


def _sums_over_all(
    space: _Workspace, chunks: Iterable[tuple[int, Tensor]], true_scores: Tensor, some: AskedBatch
) -> Tensor:
    """For each target, the sum of signs over all entities. [targets] float64"""
    sums = torch.zeros(len(true_scores), dtype=_exact(true_scores.device), device=true_scores.device)
    for _, scores in chunks:
        if some.rounds is None:
            sums += scores.index_select(1, some.query_of_target).sub_(true_scores).sign_().sum(0)
        for columns, chosen in some.rounds or ():
            sums[chosen] += space.sign_sums(scores[:, columns], true_scores[chosen])
    return sums


def _sums_over_known(
    known_scores: NDArray[np.floating], true_scores: NDArray[np.floating], some: AskedBatch
) -> NDArray[np.int64]:
    """For each target, the sum of signs over its query's known answers."""
    sums = np.empty(len(true_scores), dtype=np.int64)
    for met in some.meetings():
        found, against = known_scores[met.known], true_scores[met.targets]
        signs = (found > against).view(np.int8) - (found < against).view(np.int8)
        sums[met.part] = sums_between(signs, met.ends)
    return sums
