"""What ranking needs before any model is known: the queries of a side, their answers, and how these meet.

On a small graph it takes longer than the scores; it is worked out once for all models that are ranked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.evaluation.grouping import targets_by_query
from autosf.graph.keys import consecutive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.evaluation.grouping import TargetsByQuery
    from autosf.graph.known_answers import Answers

PAIRS = 1 << 20  # pairs of a target and a known answer at a time
FEW = 8  # targets of a query up to here are counted in rounds, above it at once
MOST = 1 << 12  # targets of one query counted at once
SCRATCH = 1 << 18  # signs at a time: they stay in a core's cache


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The queries of one side with their targets and known answers: all of ranking that needs no model."""

    triples: int
    pairs: int  # of a target and a known answer, in all
    batches: Callable[[], Iterable[AskedBatch]]

    @classmethod
    def of(
        cls,
        entities: NDArray[np.int32],
        relations: NDArray[np.int32],
        targets: NDArray[np.int32],
        known: Answers,
        size: int,
        device: torch.device,
    ) -> Side:
        """From the asked entities, relations and answers of triples; what is small is made once."""
        grouped = targets_by_query(entities=entities, relations=relations, targets=targets, width=known.width)
        starts, ends = known.slices(entities=grouped.entities, relations=grouped.relations)
        pairs = int(((ends - starts) * grouped.counts()).sum())

        def made() -> Iterator[AskedBatch]:
            return (AskedBatch.of(some, known, device) for some in grouped.batches(size))

        if pairs > PAIRS:
            return cls(len(grouped.order), pairs, made)
        batches = list(made())
        return cls(len(grouped.order), pairs, lambda: batches)

    def is_small(self) -> bool:
        return self.pairs <= PAIRS


@dataclass(frozen=True, slots=True, eq=False)
class AskedBatch:
    """Some queries, the places of the scores that are looked at, and how targets and known answers meet."""

    entities: Tensor  # [queries]
    relations: Tensor
    order: NDArray[np.int64]  # the triple of each target
    rows: NDArray[np.int64]  # the entity of each target, then of each known answer
    columns: NDArray[np.int64]  # the query of each
    query_of_target: Tensor
    rounds: list[tuple[slice, Tensor]] | None  # see `_rounds`; none where all targets' scores fit in cache
    removed: NDArray[np.int64]  # known answers of each target's query but itself
    meetings: Callable[[], Iterable[Meetings]]

    @classmethod
    def of(cls, some: TargetsByQuery, known: Answers, device: torch.device) -> AskedBatch:
        starts, ends = known.slices(entities=some.entities, relations=some.relations)
        lengths = ends - starts
        answers = known.answers[consecutive(starts, lengths)].astype(np.int64)
        columns = some.columns()
        first, length = (np.cumsum(lengths) - lengths)[columns], lengths[columns]
        removed = np.empty(len(length), dtype=np.int64)
        small = known.width * len(columns) <= SCRATCH

        def met() -> Iterator[Meetings]:
            for part in _parts(length):
                known_ones = consecutive(first[part], length[part])
                targets = np.repeat(np.arange(part.start, part.stop), length[part])
                yield Meetings(part, known_ones, targets, np.cumsum(length[part]))

        def kept() -> Callable[[], Iterable[Meetings]]:
            if length.sum() > PAIRS:
                return met
            all_of_them = list(met())
            return lambda: all_of_them

        for meeting in (meetings := kept())():
            is_other = answers[meeting.known] != some.targets[meeting.targets]
            removed[meeting.part] = sums_between(is_other, meeting.ends)
        return cls(
            entities=torch.from_numpy(some.entities).to(device),
            relations=torch.from_numpy(some.relations).to(device),
            order=some.order,
            rows=np.concatenate([some.targets, answers]),
            columns=np.concatenate([columns, np.repeat(np.arange(len(lengths)), lengths)]),
            query_of_target=torch.from_numpy(columns).to(device),
            rounds=None if small else _rounds_on(some, device),
            removed=removed,
            meetings=meetings,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """Consecutive targets, each with all known answers of its query: a pair for each, and where a target's end."""

    part: slice  # of the batch's targets
    known: NDArray[np.int64]
    targets: NDArray[np.int64]
    ends: NDArray[np.int64]


def _rounds_on(some: TargetsByQuery, device: torch.device) -> list[tuple[slice, Tensor]]:
    rounds = _rounds(some.counts(), some.offsets)
    return [(columns, torch.from_numpy(targets).to(device)) for columns, targets in rounds]


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


def _parts(lengths: NDArray[np.int64]) -> Iterator[slice]:
    """Consecutive slices whose lengths add up to about PAIRS, or of one."""
    total = np.cumsum(lengths)
    start = 0
    while start < len(lengths):
        before = total[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(total, before + PAIRS, side="right")))
        yield slice(start, end)
        start = end


def sums_between(values: NDArray[np.int8] | NDArray[np.bool_], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sums of consecutive segments, which may be empty, by where each ends. [segments]"""
    running = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])[ends]
    return np.diff(running, prepend=0)
