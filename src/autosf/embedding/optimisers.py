"""Steps of gradient descent on one matrix, in place: on all of it, or on some rows.

Whole steps are torch's own, fused into one pass where it can, through their functional form: the optimiser
objects around them cost 80 microseconds a step, more than all the arithmetic on a small graph. Adagrad's is
compiled where that can be: what torch does around it costs 40.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.optim.adagrad import adagrad
from torch.optim.adam import adam

from autosf.embedding.compiled import kernel, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from autosf.embedding.settings import TrainingSettings


class Optimiser:
    """Owns a matrix and its running sums, both changed in place; gradients are written elsewhere."""

    def __init__(self, matrix: Tensor, settings: TrainingSettings, sums: Mapping[str, Tensor]) -> None:
        self.matrix = matrix
        self._sums = dict(sums)
        name = settings.optimiser
        self._step, self._row_step = WHOLE_STEPS[name], ROW_STEPS[name]
        self._whole_names, self._row_names = WHOLE_SUMS[name], ROW_SUMS[name]
        self._compiled = kernel() if name == "adagrad" and plain(matrix) else None
        self._compiled_steps = 0

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        if self._compiled is not None and gradient.is_contiguous():
            self._compiled.adagrad(self.matrix, self._having(("sum",))["sum"], gradient, learning_rate)
            self._compiled_steps += 1
            return
        self._step(self.matrix, self._having(self._whole_names), gradient, learning_rate)

    def step_rows(self, rows: Tensor, gradients: Tensor, learning_rate: float) -> None:
        """A step on some rows only; gradients of a row that comes more than once are added up."""
        unique, places = torch.unique(rows, return_inverse=True)
        summed = gradients.new_zeros(len(unique), gradients.shape[1]).index_add_(0, places, gradients)
        self.step_distinct_rows(unique, summed, learning_rate)

    def step_distinct_rows(self, rows: Tensor, gradients: Tensor, learning_rate: float) -> None:
        """The same where none comes twice. The gradients may be written to."""
        sums = self._having(self._row_names)
        if self._compiled is not None and gradients.is_contiguous():
            self._compiled.adagrad_rows(self.matrix, sums["sum"], rows, gradients, learning_rate)
        else:
            self._row_step(self.matrix, sums, rows, gradients, learning_rate)

    def _having(self, names: tuple[str, ...]) -> dict[str, Tensor]:
        """The running sums, made where they have not been yet."""
        for name in names:
            if name not in self._sums:
                rows, dimension = self.matrix.shape
                width = sum_width(name, dimension)
                self._sums[name] = torch.tensor(0.0) if name == "step" else self.matrix.new_zeros(rows, width)
        return self._sums

    def state(self) -> dict[str, Tensor]:
        """The running sums, by name."""
        if self._compiled_steps:
            self._having(("step",))["step"] += self._compiled_steps
            self._compiled_steps = 0
        return self._sums


def adagrad_whole(matrix: Tensor, sums: dict[str, Tensor], gradient: Tensor, rate: float) -> None:
    adagrad(
        [matrix],
        [gradient],
        [sums["sum"]],
        [sums["step"]],
        fused=matrix.device.type == "cpu",  # torch has it for no other device
        foreach=False,
        lr=rate,
        weight_decay=0.0,
        lr_decay=0.0,
        eps=1e-10,
        maximize=False,
    )


def adam_whole(matrix: Tensor, sums: dict[str, Tensor], gradient: Tensor, rate: float) -> None:
    steps = sums["step"].to(matrix.device)  # the fused step counts where the matrix is
    adam(
        [matrix],
        [gradient],
        [sums["exp_avg"]],
        [sums["exp_avg_sq"]],
        [],
        [steps],
        fused=matrix.device.type in ("cpu", "cuda"),
        foreach=False,
        amsgrad=False,
        beta1=0.9,
        beta2=0.999,
        lr=rate,
        weight_decay=0.0,
        eps=1e-8,
        maximize=False,
    )
    sums["step"] = steps


def sgd_whole(matrix: Tensor, _: dict[str, Tensor], gradient: Tensor, rate: float) -> None:
    matrix.sub_(gradient, alpha=rate)


def adagrad_rows(
    matrix: Tensor, state: dict[str, Tensor], rows: Tensor, gradients: Tensor, rate: float
) -> None:
    """Adagrad on some rows: exact, as rows without a gradient would not move anyway."""
    sums = state["sum"].index_select(0, rows).addcmul_(gradients, gradients)
    state["sum"].index_copy_(0, rows, sums)
    matrix.index_add_(0, rows, gradients.div_(sums.sqrt_().add_(1e-10)), alpha=-rate)


def adam_rows(matrix: Tensor, state: dict[str, Tensor], rows: Tensor, gradients: Tensor, rate: float) -> None:
    """Adam on some rows, each with its own count of steps (lazy Adam)."""
    steps = state["row_steps"][rows].add_(1)
    mean = state["exp_avg"][rows].lerp_(gradients, 0.1)
    square = state["exp_avg_sq"][rows].mul_(0.999).addcmul_(gradients, gradients, value=0.001)
    state["row_steps"][rows], state["exp_avg"][rows], state["exp_avg_sq"][rows] = steps, mean, square
    size = (square / (1 - 0.999**steps)).sqrt_().add_(1e-8)
    matrix[rows] -= rate * (mean / (1 - 0.9**steps)) / size


def sgd_rows(matrix: Tensor, _: dict[str, Tensor], rows: Tensor, gradients: Tensor, rate: float) -> None:
    """Plain descent on some rows."""
    matrix.index_add_(0, rows, gradients, alpha=-rate)


WHOLE_STEPS = {"adagrad": adagrad_whole, "adam": adam_whole, "sgd": sgd_whole}
WHOLE_SUMS = {"adagrad": ("sum", "step"), "adam": ("exp_avg", "exp_avg_sq", "step"), "sgd": ()}
ROW_STEPS = {"adagrad": adagrad_rows, "adam": adam_rows, "sgd": sgd_rows}
ROW_SUMS = {"adagrad": ("sum",), "adam": ("exp_avg", "exp_avg_sq", "row_steps"), "sgd": ()}


def sum_width(name: str, dimension: int) -> int:
    """Numbers that a running sum has for each row: one where it counts the row's steps."""
    return 1 if name == "row_steps" else dimension
