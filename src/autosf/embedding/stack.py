"""A step of many structures at once, by torch alone: one call serves all.

A row holds every structure's embedding one after the other, [n, S, d]; the three products of the loss are one
product for each of S slices. A structure of a stack comes to the same bits whatever others are beside it, and to
those of training it by `steps` up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn import functional

from autosf.algebra.summands import belonging_together
from autosf.embedding.multiclass import LARGEST, LOG2_E, SMALLEST
from autosf.embedding.regularisers import PENALTIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.embedding.queries import Batch
    from autosf.embedding.settings import TrainingSettings

LINE = 16  # floats in a line of the cache
ROLES = {"head", "relation", "tail"}


class Stack:
    """Structures of the same number of parts, with one step for all of them."""

    def __init__(self, structures: Sequence[Structure], device: torch.device) -> None:
        self._count, self._structures, self._device = len(structures), structures, device

        def over(one: str, other: str) -> Contraction:
            return Contraction.of(structures, one, other, device)

        # For each side: the query, and the chain rule back to its entity and its relation.
        self._tails = Side(over("head", "relation"), over("tail", "relation"), over("head", "tail"))
        self._heads = Side(over("tail", "relation"), over("head", "relation"), over("tail", "head"))

    def gradients(
        self,
        entities: Tensor,
        relations: Tensor,
        batch: Batch,
        settings: TrainingSettings,
        kept: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mean losses per triple and their gradients, penalties included: as `steps.multiclass_gradients`.

        [S], and towards all entities [N, S * d] and all relations [R, S * d].
        """
        share = 1 / batch.triples
        targets, counts = batch.targets, batch.targets.counts * share
        e = self._cut(entities.index_select(0, batch.entities))
        r = self._cut(relations.index_select(0, batch.relations))
        queries = self._by_side(batch, lambda side, some: side.query(e[some], r[some]))
        asked = queries if kept is None else queries * kept[:, None]
        totals, by_query, by_entity = softmax(asked, self._cut(entities), counts)
        true = self._cut(functional.embedding_bag(targets.answers, entities, targets.starts, mode="sum"))
        loss = totals.mv(counts) - share * (asked * true).sum((0, 2))
        by_query.sub_(true, alpha=share)
        by_entity.index_add_(0, targets.answers, (asked * -share).flatten(1).index_select(0, targets.rows))
        if settings.regulariser == "dura":
            loss += penalised(asked, by_query, counts, "dura", settings.entity_weight)
        if kept is not None:
            by_query *= kept[:, None]
        by_source = self._by_side(batch, lambda side, some: side.to_entity(by_query[some], r[some]))
        by_link = self._by_side(batch, lambda side, some: side.to_relation(e[some], by_query[some]))
        middle = batch.tail_queries
        sides = ((slice(middle), "head"), (slice(middle, None), "tail"))
        loss += self._penalty(e, by_source, counts, settings, settings.entity_weight, sides)
        link = ((slice(None), "relation"),)
        loss += self._penalty(r, by_link, counts, settings, settings.relation_weight, link)
        by_entity.index_add_(0, batch.entities, by_source.flatten(1))
        by_relation = torch.zeros_like(relations).index_add_(0, batch.relations, by_link.flatten(1))
        return loss, by_entity, by_relation

    @cached_property
    def _lengths(self) -> dict[str, Lengths]:
        """Moduli by role, for the one regulariser that asks for them."""
        return {role: Lengths.of(self._structures, role, self._device) for role in sorted(ROLES)}

    def _penalty(
        self,
        rows: Tensor,
        gradient: Tensor,
        counts: Tensor,
        settings: TrainingSettings,
        weight: float,
        roles: Iterable[tuple[slice, str]],
    ) -> Tensor | float:
        """The penalty of rows, of which some have one role and the rest another."""
        name = settings.regulariser
        if name != "n3-moduli":
            return penalised(rows, gradient, counts, name, weight)
        total: Tensor | float = 0.0
        for i, role in roles:
            total += penalised(rows[i], gradient[i], counts[i], name, weight, self._lengths[role])
        return total

    def _cut(self, rows: Tensor) -> Tensor:
        """Rows by structure, without copying. [n, S, d]"""
        return rows.view(len(rows), self._count, -1)

    def _by_side(self, batch: Batch, made: Callable[[Side, slice], Tensor]) -> Tensor:
        """What is made of the tail queries, then of the head queries, one below the other."""
        middle, end = batch.tail_queries, len(batch.entities)
        sides = ((self._tails, slice(0, middle)), (self._heads, slice(middle, end)))
        found = [made(side, some) for side, some in sides if some.start < some.stop]
        return found[0] if len(found) == 1 else torch.cat(found)


class Slot(NamedTuple):
    """The k-th term of every part that has so many: where its two factors are, and its sign."""

    one: Tensor  # [places]
    other: Tensor  # [places]
    signs: Tensor  # [places, 1]


class Contraction(NamedTuple):
    """`kernels.contract` of a whole stack over two given roles: parts with most terms first, then put in order."""

    slots: tuple[Slot, ...]
    order: Tensor

    @classmethod
    def of(cls, structures: Sequence[Structure], one: str, other: str, device: torch.device) -> Contraction:
        (absent,) = ROLES - {one, other}
        parts = structures[0].parts
        terms: list[list[tuple[int, int, int]]] = [[] for _ in range(parts * len(structures))]
        for number, structure in enumerate(structures):
            before = number * parts - 1  # roles count their parts from one
            for term in structure.terms():
                factors = before + getattr(term, one), before + getattr(term, other)
                terms[before + getattr(term, absent)].append((*factors, term.sign))
        most_first = sorted(range(len(terms)), key=lambda place: -len(terms[place]))
        order = torch.empty(len(terms), dtype=torch.int64)
        order[torch.tensor(most_first)] = torch.arange(len(terms))
        slots = []
        for k in range(max(1, *map(len, terms))):
            filled = [
                terms[place][k : k + 1] or [(0, 0, 0)]
                for place in most_first
                if k < len(terms[place]) or not k
            ]
            a, b, signs = torch.tensor(filled, device=device)[:, 0].unbind(1)
            slots.append(Slot(a, b, signs[:, None].float()))
        return cls(tuple(slots), order.to(device))

    def __call__(self, one: Tensor, other: Tensor) -> Tensor:
        """Rows by structure, as the given ones. [n, S, d]"""
        left, right = (rows.reshape(len(rows), len(self.order), -1) for rows in (one, other))
        first, *further = self.slots
        result = left.index_select(1, first.one)
        result *= right.index_select(1, first.other).mul_(first.signs)
        for slot in further:
            factor = right.index_select(1, slot.other).mul_(slot.signs)
            result[:, : len(slot.one)].addcmul_(left.index_select(1, slot.one), factor)
        return result.index_select(1, self.order).view(one.shape)


class Side(NamedTuple):
    """What one side of a triple asks, from its entity and relation, and the way back from the query's gradient."""

    query: Contraction
    to_entity: Contraction
    to_relation: Contraction


def softmax(queries: Tensor, entities: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As `multiclass.softmax_block`: logsumexp [S, n], and the gradients' parts [n, S, d] and [N, S * d]."""
    rows = len(queries)
    asked, everyone = aligned(queries), aligned(entities)[:, : len(entities)]
    counts = functional.pad(counts, (0, asked.shape[1] - rows))
    powers = torch.bmm(everyone, (asked * LOG2_E).transpose(1, 2)).exp2_()  # [S, N, n]
    sums = powers.sum(1)  # [S, n]
    shift = torch.zeros_like(sums)
    fine = ((sums > SMALLEST) & (sums < LARGEST)).all(1)
    for index in () if bool(fine.all()) else (~fine).nonzero()[:, 0].tolist():
        scores = everyone[index] @ asked[index].T
        shift[index] = scores.amax(0)
        powers[index] = scores.sub_(shift[index]).exp_()
        sums[index] = powers[index].sum(0)
    weights = (counts / sums)[:, :, None]
    by_query = torch.bmm(powers.transpose(1, 2), everyone).mul_(weights)
    by_entity = torch.bmm(powers, asked * weights)
    totals = sums.log() + shift
    return (
        totals[:, :rows],
        by_query[:, :rows].transpose(0, 1).contiguous(),
        by_entity.transpose(0, 1).flatten(1),
    )


def aligned(rows: Tensor) -> Tensor:
    """Rows by structure, with zeros below them so that every structure's begin at a fresh line of the cache.

    [n, S, d] to [S, n or more, d]. The bits of a product depend on where its operands lie.
    """
    below = -len(rows) % LINE
    return functional.pad(rows.transpose(0, 1), (0, 0, 0, below)).contiguous()


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """`regularisers.moduli` of a whole stack: where the k-th part of each part's group is, for k = 0, 1, ...,
    and whether there is one."""

    slots: tuple[tuple[Tensor, Tensor], ...]  # [places] and [places, 1]

    @classmethod
    def of(cls, structures: Sequence[Structure], role: str, device: torch.device) -> Lengths:
        parts = structures[0].parts
        groups: list[tuple[int, ...]] = [()] * (parts * len(structures))
        for number, structure in enumerate(structures):
            before = number * parts - 1
            for group in belonging_together(structure, role):
                for part in group:
                    groups[before + part] = tuple(before + other for other in group)
        slots = []
        for k in range(max(map(len, groups))):
            filled = [(group[k], 1) if k < len(group) else (group[0], 0) for group in groups]
            where, present = torch.tensor(filled, device=device).unbind(1)
            slots.append((where, present[:, None].float()))
        return cls(tuple(slots))

    def __call__(self, rows: Tensor) -> Tensor:
        """Of rows by structure. [n, S, d]"""
        first, *further = self.slots
        places = len(first[0])
        squares = rows.square().reshape(len(rows), places, rows.shape[1] * rows.shape[2] // places)
        result = squares.index_select(1, first[0])
        for where, present in further:
            result.addcmul_(squares.index_select(1, where), present)
        return result.sqrt_().view(rows.shape)


def penalised(
    rows: Tensor,
    gradient: Tensor,
    counts: Tensor,
    name: str,
    weight: float,
    lengths: Callable[[Tensor], Tensor] = torch.abs,
) -> Tensor | float:
    """As `regularisers.penalised`: adds the penalty's gradient in place; each structure's penalty. [S]"""
    if not weight or name == "none":
        return 0.0
    degree, direction = PENALTIES[name]
    weighted = direction(rows, lengths) * counts[:, None, None]
    gradient.add_(weighted, alpha=weight * degree)
    return (weighted * rows).sum((0, 2)) * weight
