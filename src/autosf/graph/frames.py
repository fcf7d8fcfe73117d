"""Triples that are in memory already: polars and pandas frames, arrays, lists of triples."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from autosf.errors import UserError, quoted, shown
from autosf.graph.knowledge_graph import LabelColumns
from autosf.graph.roles import (
    CHOOSING,
    CHOOSING_IN_PYTHON,
    ROLE_OF_WORD,
    Roles,
    roles_by_choice,
    roles_by_name,
)
from autosf.graph.tables import Table
from autosf.graph.text_lines import BYTE_ORDER_MARK, is_blank, opened, refuse_binary, text_lines
from autosf.graph.vocabulary import is_unicode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def table_of(source: object, place: str, columns: Sequence[str | int] | None = None) -> Table:
    """The triples of a frame, an array or a list; `place` names it in messages."""
    if isinstance(source, pl.LazyFrame):
        source = source.collect()
    if isinstance(source, pl.DataFrame):
        return _from_frame(source, place, columns)
    if _is_pandas(source):
        return _from_frame(_from_pandas(source), place, columns)
    if isinstance(source, np.ndarray | list | tuple):
        return _from_frame(_from_rows(source, place), place, columns)
    expected = "expected a folder, a file, a name, a frame, an array, a list of triples or a dict of splits"
    raise UserError(f"{place}: {expected}, found {type(source).__name__}")


def read_parquet(path: Path, columns: Sequence[str | int] | None = None) -> Table:
    """The triples of a parquet file."""
    try:
        frame = pl.read_parquet(path, glob=False)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:80]
        raise UserError(f"{shown(path)}: expected a parquet file, found something else ({reason})") from None
    return _from_frame(frame, shown(path), columns, CHOOSING)


def read_json_lines(path: Path, columns: Sequence[str | int] | None = None) -> Table:
    """The triples of a file with a JSON object a line, optionally gzipped."""
    refuse_binary(path)
    with opened(path) as stream:
        content = stream.read().removeprefix(BYTE_ORDER_MARK.encode())
    try:
        frame = pl.read_ndjson(content, infer_schema_length=None)
    except (pl.exceptions.PolarsError, ValueError):
        frame = _frame_of_objects(path, columns)
    return _from_frame(frame, shown(path), columns, CHOOSING)


def _frame_of_objects(path: Path, columns: Sequence[str | int] | None) -> pl.DataFrame:
    """What polars does not read: lines whose values differ in kind, which matters for labels alone."""
    objects = list(_objects(path))
    if not objects:
        raise UserError(f"{shown(path)}: expected a JSON object a line, found none")
    names = list(dict.fromkeys(name for _, one in objects for name in one))
    roles = _roles(pl.DataFrame(schema=names), shown(path), columns, CHOOSING)
    chosen = {names[place] for place in roles.places()}
    for number, one in objects:
        for name in chosen:
            if not isinstance(one.get(name), str | int | None) or isinstance(one.get(name), bool):
                found = quoted(json.dumps(one[name]), 30)
                raise UserError(f"{shown(path)}:{number}: expected a label in {quoted(name)}, found {found}")
    texts = {
        name: [None if one.get(name) is None else str(one[name]) for _, one in objects] for name in names
    }
    return pl.DataFrame(texts, schema=dict.fromkeys(names, pl.String))


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of the lines that are not blank, each with its line's number."""
    for number, line in text_lines(path):
        found: object = None
        if is_blank(line):
            continue
        with suppress(ValueError, RecursionError):
            found = json.loads(line)
        if not isinstance(found, dict):
            raise UserError(
                f"{shown(path)}:{number}: expected a JSON object, found {quoted(line.strip(), 30)}"
            )
        yield number, found


def _from_frame(
    frame: pl.DataFrame, place: str, columns: Sequence[str | int] | None, choosing: str = CHOOSING_IN_PYTHON
) -> Table:
    if frame.width < 3:
        raise UserError(f"{place}: expected at least 3 columns, found {frame.width}")
    if frame.is_empty():
        raise UserError(f"{place}: expected triples, found none")
    roles = _roles(frame, place, columns, choosing)
    head, relation, tail = (_labels(frame.to_series(at), place) for at in roles.places())
    split = None if roles.split is None else _labels(frame.to_series(roles.split), place)
    return Table(LabelColumns(head, relation, tail), split)


def _roles(frame: pl.DataFrame, place: str, columns: Sequence[str | int] | None, choosing: str) -> Roles:
    """The roles by choice, by name, or those of the only three columns besides the split's."""
    if columns is not None:
        return roles_by_choice(columns, frame.columns, place)
    named = roles_by_name(frame.columns, place)
    if named is not None:
        return named
    split = [at for at, name in enumerate(frame.columns) if ROLE_OF_WORD.get(name.casefold()) == "split"][:1]
    others = [at for at in range(frame.width) if at not in split]
    if len(others) != 3:
        beside = " beside the split" if split else ""
        names = ", ".join(quoted(frame.columns[at]) for at in others[:10])
        raise UserError(f"{place}: expected 3 columns{beside}, found {len(others)}: {names}; {choosing}")
    return Roles(*others, *split)


def _labels(column: pl.Series, place: str) -> pl.Series:
    """A column as labels: text as it is, whole numbers in decimal. Nothing may be missing or empty."""
    textual = column.dtype in (pl.String, pl.Categorical, pl.Null) or isinstance(column.dtype, pl.Enum)
    if not textual and not column.dtype.is_integer():
        expected = "expected a column of text or whole numbers"
        raise UserError(f"{place}: {expected}, found {column.dtype} in {quoted(column.name)}")
    labels = column.cast(pl.String)
    missing = labels.is_null() | (labels == "")
    if missing.any():
        row = int(missing.fill_null(value=True).arg_max() or 0)
        raise UserError(
            f"{place}: row {row + 1}: expected a label in {quoted(column.name)}, found an empty one"
        )
    return labels


def _is_pandas(source: object) -> bool:
    """Whether it is a pandas frame, asked without importing pandas."""
    from_pandas = any(kind.__module__.split(".")[0] == "pandas" for kind in type(source).__mro__)
    return from_pandas and hasattr(source, "iloc") and hasattr(source, "columns")


def _from_pandas(frame: Any) -> pl.DataFrame:
    """A pandas frame by way of plain objects, so that neither pandas nor pyarrow need be a dependency."""
    columns = []
    for at, name in enumerate(frame.columns):
        column = frame.iloc[:, at]
        values = column.astype(object).where(column.notna(), None).tolist()
        columns.append(_series(str(name), values, f"column {name}"))
    names = _distinct([column.name for column in columns])
    return pl.DataFrame([column.alias(name) for name, column in zip(names, columns, strict=True)])


def _distinct(names: list[str]) -> list[str]:
    """Names told apart by their place where they repeat, since a frame's columns may not share one."""
    return [name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names)]


def _from_rows(source: Any, place: str) -> pl.DataFrame:
    """An array [n, 3] or a list of triples."""
    if isinstance(source, np.ndarray):
        if source.ndim != 2 or source.shape[1] != 3:
            shape = " x ".join(str(size) for size in source.shape)
            raise UserError(f"{place}: expected an array of n x 3, found {shape}")
        return pl.DataFrame([_series(f"{at}", _plain(source[:, at]), place) for at in range(3)])
    for row, triple in enumerate(source, start=1):
        if not is_triple(triple):
            found = quoted(repr(triple))
            raise UserError(f"{place}: row {row}: expected a triple (head, relation, tail), found {found}")
    return pl.DataFrame([_series(f"{at}", [triple[at] for triple in source], place) for at in range(3)])


def is_triple(row: object) -> bool:
    """Whether a row in memory is a head, a relation and a tail in their order: a list, a tuple or an array."""
    if isinstance(row, np.ndarray):
        return bool(row.shape == (3,))
    return isinstance(row, list | tuple) and len(row) == 3


def _plain(column: np.ndarray[Any, Any]) -> Any:
    return column.tolist() if column.dtype.kind in "OSUT" else np.ascontiguousarray(column)


def _series(name: str, values: Any, place: str) -> pl.Series:
    """A column of one type; text and whole numbers may be mixed, as they may in a file."""
    try:
        return pl.Series(name, values, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        pass
    for row, value in enumerate(values, start=1):
        if not (value is None or isinstance(value, int) or (isinstance(value, str) and is_unicode(value))):
            expected = "expected text or a whole number"
            raise UserError(f"{place}: row {row}: {expected}, found {quoted(repr(value))}")
    return pl.Series(name, [None if value is None else str(value) for value in values], pl.String)
