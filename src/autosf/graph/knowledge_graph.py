"""The graph as everything after reading sees it: ids in compact arrays, frozen, with a digest of its content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from autosf.graph.vocabulary import Vocabulary

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True, eq=False)
class KnowledgeGraph:
    """Triples of ids by split. Each split is [n, 3] int32, read-only, columns head, relation, tail."""

    name: str
    entities: Vocabulary
    relations: Vocabulary
    train: NDArray[np.int32]
    valid: NDArray[np.int32]
    test: NDArray[np.int32]
    warnings: tuple[str, ...] = ()

    def splits(self) -> Iterator[tuple[str, NDArray[np.int32]]]:
        """Name and triples of each split, in the order train, valid, test."""
        for split in SPLITS:
            yield split, getattr(self, split)
