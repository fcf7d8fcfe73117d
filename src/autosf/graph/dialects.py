"""Which dialect a text file is written in and what its columns mean, judged by its first lines."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.errors import UserError, quoted, shown
from autosf.graph.roles import CHOOSING, Roles, roles_by_choice, roles_by_name
from autosf.graph.text_lines import Dialect, Record, cut, first_lines, is_blank, records, refuse_binary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DELIMITERS = ("\t", ",", ";", " ")
OPENING = re.compile(r"[\[{]\s*[\[{]?")  # all there is of JSON on its first line, where it has many
CSV_DELIMITERS = (",", ";", "\t", " ")


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What the user said about text tables; None stands for "find out"."""

    columns: Sequence[str | int] | None = None
    header: bool | None = None
    delimiter: str | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A text table's dialect, its number of fields, its header if it has one, and its columns' roles."""

    dialect: Dialect
    fields: int
    header: tuple[str, ...] | None
    roles: Roles
    line: int = 1  # where the first record stands


def form_of(path: Path, options: TableOptions) -> Form:
    """The form of a file of triples, from what the user said and what its first lines show."""
    dialect, first, fields = dialect_of(path, delimiters_for(path, options), least=3)
    place = f"{shown(path)}:{first.line}"
    told = _told_roles(first, options, place)
    has_header = _names_columns(options) or (told is not None if options.header is None else options.header)
    if options.columns is not None:
        words = first.fields if has_header else []
        told = roles_by_choice(options.columns, [*words, *[""] * (fields - len(words))], place)
    if told is None and fields != 3:
        advice = CHOOSING if fields > 3 else "mend the line"
        raise UserError(f"{place}: expected {dialect.describe(3)}, found {fields}; {advice}")
    header = tuple(first.fields) if has_header else None
    return Form(dialect, fields, header, told or Roles(), first.line)


def _told_roles(first: Record, options: TableOptions, place: str) -> Roles | None:
    """What the first record says if it may be a header and nobody has said more."""
    if options.header is False or (options.columns is not None and options.header is not None):
        return None
    return None if _names_columns(options) else roles_by_name(first.fields, place)


def _names_columns(options: TableOptions) -> bool:
    return options.columns is not None and any(isinstance(column, str) for column in options.columns)


def dialect_of(path: Path, delimiters: Sequence[str], *, least: int) -> tuple[Dialect, Record, int]:
    """The dialect in which most of the first lines have the same number of fields, at least `least`.

    With it come the first record and that number. Exactly `least` fields are believed before more. Where there
    are tabs, spaces belong to the labels.
    """
    refuse_binary(path)
    lines = first_lines(path)
    has_tabs = any("\t" in line for _, line in lines)
    if len(delimiters) > 1 and not has_tabs and lines and is_json(lines[0][1]):
        raise UserError(
            f"{shown(path)}: expected a triple a line, found JSON; of JSON an object a line is read, from a file"
            " named .jsonl, with head, relation and tail in each"
        )
    best: tuple[tuple[bool, ...], Dialect, Record, int] | None = None
    for candidate in delimiters:
        if candidate == " " and has_tabs and len(delimiters) > 1:
            continue
        dialect = dialect_for(candidate, path)
        found = _first_records(lines, dialect, path)
        if not found:
            continue
        fields, count = _usual(found, least)
        even = count == len(found)
        merit = (fields >= least, even and fields == least, even and fields > 1)
        if best is None or merit > best[0]:
            best = (merit, dialect, found[0], fields)
    if best is None or (is_csv(path) and best[-1] < least):
        for _ in records(path, dialect_for(delimiters[0], path)):  # it raises where a quote is out of place
            pass
    if best is None:
        raise UserError(f"{shown(path)}: expected triples, found only blank lines")
    if best[-1] < least and has_tabs and len(delimiters) > 1:
        refuse_stray_tab(path, lines)
    return best[1:]


def refuse_stray_tab(path: Path, lines: list[tuple[int, str]]) -> None:
    """Raise if tabs stand in some lines only, which seem to be separated by spaces."""
    with_tabs = [number for number, line in lines if "\t" in line]
    if len(with_tabs) < sum(not is_blank(line) for _, line in lines):
        raise UserError(
            f"{shown(path)}:{with_tabs[0]}: expected tabs in all lines or in none, found one here; mend the line"
        )


def is_json(line: str) -> bool:
    """Whether a line is a JSON array or object, or where one begins; `[[Paris]]`, a label, is not."""
    text = line.strip().rstrip(",")
    for ending in ("", "]"):  # of an array, the first row may stand alone
        with suppress(ValueError, RecursionError):
            return isinstance(json.loads(text + ending), list | dict)
    return text.startswith(('{"', "[{")) or OPENING.fullmatch(text) is not None


def dialect_for(delimiter: str, path: Path) -> Dialect:
    """The dialect with this delimiter; quotes mean something in CSV only."""
    if len(delimiter) != 1 or len(delimiter.encode()) != 1 or delimiter in '"\n\r\0':
        raise UserError(
            f"delimiter: expected one plain character such as tab or comma, found {quoted(delimiter)}"
        )
    return Dialect(delimiter, quoted=delimiter != " " and (is_csv(path) or delimiter in ",;"))


def delimiters_for(path: Path, options: TableOptions) -> Sequence[str]:
    """The delimiters to consider, likely ones first."""
    if options.delimiter is not None:
        return (options.delimiter,)
    return CSV_DELIMITERS if is_csv(path) else DELIMITERS


def is_csv(path: Path) -> bool:
    return path.name.casefold().removesuffix(".gz").endswith(".csv")


def _first_records(lines: list[tuple[int, str]], dialect: Dialect, path: Path) -> list[Record]:
    """The records that are whole within the first lines."""
    found: list[Record] = []
    with suppress(UserError):  # a quote left open: by our cut, or by the file, which the reading will tell
        found.extend(cut(lines, dialect, path))
    return found


def _usual(found: list[Record], least: int) -> tuple[int, int]:
    """The most frequent number of fields among those of at least `least`, and how often it occurs."""
    numbers = Counter(len(record.fields) for record in found)
    fitting = {fields: count for fields, count in numbers.items() if fields >= least} or numbers
    return max(fitting.items(), key=lambda item: (item[1], -item[0]))
