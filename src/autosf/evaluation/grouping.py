"""Triples gathered by query, so that each query is scored once for all its true answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.graph.keys import consecutive, pair_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class TargetsByQuery:
    """Distinct queries, those with the most targets first. Targets of query i: offsets[i] to offsets[i + 1].

    `entities` and `relations` are [q]; `targets`, the true answers, and `order`, the triples they are of,
    are [n]. All int64.
    """

    entities: NDArray[np.int64]
    relations: NDArray[np.int64]
    offsets: NDArray[np.int64]
    targets: NDArray[np.int64]
    order: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.entities)

    def counts(self) -> NDArray[np.int64]:
        """How many targets each query has, descending. [q]"""
        return np.diff(self.offsets)

    def columns(self) -> NDArray[np.int64]:
        """The query of each target. [n]"""
        return np.repeat(np.arange(len(self)), self.counts())

    def batches(self, size: int) -> Iterator[TargetsByQuery]:
        """Consecutive queries, `size` at a time, with their targets; `order` stays that of all triples."""
        for start in range(0, len(self), size):
            queries = slice(start, start + size)
            offsets = self.offsets[start : start + size + 1]
            members = slice(offsets[0], offsets[-1])
            yield TargetsByQuery(
                self.entities[queries],
                self.relations[queries],
                offsets - offsets[0],
                self.targets[members],
                self.order[members],
            )


def targets_by_query(
    *, entities: NDArray[np.int32], relations: NDArray[np.int32], targets: NDArray[np.int32], width: int
) -> TargetsByQuery:
    """Triples, given as columns, by their (relation, entity); entities lie below `width`. Repeats are kept."""
    keys = pair_keys(relations, entities, width)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    counts = np.diff(starts, append=len(keys))
    most_first = np.argsort(-counts, kind="stable")
    starts, counts = starts[most_first], counts[most_first]
    order = order[consecutive(starts, counts)]
    links, asked = np.divmod(ordered[starts], max(width, 1))
    return TargetsByQuery(
        asked, links, np.append(0, np.cumsum(counts)), targets[order].astype(np.int64), order
    )
