"""Training between two epochs: everything there is to save, and to go on from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch came to; `valid_mrr` where the model was validated after it."""

    number: int
    loss: float
    seconds: float  # of training alone
    valid_mrr: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Training between two epochs: everything needed to go on."""

    entities: Tensor
    relations: Tensor
    entity_sums: dict[str, Tensor] = field(default_factory=dict)
    relation_sums: dict[str, Tensor] = field(default_factory=dict)
    curve: tuple[Epoch, ...] = ()
    average_entities: Tensor | None = None  # where training averages
    average_relations: Tensor | None = None
    best_entities: Tensor | None = None
    best_relations: Tensor | None = None
    cached_tails: Tensor | None = None  # of the cache sampler, for each tail query and each head query
    cached_heads: Tensor | None = None

    @property
    def weights(self) -> tuple[Tensor, Tensor]:
        """Entities and relations to be validated and kept: the averages where there are any."""
        if self.average_entities is not None and self.average_relations is not None:
            return self.average_entities, self.average_relations
        return self.entities, self.relations

    @property
    def epochs(self) -> int:
        return len(self.curve)

    @property
    def best(self) -> Epoch | None:
        """The validated epoch with the highest MRR, the first among equals."""
        validated = [epoch for epoch in self.curve if epoch.valid_mrr is not None]
        return max(validated, key=lambda epoch: epoch.valid_mrr or 0.0, default=None)

    def stale(self) -> int:
        """Validations since the best one."""
        best = self.best
        return sum(
            e.valid_mrr is not None and best is not None and e.number > best.number for e in self.curve
        )

    def is_over(self, epochs: int, patience: int) -> bool:
        """Whether there is nothing left to train: all epochs are done, or validation has not risen for long."""
        return self.epochs >= epochs or bool(patience and self.stale() >= patience)
