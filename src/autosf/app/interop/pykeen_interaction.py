"""Our contraction inside PyKEEN: an `Interaction`, and a model, for any structure.

PyKEEN's own `AutoSFInteraction` multiplies each term out over the whole broadcast, [batch, entities, d / K] a
term. Here the two roles that are given are contracted first, and the third meets them in one matrix product, as
in our own training; the gradients are contractions, too. Importing this module registers both under the names
`bilinear` in PyKEEN's resolvers. `benchmarks/pykeen_interaction.py` measures the gain.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pykeen.models import ERModel, model_resolver
from pykeen.nn.modules import Interaction, interaction_resolver
from torch.autograd.function import once_differentiable

from autosf.app.run_results import structure_given
from autosf.embedding.kernels import contract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from autosf.algebra.structure import Structure

ROLES = ("head", "relation", "tail")


class Query(torch.autograd.Function):
    """The contraction of two roles, [..., d], with gradients that are contractions themselves."""

    @staticmethod
    def forward(ctx: Any, structure: Structure, roles: tuple[str, str], one: Tensor, other: Tensor) -> Tensor:
        ctx.structure, ctx.roles = structure, roles
        ctx.save_for_backward(one, other)
        return contract(structure, **dict(zip(roles, (one, other), strict=True)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, Tensor]:
        one, other = ctx.saved_tensors
        first, second = ctx.roles
        absent = next(role for role in ROLES if role not in ctx.roles)
        grad = grad.contiguous()
        of_one = contract(ctx.structure, **{second: other, absent: grad})
        of_other = contract(ctx.structure, **{first: one, absent: grad})
        return None, None, of_one, of_other


class BilinearInteraction(Interaction):  # type: ignore[misc]
    """f(h, r, t) of a structure: a name of the zoo, rows, a Structure, or the folder of a run for its winner."""

    entity_shape = ("d",)
    relation_shape = ("d",)

    def __init__(self, structure: Structure | str | Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.structure = structure_given(structure)

    def forward(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Scores of broadcastable batches, [..., d] each."""
        batches = {"head": h, "relation": r, "tail": t}
        absent = widest(batches)
        given = {role: batch for role, batch in batches.items() if role != absent}
        one, other = torch.broadcast_tensors(*given.values())  # type: ignore[no-untyped-call]
        query = Query.apply(  # type: ignore[no-untyped-call]
            self.structure, tuple(given), one.contiguous(), other.contiguous()
        )
        return inner(query, batches[absent])


class Bilinear(ERModel):  # type: ignore[misc]
    """A PyKEEN model of one structure; its results can be pickled, as its class has a name of its own.

    ---
    name: AutoSF, contracted
    citation:
        author: Zhang
        year: 2020
        arxiv: 1904.11682
        link: https://arxiv.org/abs/1904.11682
    """

    hpo_default: ClassVar[dict[str, Any]] = {"embedding_dim": {"type": int, "low": 16, "high": 256, "q": 16}}

    def __init__(
        self,
        *,
        structure: Structure | str | Sequence[Sequence[int]] = "complex",
        embedding_dim: int = 64,
        **options: Any,
    ) -> None:
        super().__init__(
            interaction=BilinearInteraction(structure),
            entity_representations_kwargs={"shape": embedding_dim},
            relation_representations_kwargs={"shape": embedding_dim},
            **options,
        )


def widest(batches: dict[str, Tensor]) -> str:
    """The role to leave for last: without it, what the other two broadcast to is smallest.

    Of equals the tail is left, then the head.
    """

    def size_without(role: str) -> int:
        shapes = [batch.shape[:-1] for other, batch in batches.items() if other != role]
        return prod(torch.broadcast_shapes(*shapes))  # type: ignore[no-untyped-call]

    return min(("tail", "head", "relation"), key=size_without)


def inner(query: Tensor, rows: Tensor) -> Tensor:
    """The inner products of broadcastable [..., d]: by one matrix product where the batches allow it."""
    if query.ndim == rows.ndim == 3 and query.shape[1] == 1:
        if rows.shape[0] == 1:
            return query[:, 0] @ rows[0].T  # all queries against the same candidates
        if rows.shape[0] == query.shape[0]:
            return torch.bmm(query, rows.mT)[:, 0]  # each query against its own
    return (query * rows).sum(-1)


def register() -> None:
    """Make both known by name to PyKEEN's resolvers; doing it again changes nothing."""
    for resolver, kind in ((interaction_resolver, BilinearInteraction), (model_resolver, Bilinear)):
        if kind not in resolver.lookup_dict.values():
            resolver.register(kind)


register()
