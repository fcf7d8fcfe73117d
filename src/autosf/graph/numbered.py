"""Layouts that write numbers and name them elsewhere: `entities.dict`, OpenKE, LibKGE.

They are read like any table, with the numbers for labels; then the numbers are replaced by the names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from autosf.counting import counted
from autosf.errors import UserError, quoted, shown
from autosf.graph.dialects import dialect_of, form_of
from autosf.graph.knowledge_graph import KnowledgeGraph, LabelColumns
from autosf.graph.layouts import HABITS, LabelFile, Layout
from autosf.graph.roles import Roles
from autosf.graph.tables import Table, read_fields
from autosf.graph.text_lines import line_where, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from autosf.graph.dialects import TableOptions
    from autosf.graph.text_lines import Dialect
    from autosf.graph.vocabulary import Vocabulary

DELIMITERS = ("\t", " ")
OPENKE_ROLES = Roles(head=0, relation=2, tail=1)
WHOLE_NUMBER = r"^(?:0|[1-9][0-9]{0,17})$"


def read_openke(path: Path) -> Table:
    """An OpenKE file: the number of triples on the first line, then **head, tail, relation** on each."""
    frame = _counted_fields(path, 3)
    return Table(LabelColumns(*(frame[str(place)] for place in OPENKE_ROLES.places())))


def named(
    graph: KnowledgeGraph, layout: Layout, options: TableOptions, by_ids: bool | None
) -> KnowledgeGraph:
    """The graph with its numbers replaced by the names in the layout's label files.

    Where the splits may hold either (`entities.dict`), `by_ids` says which; None finds out.
    """
    entities, relations = (_Names(*both, layout, options) for both in _label_files(layout))
    warnings = (*graph.warnings, *_spare(graph, entities.labels, relations.labels))
    if layout.habit == "dict" and not (by_ids or (by_ids is None and entities.all_numbers(graph.entities))):
        entities.refuse_unknown(graph.entities, (0, 2))
        relations.refuse_unknown(graph.relations, (1,))
        return replace(graph, warnings=warnings)
    renamed = KnowledgeGraph.from_ids(
        graph.name,
        entities.of_numbers(graph.entities, (0, 2)),
        relations.of_numbers(graph.relations, (1,)),
        dict(graph.splits()),
    )
    return replace(renamed, warnings=warnings)


def read_labels(path: Path, file: LabelFile) -> pl.Series:
    """The names in the order of their ids, which must be 0, 1, 2, ... in any order."""
    if file.counted:
        frame = _counted_fields(path, 2)
    else:
        dialect, _, _ = dialect_of(path, DELIMITERS, least=2)
        frame = read_fields(path, dialect, 2, filled=(0, 1))
    labels = frame[str(1 - file.id_place)]
    ids = frame[str(file.id_place)]
    numbers = _numbers(ids)
    wrong = numbers.is_null() | (numbers >= len(ids)) | numbers.is_duplicated()
    if wrong.any():
        bad = ids.filter(wrong.fill_null(value=True))[0]
        line = _line_with(path, file.id_place, bad)
        expected = f"expected the ids 0 to {len(ids) - 1}, each once"
        raise UserError(f"{shown(path)}:{line}: {expected}, found {quoted(bad)}; number the lines anew")
    if labels.is_duplicated().any():
        twice = labels.filter(labels.is_duplicated())[0]
        line = _line_with(path, 1 - file.id_place, twice)
        raise UserError(
            f"{shown(path)}:{line}: the label {quoted(twice)} has two ids; expected one for each label"
        )
    return labels.gather(numbers.arg_sort()).alias("label")


def _line_with(path: Path, place: int, text: str) -> int | None:
    dialect, _, _ = dialect_of(path, DELIMITERS, least=2)
    return line_where(path, dialect, lambda _, fields: len(fields) == 2 and fields[place] == text)


def _counted_fields(path: Path, fields: int) -> pl.DataFrame:
    """The records after the count line, whose number must be true."""
    dialect, first, _ = dialect_of(path, DELIMITERS, least=fields)
    told = first.fields[0]
    if len(first.fields) != 1 or not (told.isascii() and told.isdecimal()):
        found = quoted(dialect.delimiter.join(first.fields))
        raise UserError(
            f"{shown(path)}:{first.line}: expected the number of lines that follow, found {found}"
        )
    frame = read_fields(path, dialect, fields, filled=range(fields), skip=1)
    if str(len(frame)) != (told.lstrip("0") or "0"):  # compared as text: it may have any number of digits
        found = f"the count line says {quoted(told)[1:-1]}, found {counted(len(frame), 'line')} after it"
        raise UserError(f"{shown(path)}:{first.line}: {found}; correct the count or complete the file")
    if frame.is_empty():
        raise UserError(f"{shown(path)}: expected lines after the count line, found none")
    return frame


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of one kind, in the order of their ids, and where to look for the line of a mistake."""

    path: Path
    labels: pl.Series
    layout: Layout
    options: TableOptions

    def all_numbers(self, tokens: Vocabulary) -> bool:
        """Whether the splits must hold ids: plain numbers throughout that are not all labels themselves."""
        return (
            not _numbers(tokens.labels).has_nulls() and not tokens.labels.is_in(self.labels.implode()).all()
        )

    def of_numbers(self, tokens: Vocabulary, sides: tuple[int, ...]) -> pl.Series:
        """The name of each number in the vocabulary."""
        numbers = _numbers(tokens.labels)
        wrong = (numbers.is_null() | (numbers >= len(self.labels))).fill_null(value=True)
        if wrong.any():
            place, found = self._first_use(set(tokens.labels.filter(wrong)), sides)
            expected = f"expected an id from 0 to {len(self.labels) - 1} as in {quoted(self.path.name)}"
            raise UserError(f"{place}: {expected}, found {quoted(found)}; correct it or add it there")
        return self.labels.gather(numbers)

    def refuse_unknown(self, tokens: Vocabulary, sides: tuple[int, ...]) -> None:
        """Raise if the splits hold a label that the label file does not."""
        unknown = tokens.labels.filter(~tokens.labels.is_in(self.labels.implode()))
        if len(unknown):
            place, found = self._first_use(set(unknown), sides)
            expected = f"expected a label of {quoted(self.path.name)}"
            raise UserError(f"{place}: {expected}, found {quoted(found)}; add it there or remove the line")

    def _first_use(self, bad: set[str], sides: tuple[int, ...]) -> tuple[str, str]:
        """File and line of the first of the `bad` labels among the splits, and its text."""
        for path in self.layout.splits.values():
            dialect, roles = _dialect_and_roles(path, self.layout, self.options)
            places = [roles.places()[side] for side in sides]
            for record in records(path, dialect):
                for place in places:
                    if len(record.fields) > place and record.fields[place] in bad:
                        return f"{shown(path)}:{record.line}", record.fields[place]
        raise AssertionError("a label of the graph is in one of its splits")


def _label_files(layout: Layout) -> Iterator[tuple[Path, pl.Series]]:
    file = HABITS[layout.habit].labels
    for path in (layout.entities, layout.relations):
        assert file is not None
        assert path is not None
        yield path, read_labels(path, file)


def _dialect_and_roles(path: Path, layout: Layout, options: TableOptions) -> tuple[Dialect, Roles]:
    if layout.habit == "openke":
        return dialect_of(path, DELIMITERS, least=3)[0], OPENKE_ROLES
    form = form_of(path, options)
    return form.dialect, form.roles


def _numbers(column: pl.Series) -> pl.Series:
    """The whole numbers that the texts write in the plain way; null for every other text."""
    frame = pl.DataFrame({"text": column})
    plain = pl.when(pl.col("text").str.contains(WHOLE_NUMBER)).then(pl.col("text"))
    return frame.select(plain.cast(pl.Int64, strict=False)).to_series()


def _spare(graph: KnowledgeGraph, entities: pl.Series, relations: pl.Series) -> list[str]:
    """A word on labels that no triple uses: they are left out of the graph."""
    pairs = ((graph.entities, entities), (graph.relations, relations))
    return [
        f"left out {counted(len(labels) - len(used), f'{used.kind} label')} that no triple uses"
        for used, labels in pairs
        if len(labels) > len(used)
    ]
