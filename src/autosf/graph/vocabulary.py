"""Labels and their ids: one vocabulary for all splits, in the order of the labels themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from autosf.errors import UserError, did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Distinct labels, sorted by their UTF-8 bytes; a label's id is its place. Kept as an Arrow column."""

    labels: pl.Series
    kind: str = "entity"
    _ids: dict[str, int] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    def label(self, id_: int) -> str:
        """The label of an id."""
        return str(self.labels[int(id_)])

    def id(self, label: str) -> int:
        """The id of a label; an unknown one is the user's mistake, answered with the nearest known ones."""
        position = self.labels.search_sorted(label)
        if position < len(self.labels) and self.labels[position] == label:
            return int(position)
        raise UserError(f"unknown {self.kind} {quoted(label)}{did_you_mean(label, self._near(label))}")

    def ids(self, labels: Sequence[str]) -> list[int]:
        return [self.id(label) for label in labels]

    def _near(self, label: str) -> Iterable[str]:
        """Labels worth comparing with a misspelt one: all of a small vocabulary, a prefix's of a large one."""
        if len(self.labels) <= 50_000:
            return self.labels.to_list()
        return self.labels.filter(self.labels.str.starts_with(label[:2])).head(5_000).to_list()
