"""The graph as everything after reading sees it: ids in compact arrays, frozen, with a content digest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from autosf.algebra.notebook import facts
from autosf.graph.digest import content_digest
from autosf.graph.splits import SPLITS as SPLITS
from autosf.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray


class LabelColumns(NamedTuple):
    """The triples of one split as three String columns of equal length, without nulls."""

    heads: pl.Series
    relations: pl.Series
    tails: pl.Series


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
    _kept: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def from_columns(
        cls, name: str, columns: Mapping[str, LabelColumns | tuple[pl.Series, pl.Series, pl.Series]]
    ) -> KnowledgeGraph:
        """The graph of label columns by split, in one vocabulary; a split left out is empty."""
        parts = [LabelColumns(*columns[split]) for split in SPLITS if split in columns]
        heads = _chained([part.heads for part in parts])
        tails = _chained([part.tails for part in parts])
        links = _chained([part.relations for part in parts])
        entities = Vocabulary.of([heads, tails], "entity")
        relations = Vocabulary.of([links], "relation")
        triples = np.empty((len(heads), 3), dtype=np.int32)
        triples[:, 0] = entities.encode(heads)
        triples[:, 1] = relations.encode(links)
        triples[:, 2] = entities.encode(tails)
        lengths = [len(columns[split][0]) if split in columns else 0 for split in SPLITS]
        train, valid, test = _frozen(triples, lengths)
        return cls(name, entities, relations, train, valid, test)

    @classmethod
    def from_ids(
        cls,
        name: str,
        entities: pl.Series | Sequence[str],
        relations: pl.Series | Sequence[str],
        triples: Mapping[str, ArrayLike],
    ) -> KnowledgeGraph:
        """The graph of id arrays by split, [n, 3] each; an id is a place in `entities` or `relations`.

        Labels come in any order and are distinct; ids become places in the sorted labels, as everywhere.
        Labels that no triple uses are left out, so that one content has one numbering.
        """
        parts = [_rows(triples.get(split, ())) for split in SPLITS]
        rows = np.concatenate(parts)
        ids = np.empty(rows.shape, dtype=np.int32)
        entity_vocabulary, entity_ids = _renumbered(
            pl.Series("label", entities, pl.String), "entity", rows[:, ::2]
        )
        relation_vocabulary, relation_ids = _renumbered(
            pl.Series("label", relations, pl.String), "relation", rows[:, 1:2]
        )
        ids[:, ::2], ids[:, 1:2] = entity_ids, relation_ids
        train, valid, test = _frozen(ids, [len(part) for part in parts])
        return cls(name, entity_vocabulary, relation_vocabulary, train, valid, test)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{split} {len(triples):,}" for split, triples in self.splits())
        return f"<graph {self.name}: {len(self.entities):,} entities, {len(self.relations):,} relations, {sizes}>"

    def _repr_html_(self) -> str:
        counts = [("entities", len(self.entities)), ("relations", len(self.relations))]
        counts += [(split, len(triples)) for split, triples in self.splits()]
        warnings = [("warning", text) for text in self.warnings]
        return facts(self.name, [*((name, f"{count:,}") for name, count in counts), *warnings])

    @property
    def digest(self) -> str:
        """SHA-256 of the content: the same for any file format and row order, another when any triple is."""
        if "digest" not in self._kept:
            self._kept["digest"] = content_digest(self)
        return self._kept["digest"]

    def splits(self) -> Iterator[tuple[str, NDArray[np.int32]]]:
        """Name and triples of each split, in the order train, valid, test."""
        for split in SPLITS:
            yield split, getattr(self, split)

    def columns(self, split: str) -> LabelColumns:
        """The labels of one split's triples, in its order."""
        triples = getattr(self, split)
        heads, links, tails = (np.ascontiguousarray(triples[:, side]) for side in range(3))
        return LabelColumns(
            self.entities.labels.gather(heads).alias("head"),
            self.relations.labels.gather(links).alias("relation"),
            self.entities.labels.gather(tails).alias("tail"),
        )

    def with_warnings(self, *warnings: str) -> KnowledgeGraph:
        """The same graph with further warnings."""
        return replace(self, warnings=(*self.warnings, *warnings))


def _chained(columns: list[pl.Series]) -> pl.Series:
    """The columns as one, without copying their text."""
    return pl.concat(columns, rechunk=False) if columns else pl.Series(dtype=pl.String)


def _rows(triples: ArrayLike) -> NDArray[np.integer]:
    """`triples` as rows of three; an empty list has no number type of its own."""
    rows = np.asarray(triples)
    return rows.reshape(-1, 3) if rows.size else np.empty((0, 3), dtype=np.int32)


def _frozen(triples: NDArray[np.int32], lengths: Sequence[int]) -> list[NDArray[np.int32]]:
    """Consecutive parts of `triples`, of these lengths, that nobody can write to."""
    triples.flags.writeable = False
    return np.split(triples, np.cumsum(lengths)[:-1])


def _renumbered(
    labels: pl.Series, kind: str, ids: NDArray[np.integer]
) -> tuple[Vocabulary, NDArray[np.int32]]:
    """The sorted vocabulary of the labels that `ids` use, and the ids as places in it."""
    used = np.zeros(len(labels), dtype=bool)
    used[ids] = True
    kept = (
        pl.DataFrame({"label": labels, "old": pl.int_range(len(labels), eager=True)})
        .filter(used)
        .sort("label")
    )
    assert kept["label"].n_unique() == len(kept), f"{kind} labels must be distinct"
    places = np.zeros(len(labels), dtype=np.int32)
    places[kept["old"].to_numpy()] = np.arange(len(kept), dtype=np.int32)
    return Vocabulary(kept["label"], kind), places[ids]
