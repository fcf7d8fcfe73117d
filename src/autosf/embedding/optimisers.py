"""Steps of gradient descent on one matrix, in place. torch's fused optimisers do the arithmetic in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from autosf.embedding.settings import TrainingSettings


class Optimiser:
    """Owns a matrix and its running sums; `step` takes a gradient written elsewhere."""

    def __init__(self, matrix: Tensor, settings: TrainingSettings, sums: Mapping[str, Tensor]) -> None:
        self.matrix = matrix
        self._parameter = torch.nn.Parameter(matrix, requires_grad=False)  # the same memory
        self._inner = made(self._parameter, settings)
        self._inner.state[self._parameter].update({name: value.clone() for name, value in sums.items()})

    def step(self, gradient: Tensor, learning_rate: float) -> None:
        self._inner.param_groups[0]["lr"] = learning_rate
        self._parameter.grad = gradient
        self._inner.step()

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
