"""Penalties on embeddings: sums of lengths to a power over a row, weighted by how many triples the row serves.

Such a sum has the gradient degree * u with u = x |x|^(degree - 2), and is itself <u, x>: one u gives both.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import torch

from autosf.algebra.summands import belonging_together

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.algebra.summands import Groups
    from autosf.embedding.settings import TrainingSettings

    Lengths = Callable[[Tensor], Tensor]


class Penalty(NamedTuple):
    """A penalty by its degree and the direction u of its gradient, given what the entries' lengths are."""

    degree: int
    direction: Callable[[Tensor, Lengths], Tensor]


L2 = Penalty(2, lambda rows, _: rows)
N3 = Penalty(3, lambda rows, lengths: rows * lengths(rows))  # Lacroix et al., 2018

# With moduli it is N3 of vectors, not of entries. DURA (Zhang et al., 2020) is L2 on the entities together with
# L2 on the queries, which training applies.
PENALTIES = {"n3": N3, "n3-moduli": N3, "l2": L2, "dura": L2}


def penalised(
    rows: Tensor, gradient: Tensor, counts: Tensor, name: str, weight: float, lengths: Lengths = torch.abs
) -> Tensor:
    """Adds the penalty's gradient in place; returns the penalty, each row weighted by its triples. []"""
    if not weight or name == "none":
        return rows.new_zeros(())
    degree, direction = PENALTIES[name]
    weighted = direction(rows, lengths) * counts[:, None]
    gradient.add_(weighted, alpha=weight * degree)
    return (weighted * rows).sum() * weight


def penalised_sources(
    structure: Structure,
    e: Tensor,
    by_source: Tensor,
    counts: Tensor,
    settings: TrainingSettings,
    tail_queries: int,
) -> Tensor:
    """The penalty of the queries' entities: heads where the tail is asked for, then tails."""
    name, weight = settings.regulariser, settings.entity_weight
    if name != "n3-moduli":
        return penalised(e, by_source, counts, name, weight)
    each = [
        penalised(e[i], by_source[i], counts[i], name, weight, lengths_in(structure, role, name))
        for i, role in ((slice(tail_queries), "head"), (slice(tail_queries, None), "tail"))
    ]
    return torch.stack(each).sum()


def penalised_relations(
    structure: Structure, r: Tensor, by_relation: Tensor, counts: Tensor, settings: TrainingSettings
) -> Tensor:
    """The penalty of the queries' relations."""
    name, weight = settings.regulariser, settings.relation_weight
    return penalised(r, by_relation, counts, name, weight, lengths_in(structure, "relation", name))


def lengths_in(structure: Structure, role: str, name: str) -> Lengths:
    """What the regulariser takes for the lengths of a role's entries."""
    if name != "n3-moduli":
        return torch.abs
    return partial(moduli, groups=belonging_together(structure, role))


def moduli(rows: Tensor, groups: Groups) -> Tensor:
    """For each entry the length of the vector that the parts of its group make at its place: of a complex
    number its modulus. [n, d]"""
    count = sum(map(len, groups))
    result = torch.empty_like(rows)
    parts, lengths = rows.chunk(count, -1), result.chunk(count, -1)
    for first, *others in groups:
        if not others:
            torch.abs(parts[first - 1], out=lengths[first - 1])
            continue
        length = torch.mul(parts[first - 1], parts[first - 1], out=lengths[first - 1])
        for other in others:
            length.addcmul_(parts[other - 1], parts[other - 1])
        length.sqrt_()
        for other in others:
            lengths[other - 1].copy_(length)
    return result
