"""Steps of gradient descent on one matrix, in place. torch's fused optimisers do the arithmetic in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from autosf.embedding.settings import TrainingSettings


class Optimiser:
    """Owns a matrix and its running sums, both changed in place; gradients are written elsewhere."""

    def __init__(self, matrix: Tensor, settings: TrainingSettings, sums: Mapping[str, Tensor]) -> None:
        self.matrix = matrix
        self._parameter = torch.nn.Parameter(matrix, requires_grad=False)  # the same memory
        self._inner = made(self._parameter, settings)
        self._inner.state[self._parameter].update(sums)
        self._name, self._row_step = settings.optimiser, ROW_STEPS[settings.optimiser]

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        self._inner.param_groups[0]["lr"] = learning_rate
        self._parameter.grad = gradient
        self._inner.step()

    def step_rows(self, rows: Tensor, gradients: Tensor, learning_rate: float) -> None:
        """A step on some rows only; gradients of a row that comes more than once are added up."""
        unique, places = torch.unique(rows, return_inverse=True)
        summed = gradients.new_zeros(len(unique), gradients.shape[1]).index_add_(0, places, gradients)
        self._row_step(self.matrix, self._row_state(), unique, summed, learning_rate)

    def _row_state(self) -> dict[str, Tensor]:
        """The running sums, made where torch's own have not been yet."""
        state: dict[str, Tensor] = self._inner.state[self._parameter]
        for name in ROW_SUMS[self._name]:
            state.setdefault(name, torch.zeros_like(self.matrix))
        return state

    def state(self) -> dict[str, Tensor]:
        """The running sums, by name."""
        state = self._inner.state[self._parameter]
        return {name: value for name, value in state.items() if isinstance(value, torch.Tensor)}


def made(parameter: torch.nn.Parameter, settings: TrainingSettings) -> torch.optim.Optimizer:
    """The chosen optimiser; fused where torch has it for the device."""
    device = parameter.device.type
    options: dict[str, Any] = {"lr": settings.learning_rate}
    if device == "cpu" or (device == "cuda" and settings.optimiser != "adagrad"):
        options["fused"] = True
    kinds: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "adagrad": torch.optim.Adagrad,
        "adam": torch.optim.Adam,
        "sgd": torch.optim.SGD,
    }
    return kinds[settings.optimiser]([parameter], **options)


def adagrad_rows(
    matrix: Tensor, state: dict[str, Tensor], rows: Tensor, gradients: Tensor, rate: float
) -> None:
    """Adagrad on some rows: exact, as rows without a gradient would not move anyway."""
    sums = state["sum"][rows].addcmul_(gradients, gradients)
    state["sum"][rows] = sums
    matrix[rows] -= gradients.div_(sums.sqrt_().add_(1e-10)).mul_(rate)


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


ROW_STEPS = {"adagrad": adagrad_rows, "adam": adam_rows, "sgd": sgd_rows}
ROW_SUMS = {"adagrad": ("sum",), "adam": ("exp_avg", "exp_avg_sq", "row_steps"), "sgd": ()}
