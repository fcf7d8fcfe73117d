"""The paper's multi-class loss over all entities, exact, with its gradients written out.

For a query with n answers A the loss is n * logsumexp(scores) - sum of scores over A. With P = exp(scores),
z = row sums of P and w = n / z, its gradients are

    towards the query:    w * (E^T P) - sum of e_a over A
    towards the entities: P (w * q), and -q for each answer

so that the scores are touched four times: by the product that makes them, by exp in place, and by the two
products that use them up. Scores lie as [entities, queries]: at d = 64 the products run at 90 % of the
machine's best rate that way, and at 40 to 60 % the other way round. No maximum is subtracted, as float32
holds exp(x) for |x| < 87; a block in which a sum overflows or vanishes is done again with the maximum.
Queries are taken in blocks whose scores stay in cache, which also bounds the memory. Where the entities are drawn
from many (`drawn`), P is multiplied by how many each of them stands for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from autosf.embedding.compiled import kernel, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from autosf.embedding.compiled import Kernel

IN_CACHE = 2**25  # bytes of scores that stay there until they are used up
LOG2_E = 1.4426950408889634
CHUNK = 4096  # entities whose scores are made, raised and used for the query's gradient while in cache
SMALLEST, LARGEST = 1e-30, 1e36  # sums of float32 powers that are far from over- and underflow


@dataclass(frozen=True, slots=True, eq=False)
class StandIns:
    """How many entities each of those at hand stands for [N], and the one that each query asks from [n]."""

    stands_for: Tensor
    sources: Tensor

    def on(self, device: torch.device) -> StandIns:
        return StandIns(self.stands_for.to(device), self.sources.to(device))


@dataclass(frozen=True, slots=True, eq=False)
class Targets:
    """The answers of a batch's queries, query by query: `answers[k]` answers query `rows[k]`, the answers of
    query i begin at `starts[i]` and are `counts[i]` many, as a float."""

    rows: Tensor
    starts: Tensor
    answers: Tensor
    counts: Tensor
    drawn: StandIns | None = None  # where the entities at hand are drawn from more

    def on(self, device: torch.device) -> Targets:
        """The same on the training's device."""
        return Targets(
            rows=self.rows.to(device),
            starts=self.starts.to(device),
            answers=self.answers.to(device),
            counts=self.counts.to(device),
            drawn=None if self.drawn is None else self.drawn.on(device),
        )

    def weigh(self, powers: Tensor, first: int) -> None:
        """Multiply each entity's powers by what it stands for, but those of a query's own entities, its answers
        and the one it asks from. In place, of queries from the first on. [entities, queries]"""
        if self.drawn is None:
            return
        powers *= self.drawn.stands_for[:, None]
        entities, rows = self.own_entities()
        here = (rows >= first) & (rows < first + powers.shape[1])
        entities, rows = entities[here], rows[here] - first
        powers[entities, rows] = powers[entities, rows] / self.drawn.stands_for[entities]

    def own_entities(self) -> tuple[Tensor, Tensor]:
        """Entities that are at hand because of a query, and the query; some come twice."""
        assert self.drawn is not None
        sources = self.drawn.sources
        queries = torch.arange(len(sources), device=sources.device)
        return torch.cat([self.answers, sources]), torch.cat([self.rows, queries])


@dataclass(frozen=True, slots=True, eq=False)
class Workspace:
    """Memory used again by every step: scores of a block of queries, and the entities' gradient."""

    scores: Tensor  # of a block of queries, as a flat row
    entity_gradient: Tensor  # [entities, d]
    block_size: int
    kernel: Kernel | None  # that does the whole step in this memory, where it suits

    @classmethod
    def of(cls, entities: Tensor, batch_size: int, score_megabytes: int) -> Workspace:
        """As much as the setting allows, at least one query's scores.

        Without a setting: what stays in cache, but scores of two queries for each dimension at least. With fewer
        the entities' gradient, which every block reads and writes, costs more than scores that leave the cache.
        """
        room = score_megabytes * 2**20 or max(IN_CACHE, 2 * 4 * entities.numel())
        block = max(1, room // (4 * len(entities)))
        block = min(batch_size, block - block % 64 if block > 64 else block)  # 64 fills the vector units
        return cls.for_block(entities, block)

    @classmethod
    def for_block(cls, entities: Tensor, block: int) -> Workspace:
        """Room for the scores of that many queries."""
        found = kernel() if plain(entities) else None
        suited = found if found is not None and found.suits(entities, block) else None
        room = len(entities) * block if suited is None else suited.powers_room(len(entities), block)
        return cls(entities.new_empty(room), torch.empty_like(entities), block, suited)

    def among(self, entities: int) -> Workspace:
        """The same memory for so many entities, no more than it was made for."""
        return replace(self, entity_gradient=self.entity_gradient[:entities])

    def block(self, queries: int) -> Tensor:
        """Room for the scores of that many queries, without holes. [entities, queries]"""
        entities = len(self.entity_gradient)
        return self.scores[: entities * queries].view(entities, queries)


def multiclass(
    queries: Tensor, entities: Tensor, targets: Targets, work: Workspace, share: float = 1.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss summed over the batch's triples [], its gradient towards queries [n, d] and entities [N, d].

    All are multiplied by `share`, which costs nothing here and a pass over all entities elsewhere.
    """
    counts = targets.counts * share
    by_query = torch.empty_like(queries)
    by_entity = work.entity_gradient
    totals = torch.empty_like(counts)
    for start in range(0, len(queries), work.block_size):
        block = slice(start, start + work.block_size)
        weigh = None if targets.drawn is None else partial(targets.weigh, first=start)
        totals[block], by_query[block] = softmax_block(
            queries[block], entities, counts[block], work, weigh, first=start == 0
        )
    asked = queries.contiguous()
    true = functional.embedding_bag(targets.answers, entities, targets.starts, mode="sum")  # [n, d]
    by_query.sub_(true, alpha=share)
    by_entity.index_add_(0, targets.answers, (asked * -share).index_select(0, targets.rows))
    positive = torch.dot(asked.view(-1), true.view(-1))
    return torch.dot(counts, totals) - share * positive, by_query, by_entity


def softmax_block(
    queries: Tensor,
    entities: Tensor,
    counts: Tensor,
    work: Workspace,
    weigh: Callable[[Tensor], None] | None,
    *,
    first: bool,
) -> tuple[Tensor, Tensor]:
    """logsumexp [n] and the softmax's part of the queries' gradient [n, d]; adds the entities' part in place."""
    powers = work.block(len(queries))
    sums, by_query = raised(queries, entities, powers, weigh)
    shift = torch.zeros_like(counts)
    least, most = torch.aminmax(sums)
    if not (float(least) > SMALLEST and float(most) < LARGEST):  # also where one is not a number
        torch.mm(entities, queries.T, out=powers)
        shift = powers.amax(0)
        powers.sub_(shift).exp_()
        if weigh is not None:
            weigh(powers)
        sums = powers.sum(0)
        by_query = torch.mm(entities.T, powers)
    weights = counts / sums
    weighted = (queries * weights[:, None]).contiguous()  # 10 % faster in the product than a transposed one
    if first:
        torch.mm(powers, weighted, out=work.entity_gradient)
    else:
        work.entity_gradient.addmm_(powers, weighted)
    return sums.log() + shift, by_query.T * weights[:, None]


def raised(
    queries: Tensor, entities: Tensor, powers: Tensor, weigh: Callable[[Tensor], None] | None = None
) -> tuple[Tensor, Tensor]:
    """Row sums [n] of P = exp(queries entities^T), which is left in `powers` [N, n], and E^T P [d, n]."""
    sums = queries.new_zeros(len(queries))
    by_query = torch.zeros(queries.shape[::-1], dtype=queries.dtype, device=queries.device)
    scaled = (queries * LOG2_E).T
    chunk = CHUNK if weigh is None else len(entities)  # drawn ones are few
    for start in range(0, len(entities), chunk):
        some, part = entities[start : start + chunk], powers[start : start + chunk]
        torch.mm(some, scaled, out=part)
        part.exp2_()
        if weigh is not None:
            weigh(part)
        sums += part.sum(0)
        by_query.addmm_(some.T, part)
    return sums, by_query


def multiclass_plainly(queries: Tensor, entities: Tensor, targets: Targets) -> Tensor:
    """The loss alone, by its definition: the oracle, differentiated by autograd in the tests."""
    scores = queries @ entities.T
    positive = scores[targets.rows, targets.answers].sum()
    if targets.drawn is not None:
        more = targets.drawn.stands_for.log().expand_as(scores).clone()
        own, queries_of = targets.own_entities()
        more[queries_of, own] = 0
        scores = scores + more
    return (targets.counts * scores.logsumexp(1)).sum() - positive
