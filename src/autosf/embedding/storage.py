"""Where a training keeps its large tensors: in memory, or in files that are mapped into it.

Files let embeddings and running sums exceed the memory: a step reads and writes the rows it touches, and the
operating system keeps of them in memory what fits. They are scratch, half an epoch on at any moment: what
survives a kill or a power cut is the checkpoint.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from autosf.embedding.optimisers import ROW_SUMS, sum_width
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torch import Tensor

    from autosf.embedding.settings import TrainingSettings
    from autosf.embedding.state import State

ROWS = 1 << 16  # of a tensor handled at a time where nothing of its size may be made beside it


@dataclass(frozen=True, slots=True)
class Storage:
    """Makes tensors by name, in the folder's files where there is one, else in memory."""

    folder: Path | None = None

    def zeros(self, name: str, rows: int, width: int) -> Tensor:
        """A new tensor of zeros; on disk it takes no room before it is written to. [rows, width]"""
        if self.folder is None or not rows:
            return torch.zeros(rows, width)
        path = self.folder / f"{name}.f32"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)  # one of this name that is still mapped lives on without it
            return torch.from_file(str(path), shared=True, size=rows * width).view(rows, width)
        except (OSError, RuntimeError) as error:
            raise UserError(f"{path}: cannot be made for {rows:,} x {width} numbers ({error})") from None

    def copy(self, name: str, tensor: Tensor, into: Tensor | None = None) -> Tensor:
        """The tensor's values in a place of their own: the given one, or a new one."""
        if into is not None:
            return into.copy_(tensor)
        return tensor.clone() if self.folder is None else self.zeros(name, *tensor.shape).copy_(tensor)

    def discard(self) -> None:
        """Delete the files: scratch has no use once training has ended."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


MEMORY = Storage()


def running_sums(
    found: Mapping[str, Tensor], entities: int, settings: TrainingSettings, storage: Storage
) -> dict[str, Tensor]:
    """An optimiser's sums for all entities, those to come included: it would make them in memory."""
    return {
        name: storage.copy(f"entity_sums.{name}", found[name])
        if name in found
        else storage.zeros(f"entity_sums.{name}", entities, sum_width(name, settings.dimension))
        for name in ROW_SUMS[settings.optimiser]
    }


def stored(state: State, settings: TrainingSettings, storage: Storage) -> State:
    """The state with all that has a row for each entity in the storage's files."""
    if storage.folder is None:
        return state

    def kept(name: str) -> Tensor | None:
        tensor = getattr(state, name)
        return None if tensor is None else storage.copy(name, tensor)

    return replace(
        state,
        entities=storage.copy("entities", state.entities),
        entity_sums=running_sums(state.entity_sums, len(state.entities), settings, storage),
        average_entities=kept("average_entities"),
        best_entities=kept("best_entities"),
    )


def is_finite(tensor: Tensor) -> bool:
    """Whether all its numbers are: their sum, a quick pass, says so unless it is too large a number itself.

    Only then each is looked at, without a mask of the tensor's size.
    """
    parts = torch.split(tensor, ROWS)
    return bool(tensor.sum().isfinite()) or all(bool(part.isfinite().all()) for part in parts)
