"""Penalties on embeddings: sums of |x|^degree over a row, weighted by how many triples the row serves.

Such a sum has the gradient degree * u with u = x |x|^(degree - 2), and is itself <u, x>: one u gives both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor


class Penalty(NamedTuple):
    """A penalty by its degree and the direction u of its gradient."""

    degree: int
    direction: Callable[[Tensor], Tensor]


N3 = Penalty(3, lambda rows: rows * rows.abs())  # Lacroix et al., 2018
L2 = Penalty(2, lambda rows: rows)

# DURA (Zhang et al., 2020) is L2 on the entities together with L2 on the queries, which training applies.
PENALTIES = {"n3": N3, "l2": L2, "dura": L2}


def penalised(rows: Tensor, gradient: Tensor, counts: Tensor, name: str, weight: float) -> Tensor:
    """Adds the penalty's gradient in place; returns the penalty, each row weighted by its triples. []"""
    if not weight or name == "none":
        return rows.new_zeros(())
    degree, direction = PENALTIES[name]
    weighted = direction(rows) * counts[:, None]
    gradient.add_(weighted, alpha=weight * degree)
    return (weighted * rows).sum() * weight
