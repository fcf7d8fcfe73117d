"""Penalties on embeddings, each as value and gradient per row, weighted by how many triples a row serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


def n3(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of |x|^3 (Lacroix et al., 2018). [n], and its gradient [n, d]"""
    sizes = rows.abs()
    return (sizes**3).sum(-1), 3 * rows * sizes


def l2(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Sum of squares. [n], and its gradient [n, d]"""
    return (rows**2).sum(-1), 2 * rows


def nothing(rows: Tensor) -> tuple[Tensor, Tensor]:
    """No penalty. [n], and its gradient [n, d]"""
    return rows.new_zeros(len(rows)), rows.new_zeros(rows.shape)


# DURA (Zhang et al., 2020) is L2 on the entities together with L2 on the queries, which training applies.
PENALTIES: dict[str, Callable[[Tensor], tuple[Tensor, Tensor]]] = {
    "n3": n3,
    "l2": l2,
    "dura": l2,
    "none": nothing,
}
