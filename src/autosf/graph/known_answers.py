"""All true answers of every query, (h, r, ?) and (?, r, t), as CSR: built once, looked up by the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from autosf.graph.keys import LARGEST_KEY, pair_keys
from autosf.graph.knowledge_graph import SPLITS, KnowledgeGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

Number = TypeVar("Number", np.int32, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The answers of each distinct (relation, entity): row i is `answers[offsets[i]:offsets[i + 1]]`.

    `keys` [q] int64, ascending, is relation * width + entity; `offsets` [q + 1] int64; `answers` [n] int32,
    ascending and distinct within a row. All are read-only.
    """

    keys: NDArray[np.int64]
    offsets: NDArray[np.int64]
    answers: NDArray[np.int32]
    width: int

    def slices(
        self, *, entities: ArrayLike, relations: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Start and end in `answers` of each query's row; equal where it has no answer. [n] each"""
        wanted = pair_keys(np.atleast_1d(relations), np.atleast_1d(entities), self.width)
        if not len(self.keys):
            return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.int64)
        rows = np.searchsorted(self.keys, wanted)
        rows[rows == len(self.keys)] = 0
        starts = self.offsets[rows]
        ends = np.where(self.keys[rows] == wanted, self.offsets[rows + 1], starts)
        return starts, ends

    def queries(self) -> Queries:
        """The distinct queries themselves, one for each row."""
        relations, entities = np.divmod(self.keys, max(self.width, 1))
        return Queries(
            entities=_frozen(entities.astype(np.int32)),
            relations=_frozen(relations.astype(np.int32)),
            offsets=self.offsets,
            answers=self.answers,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Queries:
    """Distinct queries, by relation and entity, with all answers of each: what grouped training runs over.

    `entities` and `relations` are [q] int32; the answers of query i are `answers[offsets[i]:offsets[i + 1]]`.
    """

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]
    offsets: NDArray[np.int64]
    answers: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.entities)


@dataclass(frozen=True, slots=True, eq=False)
class KnownAnswers:
    """True tails of every (h, r) and true heads of every (r, t), for filtered ranking (Sec. V-B)."""

    tails: Answers
    heads: Answers

    def tail_slices(
        self, heads: ArrayLike, relations: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each (h, r), where its tails start and end in `tails.answers`. [n] each"""
        return self.tails.slices(entities=heads, relations=relations)

    def head_slices(
        self, relations: ArrayLike, tails: ArrayLike
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each (r, t), where its heads start and end in `heads.answers`. [n] each"""
        return self.heads.slices(entities=tails, relations=relations)

    def hold(self, triples: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which triples are known ones, by bisecting each query's ascending tails. [n]"""
        low, end = self.tail_slices(triples[:, 0], triples[:, 1])
        high, wanted, values = end.copy(), triples[:, 2], self.tails.answers
        if not len(values):
            return np.zeros(len(triples), dtype=bool)
        last = len(values) - 1
        while (low < high).any():
            middle = (low + high) // 2
            is_below = (low < high) & (values[np.minimum(middle, last)] < wanted)
            high = np.where(is_below | (low >= high), high, middle)
            low = np.where(is_below, middle + 1, low)
        found: NDArray[np.bool_] = (low < end) & (values[np.minimum(low, last)] == wanted)
        return found

    def tails_of(self, head: int, relation: int) -> NDArray[np.int32]:
        """All known tails of one query, ascending."""
        (start,), (end,) = self.tail_slices(head, relation)
        return self.tails.answers[start:end]

    def heads_of(self, relation: int, tail: int) -> NDArray[np.int32]:
        """All known heads of one query, ascending."""
        (start,), (end,) = self.head_slices(relation, tail)
        return self.heads.answers[start:end]


def known_answers(graph: KnowledgeGraph, splits: Sequence[str] = SPLITS) -> KnownAnswers:
    """The known answers of a graph in the given splits together."""
    parts = [getattr(graph, split) for split in splits]
    sizes = {"entities": len(graph.entities), "relations": len(graph.relations)}
    return KnownAnswers(tails=tail_answers(parts, **sizes), heads=head_answers(parts, **sizes))


def tail_answers(parts: Sequence[NDArray[np.int32]], *, entities: int, relations: int) -> Answers:
    """The tails of every (h, r) in the parts, each [n, 3], taken together."""
    return _answers([(part[:, 1], part[:, 0], part[:, 2]) for part in parts], entities, relations)


def head_answers(parts: Sequence[NDArray[np.int32]], *, entities: int, relations: int) -> Answers:
    """The heads of every (r, t) in the parts, each [n, 3], taken together."""
    return _answers([(part[:, 1], part[:, 2], part[:, 0]) for part in parts], entities, relations)


def tail_queries(triples: NDArray[np.int32], *, entities: int, relations: int) -> Queries:
    """The distinct (h, r, ?) of some triples with all their tails."""
    return tail_answers([triples], entities=entities, relations=relations).queries()


def head_queries(triples: NDArray[np.int32], *, entities: int, relations: int) -> Queries:
    """The distinct (?, r, t) of some triples with all their heads."""
    return head_answers([triples], entities=entities, relations=relations).queries()


def _answers(
    columns: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]],
    entities: int,
    relations: int,
) -> Answers:
    """Rows of (relation, entity, answer) grouped by the first two, by sorting one packed integer for each."""
    keys = np.concatenate(
        [np.empty(0, np.int64), *(pair_keys(link, entity, entities) for link, entity, _ in columns)]
    )
    answers = np.concatenate([np.empty(0, np.int32), *(answer for _, _, answer in columns)])
    keys, answers = _sorted_pairs(keys, answers, entities=entities, relations=relations)
    new_row = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=new_row[1:])
    repeated = ~new_row
    repeated[1:] &= answers[1:] == answers[:-1]
    if repeated.any():
        keys, answers, new_row = keys[~repeated], answers[~repeated], new_row[~repeated]
    starts = np.flatnonzero(new_row)
    offsets = np.append(starts, len(keys))
    return Answers(_frozen(keys[starts]), _frozen(offsets), _frozen(answers), entities)


def _sorted_pairs(
    keys: NDArray[np.int64], answers: NDArray[np.int32], *, entities: int, relations: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Both sorted by key, then answer, by one packed integer wherever 63 bits hold it. Uses `keys` up."""
    if entities * entities * relations > LARGEST_KEY:
        order = np.lexsort((answers, keys))
        return keys[order], answers[order]
    keys *= entities
    keys += answers
    keys.sort()
    for start in range(0, len(keys), 1 << 20):  # in pieces that stay in cache
        part = slice(start, start + (1 << 20))
        quotient = keys[part] // entities
        answers[part] = keys[part] - quotient * entities
        keys[part] = quotient
    return keys, answers


def _frozen(array: NDArray[Number]) -> NDArray[Number]:
    array.flags.writeable = False
    return array
