"""Our loss in PyKEEN's loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykeen.losses import CrossEntropyLoss

if TYPE_CHECKING:
    from torch import Tensor


class MulticlassLoss(CrossEntropyLoss):  # type: ignore[misc]
    """The multi-class loss as we train with: every triple counts the same.

    PyKEEN's own cross entropy gives every query the same weight instead, however many answers it has, and so
    less to the triples of a query with many, which the metrics count one by one.
    """

    def process_lcwa_scores(self, predictions: Tensor, labels: Tensor, **_: Any) -> Tensor:
        """The mean over triples of -log softmax; labels are 1 for answers. [batch, entities] each"""
        likely = predictions.log_softmax(-1)
        return -(labels * likely).sum() / labels.sum()
