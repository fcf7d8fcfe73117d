"""`read_graph`: whatever the user has, as a KnowledgeGraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from autosf.counting import are, counted
from autosf.errors import UserError, quoted, shown
from autosf.graph.completing import (
    SHARE,
    Making,
    completed,
    refuse_missing,
    refuse_no_numbers,
    shared_warnings,
)
from autosf.graph.dialects import TableOptions
from autosf.graph.frames import read_json_lines, read_parquet, table_of
from autosf.graph.knowledge_graph import KnowledgeGraph, LabelColumns
from autosf.graph.layouts import JSON_LINES, Layout, extension, layout_of
from autosf.graph.numbered import named, read_openke
from autosf.graph.rdf import FORMATS, read_rdf
from autosf.graph.roles import SPLIT_OF_WORD
from autosf.graph.tables import Table, read_table

WHOLE = "whole"  # in place of a split's name: triples that come without splits
ANY_FORM = TableOptions()  # all of it is to be found out


def read_graph(
    source: object,
    *,
    name: str | None = None,
    layout: str | None = None,
    columns: Sequence[str | int] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    ids: bool | None = None,
    make_valid: float | None = None,
    make_test: float | None = None,
    seed: int = 0,
    search_path: Sequence[Path] = (),
) -> KnowledgeGraph:
    """The graph in a folder, a file, a frame, an array, a list of triples, a dict of splits, or of a name.

    What files look like is found out; these settle it: `layout` (plain, dict, openke, libkge), `columns`
    (names, or places from 0, of head, relation, tail), `header`, `delimiter`, `ids` (whether splits of `dict`
    hold ids). Triples without splits are split, a tenth each for valid and test. A valid split missing beside
    others is an error, a test split a warning, unless `make_valid` or `make_test` says how much of train to
    take: a number of triples, a share below 1, or 0 to go without. Names are looked up in the folders of
    `search_path`.
    """
    options = TableOptions(columns, header, delimiter)
    wished = Making(make_valid, make_test, seed)
    refuse_no_numbers(wished)
    source, place = _resolved(source, search_path)
    found = layout_of(source, layout) if isinstance(source, Path) and source.is_dir() else None
    tables = _by_split(source if found is None else found, place, options)
    making = _making(tables, wished, place)
    parts = {"train" if split == WHOLE else split: table.columns for split, table in tables.items()}
    graph = KnowledgeGraph.from_columns(name or _name(source), parts)
    graph = graph.with_warnings(*(warning for table in tables.values() for warning in table.warnings))
    if found is not None and found.entities is not None:
        graph = named(graph, found, options, ids)
    spaced = graph.entities.spaced_twice() + graph.relations.spaced_twice()
    if spaced:
        told = f"{counted(spaced, 'label')} with a space before or after"
        graph = graph.with_warnings(f"{told} {are(spaced)} there without it, too")
    if "test" not in parts and making.test is None:
        graph = graph.with_warnings(
            "no test split: a finished model has nothing that it could be measured on"
        )
    graph = completed(graph, making)
    return graph.with_warnings(*shared_warnings(graph))


def _resolved(source: object, search_path: Sequence[Path]) -> tuple[object, str]:
    """The source, with a path in the place of a text, and what to call it in messages."""
    if isinstance(source, str):
        refuse_empty_name(source)
        path = Path(source)
        if not _exists(path) and path.name == source:
            from autosf.graph.registry import locate

            path = locate(source, search_path=search_path)
        source = path
    if isinstance(source, Path):
        if not _exists(source):
            raise UserError(f"{shown(source)}: there is no such file or folder")
        return source, shown(source)
    return source, "splits" if isinstance(source, Mapping) else "triples"


def refuse_empty_name(source: str) -> None:
    """Raise if the name is empty, as of an unset variable: as a path it would be this folder."""
    if not source:
        raise UserError('expected a graph: a folder, a file or a name, found ""')


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        return False


def _name(source: object) -> str:
    """A graph's name where the user gives none: the folder's, or the file's without extensions."""
    if isinstance(source, Path):
        path = source.resolve()
        return path.name if path.is_dir() else path.name.partition(".")[0]
    return "graph"


def _making(tables: Mapping[str, Table], wished: Making, place: str) -> Making:
    """What to take from train: a tenth twice if there are no splits, else what the user says."""
    if WHOLE not in tables:
        refuse_missing(list(tables), wished, place)
        return wished
    valid = SHARE if wished.valid is None else wished.valid
    return Making(valid, SHARE if wished.test is None else wished.test, wished.seed)


def _by_split(source: object, place: str, options: TableOptions) -> dict[str, Table]:
    """A table for each split, or one for WHOLE."""
    if isinstance(source, Layout):
        return {split: read_file(path, options, source.habit) for split, path in source.splits.items()}
    if isinstance(source, Mapping):
        return _from_mapping(source, options)
    table = (
        read_file(source, options) if isinstance(source, Path) else table_of(source, place, options.columns)
    )
    return {WHOLE: table} if table.splits is None else _divided(table, table.splits, place)


def _from_mapping(source: Mapping[object, object], options: TableOptions) -> dict[str, Table]:
    """The tables of a dict from split names to paths, frames, arrays or lists."""
    tables: dict[str, Table] = {}
    for word, part in source.items():
        split = SPLIT_OF_WORD.get(str(word).casefold())
        if split is None or split in tables:
            found = "again" if split in tables else "instead"
            raise UserError(f"splits: expected train, valid and test, found {quoted(word)} {found}")
        part, place = _resolved(part, ()) if isinstance(part, str | Path) else (part, split)
        tables[split] = (
            read_file(part, options) if isinstance(part, Path) else table_of(part, place, options.columns)
        )
    if not tables:
        raise UserError("splits: expected train, valid and test, found an empty dict")
    return tables


def read_file(path: Path, options: TableOptions = ANY_FORM, habit: str = "plain") -> Table:
    """The triples of one file, by what its extension says it is."""
    kind = extension(path)
    if habit == "openke":
        return read_openke(path)
    if kind == "parquet":
        return read_parquet(path, options.columns)
    if kind in JSON_LINES:
        return read_json_lines(path, options.columns)
    return read_rdf(path, kind) if kind in FORMATS else read_table(path, options)


def _divided(table: Table, splits: pl.Series, place: str) -> dict[str, Table]:
    """The table of each split that the column `splits` names."""
    words = splits.unique().to_list()
    tables: dict[str, Table] = {}
    for word in words:
        if word.strip().casefold() not in SPLIT_OF_WORD:
            row = int((splits == word).arg_max() or 0) + 1
            raise UserError(
                f"{place}: row {row}: expected train, valid or test as the split, found {quoted(word)}"
            )
    known = splits.replace_strict(
        {word: SPLIT_OF_WORD[word.strip().casefold()] for word in words}, return_dtype=pl.String
    )
    for split in known.unique(maintain_order=True):
        here = known == split
        tables[split] = Table(
            LabelColumns(*(column.filter(here) for column in table.columns)), warnings=table.warnings
        )
    return tables
