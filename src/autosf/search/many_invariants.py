"""The invariants of many structures at once, for a search that judges some hundred of them between two rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autosf.algebra.features import solved_invariants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure

    Array = NDArray[np.float64]


def many_invariants(structures: Sequence[Structure]) -> Array:
    """`invariants` of each, up to rounding; all have the same number of parts. [n, entries]"""
    cells = np.array([structure.rows for structure in structures])  # [n, i, j]
    parts = cells.shape[1]
    tensor = (cells[..., None] == np.arange(1, parts + 1)).astype(float)  # [n, i, j, k]
    tensor -= cells[..., None] == -np.arange(1, parts + 1)
    taken = np.abs(tensor)
    diagonal = taken[:, np.arange(parts), np.arange(parts)]
    solutions, f4, related = zip(*map(solved_invariants, structures), strict=True)
    return np.concatenate(
        [
            taken.sum((1, 2, 3))[:, None],
            solutions,
            diagonal.sum((1, 2))[:, None],
            diagonal.any(1).sum(1, keepdims=True),
            pair_counts(cells),
            f4,
            descending(taken.sum((1, 2))),
            descending(taken.sum((2, 3))),
            descending(taken.sum((1, 3))),
            moments_of_grams(tensor),
            related,
        ],
        axis=1,
    )


def pair_counts(cells: NDArray[np.int_]) -> Array:
    """How many pairs of mirrored cells are of each of `PAIR_KINDS`. [n, 4]"""
    below, above = np.tril_indices(cells.shape[1], -1)
    ones, others = cells[:, below, above], cells[:, above, below]
    both = (ones != 0) & (others != 0)
    kinds = (
        both & (ones == others),
        both & (ones == -others),
        both & (np.abs(ones) != np.abs(others)),
        (ones != 0) ^ (others != 0),
    )
    return np.stack([kind.sum(1) for kind in kinds], 1).astype(float)


def descending(values: Array) -> Array:
    """Each row sorted, largest first."""
    return -np.sort(-values, 1)


def moments_of_grams(tensor: Array) -> Array:
    """`moments` of the head's, the tail's and the mirrored Gram matrix. [n, 12]"""
    count, parts = tensor.shape[:2]
    heads = tensor.reshape(count, parts, -1)
    tails = tensor.swapaxes(1, 2).reshape(count, parts, -1)
    pairs = (heads, heads), (tails, tails), (heads, tails)
    grams = np.stack([one @ other.swapaxes(1, 2) for one, other in pairs], 1)  # [n, 3, i, j]
    square = grams @ grams
    traces = (
        np.trace(grams, axis1=2, axis2=3),
        *(np.einsum("ngij,ngji->ng", *pair) for pair in ((grams, grams), (square, grams), (square, square))),
    )
    first, second, third, fourth = map(np.abs, traces)
    roots = np.stack([first, np.sqrt(second), np.cbrt(third), np.sqrt(np.sqrt(fourth))], 2)
    signed: Array = np.copysign(roots, np.stack(traces, 2)).reshape(count, -1)
    return signed
