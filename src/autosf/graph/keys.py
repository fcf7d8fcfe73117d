"""Triples and pairs packed into single 64-bit integers, so that comparing and counting is sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

LARGEST_KEY = 2**63 - 1


def pair_keys(first: NDArray[np.int32], second: NDArray[np.int32], width: int) -> NDArray[np.int64]:
    """One integer for each (first, second), ordered like the pairs; `second` lies below `width`. [n]"""
    keys = first.astype(np.int64)
    keys *= width
    keys += second
    return keys


def triple_keys(
    splits: Sequence[NDArray[np.int32]], *, entities: int, relations: int
) -> list[NDArray[np.int64]]:
    """One integer a triple: equal if and only if the triples are, across all given splits. [n] each"""
    queries = [pair_keys(split[:, 1], split[:, 0], entities) for split in splits]
    if relations * entities * entities > LARGEST_KEY:
        queries = _ranks(queries)
    for keys, split in zip(queries, splits, strict=True):
        keys *= entities
        keys += split[:, 2]
    return queries


def distinct(triples: NDArray[np.int32], *, entities: int, relations: int) -> NDArray[np.int32]:
    """The triples, each once, where it first stands; the same array if none is repeated. [m, 3]"""
    (keys,) = triple_keys([triples], entities=entities, relations=relations)
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return triples
    _, first = np.unique(keys, return_index=True)
    return triples[np.sort(first)]


def sorted_distinct(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct keys in ascending order. Sorts its argument in place, to spare a copy."""
    keys.sort()
    first = np.empty(len(keys), dtype=bool)
    first[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    return keys[first]


def in_both(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """The keys found in both of two arrays of distinct keys, ascending."""
    merged = np.concatenate([left, right])
    merged.sort()
    found: NDArray[np.int64] = merged[1:][merged[1:] == merged[:-1]]
    return found


def _ranks(arrays: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Each value replaced by its place among the distinct values of all arrays, in the same order."""
    _, places = np.unique(np.concatenate(arrays), return_inverse=True)
    ends = np.cumsum([len(array) for array in arrays])[:-1]
    return [part.astype(np.int64) for part in np.split(places, ends)]


def consecutive(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The whole numbers start, start + 1, ... of each (start, length), one after another."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())
