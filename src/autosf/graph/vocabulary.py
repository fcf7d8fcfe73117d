"""Labels and their ids: one vocabulary for all splits, in the order of the labels themselves."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from autosf.errors import UserError, did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

COMPARED = 2_000  # labels that a misspelt one is compared with letter by letter, which takes some tens of ms
RUN = 3  # letters in a row
LONGEST_MISSPELT = 60


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Distinct labels, sorted by their UTF-8 bytes; a label's id is its place. Kept as an Arrow column."""

    labels: pl.Series
    kind: str = "entity"

    @classmethod
    def of(cls, columns: Iterable[pl.Series], kind: str = "entity") -> Vocabulary:
        """The vocabulary of every label in `columns`, each a String column without nulls."""
        distinct = [column.unique() for column in columns]
        labels = pl.concat(distinct) if distinct else pl.Series(dtype=pl.String)
        return cls(labels.unique().sort().alias("label"), kind)

    def __len__(self) -> int:
        return len(self.labels)

    def label(self, id_: int) -> str:
        """The label of an id."""
        return str(self.labels[int(id_)])

    def id(self, label: str) -> int:
        """The id of a label; an unknown one is the user's mistake, answered with the nearest known ones."""
        found = self.find(label)
        if found is None:
            raise UserError(f"unknown {self.kind} {quoted(label)}{did_you_mean(label, self._near(label))}")
        return found

    def find(self, label: str) -> int | None:
        """The id of a label, if it is one."""
        position = bisect_left(self.labels, label)  # letters sort as their bytes do
        return position if position < len(self) and self.labels[position] == label else None

    def ids(self, labels: Sequence[str]) -> list[int]:
        return [self.id(label) for label in labels]

    def encode(self, labels: pl.Series) -> NDArray[np.int32]:
        """The ids of a long column of labels, by one hash join. [n] int32; an unknown label as in `id`."""
        known = pl.DataFrame(
            {"label": self.labels, "id": pl.int_range(len(self), dtype=pl.Int32, eager=True)}
        )
        ids = pl.DataFrame({"label": labels}).join(known, on="label", how="left", maintain_order="left")["id"]
        if ids.null_count():
            self.id(labels.filter(ids.is_null())[0])
        return ids.to_numpy()

    def spaced_twice(self) -> int:
        """How many labels begin or end with a space and are labels without it, too."""
        stripped = self.labels.str.strip_chars()
        few = stripped.filter(stripped != self.labels)
        known = self.labels.filter(self.labels.is_in(few.implode())) if len(few) else few
        return int(few.is_in(known.implode()).sum())

    def _near(self, label: str) -> Iterable[str]:
        """Labels worth comparing with a misspelt one: all, or of many those that share most runs of letters."""
        if len(self.labels) <= COMPARED:
            return self.labels.to_list()
        low = label[:LONGEST_MISSPELT].lower().encode(errors="replace").decode()
        known = self.labels.str.to_lowercase()
        shared = pl.Series([0]).new_from_index(0, len(known))
        for run in {low[start : start + RUN] for start in range(max(1, len(low) - RUN + 1))}:
            shared += known.str.contains(run, literal=True).cast(pl.Int64)
        # Of those that share as many, the likest in length come first.
        lengths = (known.str.len_chars().cast(pl.Int64) - len(low)).abs()
        order = (
            pl.DataFrame({"shared": -shared, "apart": lengths})
            .with_row_index()
            .sort("shared", "apart", "index")
        )
        return self.labels.gather(order["index"].head(COMPARED)).to_list()


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can write the text: one from a badly encoded argument may hold half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
