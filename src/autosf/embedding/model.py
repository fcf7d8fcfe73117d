"""A scoring function with its embeddings: everything that is needed to score, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.embedding.kernels import contract

if TYPE_CHECKING:
    from torch import Tensor

    from autosf.algebra.structure import Structure


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Embeddings of entities [N, d] and relations [R, d], or [2R, d] with reciprocal relations.

    With reciprocal relations the head query of relation r is the tail query of relation r + R.
    """

    structure: Structure
    entities: Tensor
    relations: Tensor
    reciprocal: bool = False

    @property
    def dimension(self) -> int:
        return self.entities.shape[1]

    @property
    def relation_count(self) -> int:
        """R, the graph's relations, without reciprocals."""
        return self.relations.shape[0] // (2 if self.reciprocal else 1)

    def tail_query(self, heads: Tensor, relations: Tensor) -> Tensor:
        """Vectors whose inner products with entities are the scores of (h, r, ?). [n, d]"""
        return contract(self.structure, head=self.entities[heads], relation=self.relations[relations])

    def head_query(self, relations: Tensor, tails: Tensor) -> Tensor:
        """Vectors whose inner products with entities are the scores of (?, r, t). [n, d]"""
        if self.reciprocal:
            return self.tail_query(tails, relations + self.relation_count)
        return contract(self.structure, relation=self.relations[relations], tail=self.entities[tails])

    def relation_query(self, heads: Tensor, tails: Tensor) -> Tensor:
        """Vectors whose inner products with relations are the scores of (h, ?, t). [n, d]"""
        return contract(self.structure, head=self.entities[heads], tail=self.entities[tails])

    def score(self, heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
        """Scores of triples; the mean of both directions with reciprocal relations. [n]"""
        forward = (self.tail_query(heads, relations) * self.entities[tails]).sum(-1)
        if not self.reciprocal:
            return forward
        backward = (self.head_query(relations, tails) * self.entities[heads]).sum(-1)
        return (forward + backward) / 2
