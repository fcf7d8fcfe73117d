"""Triples labelled true or false, `valid_neg` and `test_neg`, for triplet classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.errors import UserError, quoted, shown
from autosf.graph.dialects import TableOptions, delimiters_for, dialect_of
from autosf.graph.layouts import TEXT
from autosf.graph.roles import SPLIT_WORDS
from autosf.graph.tables import read_fields
from autosf.graph.text_lines import line_where

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.text_lines import Dialect
    from autosf.graph.vocabulary import Vocabulary

LABELS = {"1": True, "-1": False}


@dataclass(frozen=True, slots=True, eq=False)
class LabelledTriples:
    """Triples [n, 3] int32 in the graph's ids, and whether each is true [n] bool; both read-only."""

    triples: NDArray[np.int32]
    is_true: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Negatives:
    """The labelled triples of valid and test; each holds both classes."""

    valid: LabelledTriples
    test: LabelledTriples


def read_negatives(folder: Path, graph: KnowledgeGraph) -> Negatives:
    """The labelled triples of a folder, `valid_neg` and `test_neg`: rows of head, relation, tail, 1 or -1."""
    valid, test = (read_labelled(folder, split, graph) for split in ("valid", "test"))
    return Negatives(valid=valid, test=test)


def read_labelled(folder: Path, split: str, graph: KnowledgeGraph) -> LabelledTriples:
    """The labelled triples of one split, valid or test."""
    return _labelled(_found(folder, split), graph)


def _found(folder: Path, split: str) -> Path:
    """The file of a split's labelled triples, by any of the split's words and extensions."""
    for word in SPLIT_WORDS[split]:
        for ending in TEXT:
            for packed in ("", ".gz"):
                path = folder / f"{word}_neg{'.' if ending else ''}{ending}{packed}"
                if path.is_file():
                    return path
    expected = f"{split}_neg.tsv or the like, rows of head, relation, tail and 1 or -1"
    raise UserError(f"{shown(folder)}: no labelled triples for {split}; expected {expected}")


def _labelled(path: Path, graph: KnowledgeGraph) -> LabelledTriples:
    dialect, first, _ = dialect_of(path, delimiters_for(path, TableOptions()), least=4)
    if len(first.fields) != 4:
        found = f"expected {dialect.describe(4)}, found {len(first.fields)}"
        raise UserError(f"{shown(path)}:{first.line}: {found}; add the label, 1 or -1, to each line")
    frame = read_fields(path, dialect, 4, filled=range(4))
    is_known = frame["3"].is_in(list(LABELS))
    if not is_known.all():
        found = frame["3"].filter(~is_known)[0]
        line = line_where(path, dialect, lambda _, fields: fields[3] == found)
        raise UserError(f"{shown(path)}:{line}: expected the label 1 or -1 in field 4, found {quoted(found)}")
    triples = np.empty((len(frame), 3), dtype=np.int32)
    for side, vocabulary in enumerate((graph.entities, graph.relations, graph.entities)):
        triples[:, side] = _ids(frame[str(side)], side, vocabulary, path, dialect)
    is_true = (frame["3"] == "1").to_numpy().copy()
    triples.flags.writeable = is_true.flags.writeable = False
    return LabelledTriples(triples, is_true)


def _ids(
    column: pl.Series, side: int, vocabulary: Vocabulary, path: Path, dialect: Dialect
) -> NDArray[np.int32]:
    """The ids of one column; a label that the graph does not have is told with its line."""
    try:
        return vocabulary.encode(column)
    except UserError as error:
        unknown = column.filter(~column.is_in(vocabulary.labels.implode()))[0]
        line = line_where(path, dialect, lambda _, fields: fields[side] == unknown)
        raise UserError(f"{shown(path)}:{line}: {error}") from None
