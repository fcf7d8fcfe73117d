"""Text files to columns of labels: polars reads, and where anything is in doubt the exact reader decides.

The exact reader (`text_lines`) is the definition of what a file says. Polars gives the same columns much
faster, and its result is taken where it cannot differ: no value is missing and, in CSV, quotes are in place and
blanks beside a delimiter are not quoted ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import polars as pl

from autosf.errors import UserError, quoted, shown
from autosf.graph.dialects import Form, TableOptions, form_of
from autosf.graph.knowledge_graph import LabelColumns
from autosf.graph.text_lines import (
    BLANKS,
    BYTE_ORDER_MARK,
    DELIMITER_NAMES,
    Dialect,
    Record,
    line_where,
    opened,
    records,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

RECORDS_AT_ONCE = 100_000
FEWEST_ROWS = 20  # of fewer, a label that occurs once says little


@dataclass(frozen=True, slots=True)
class Table:
    """Triples of labels in one table, with each one's split where a column tells it."""

    columns: LabelColumns
    splits: pl.Series | None = None
    warnings: tuple[str, ...] = ()


def read_table(path: Path, options: TableOptions) -> Table:
    """The triples of a text file, optionally gzipped."""
    form = form_of(path, options)
    wanted = (*form.roles.places(), *([] if form.roles.split is None else [form.roles.split]))
    frame = read_fields(path, form.dialect, form.fields, filled=wanted)
    if form.header is not None:
        frame = frame.slice(1)
        _refuse_second_header(frame, form, path)
    if frame.is_empty():
        raise UserError(f"{shown(path)}: expected triples, found only a header")
    head, relation, tail, *split = (frame.get_column(str(place)) for place in wanted)
    columns = LabelColumns(head, relation, tail)
    warnings: tuple[str, ...] = ()
    if form.header is None and options.header is None and _may_begin_with_header(columns):
        advice = "autosf data split FILE --header --out DIR (Python: header=True)"
        found = "taken for a triple, though none of its labels comes again; if it is a header"
        warnings = (f"{shown(path)}:{form.line}: {found}: {advice}",)
    return Table(columns, split[0] if split else None, warnings)


def _may_begin_with_header(columns: LabelColumns) -> bool:
    """Whether the first triple's labels are the only ones of their kind where all other relations come again."""
    if len(columns.heads) < FEWEST_ROWS:
        return False
    if any((column == column[0]).sum() > 1 for column in (columns.relations, columns.heads, columns.tails)):
        return False
    return int(columns.relations.is_unique().sum()) == 1


def read_fields(
    path: Path, dialect: Dialect, fields: int, *, filled: Sequence[int], skip: int = 0
) -> pl.DataFrame:
    """Records as String columns "0", "1", ...; those at the places `filled` have no empty label."""
    frame = _fast_fields(path, dialect, fields, skip)
    if frame is not None and dialect.quoted:
        frame = _as_quoted(frame, path, dialect)
    if frame is not None and not _has_gaps(frame, filled):
        return frame
    batches = _batches(checked_records(path, dialect, fields, filled=filled, skip=skip))
    return pl.concat([_empty(fields), *(_frame(batch, fields) for batch in batches)])


def _fast_fields(path: Path, dialect: Dialect, fields: int, skip: int) -> pl.DataFrame | None:
    """What polars makes of the file, or None where it refuses."""
    try:
        return pl.read_csv(
            path,
            has_header=False,
            skip_rows=skip,
            separator=dialect.delimiter,
            quote_char='"' if dialect.quoted else None,
            schema={str(place): pl.String for place in range(fields)},
            glob=False,
        )
    except (pl.exceptions.PolarsError, OSError, ValueError):
        return None


def _has_gaps(frame: pl.DataFrame, filled: Sequence[int]) -> bool:
    """Whether a value is missing where there must be one, or at the end: a blank or a short line, maybe."""
    columns = (frame.get_column(str(place)) for place in {*filled, frame.width - 1})
    return any(column.null_count() or (column == "").any() for column in columns)


def _as_quoted(frame: pl.DataFrame, path: Path, dialect: Dialect) -> pl.DataFrame | None:
    """The fields without the blanks around them, or None where quotes make it doubtful what a field is."""
    with opened(path) as stream:
        content = stream.read()
    has_quotes = b'"' in content
    if has_quotes and not _well_quoted(content, dialect):
        return None
    if not dialect.stripped:
        return frame
    stripped = frame.with_columns(pl.all().str.strip_chars(BLANKS))
    if not has_quotes:
        return stripped
    return frame if stripped.equals(frame) else None  # the frame does not tell quoted blanks from others


def _well_quoted(content: bytes, dialect: Dialect) -> bool:
    """Whether every field is quoted as a whole or has no quote; on any other, two readers may disagree."""
    delimiter = re.escape(dialect.delimiter.encode())
    field = rb'(?:"(?:[^"]++|"")*+"\r?|[^"\n' + delimiter + rb"]*+)"
    start = len(BYTE_ORDER_MARK.encode()) if content.startswith(BYTE_ORDER_MARK.encode()) else 0
    return bool(
        re.compile(rb"(?:" + field + rb"[\n" + delimiter + rb"])*+" + field).fullmatch(content, start)
    )


def checked_records(
    path: Path, dialect: Dialect, fields: int, *, filled: Sequence[int], skip: int = 0
) -> Iterator[Record]:
    """The records, each with the right number of fields and a label wherever there must be one."""
    for record in islice(records(path, dialect), skip, None):
        if len(record.fields) != fields:
            found = f"found {len(record.fields)}{_other_delimiter(record, fields, dialect)}"
            raise UserError(f"{shown(path)}:{record.line}: expected {dialect.describe(fields)}, {found}")
        for place in filled:
            if not record.fields[place]:
                found = "found an empty one; fill it in or remove the line"
                raise UserError(
                    f"{shown(path)}:{record.line}: expected a label in field {place + 1}, {found}"
                )
        yield record


def _other_delimiter(record: Record, fields: int, dialect: Dialect) -> str:
    """What to do about a line of another length: a word on mixed delimiters if another one would fit."""
    text = dialect.delimiter.join(record.fields)
    for delimiter, name in DELIMITER_NAMES.items():
        if delimiter != dialect.delimiter and len(text.split(delimiter)) == fields:
            return f" (but {fields} separated by {name}); use one delimiter throughout"
    return "; mend or remove the line"


def _refuse_second_header(frame: pl.DataFrame, form: Form, path: Path) -> None:
    """Raise if the header row stands in the file again, as after gluing files together."""
    assert form.header is not None
    again = pl.lit(value=True)
    for place in form.roles.places():
        again &= pl.col(str(place)) == form.header[place]
    found_again = frame.select(again).to_series()
    if found_again.any():
        row = int(found_again.arg_max() or 0)
        line = line_where(path, form.dialect, lambda index, _: index == row + 1)
        found = quoted(form.dialect.delimiter.join(form.header))
        raise UserError(
            f"{shown(path)}:{line}: expected a triple, found the header again, {found}; remove the line"
        )


def _batches(found: Iterator[Record]) -> Iterator[list[Record]]:
    while batch := list(islice(found, RECORDS_AT_ONCE)):
        yield batch


def _frame(batch: list[Record], fields: int) -> pl.DataFrame:
    columns = zip(*(record.fields for record in batch), strict=True)
    return pl.DataFrame({str(place): column for place, column in enumerate(columns)}, _empty(fields).schema)


def _empty(fields: int) -> pl.DataFrame:
    return pl.DataFrame(schema={str(place): pl.String for place in range(fields)})
