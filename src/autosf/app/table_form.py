"""How a text table is written, as the user says it on the command line, in the words of `read_graph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autosf.graph.text_lines import DELIMITER_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = (
    click.option(
        "--columns",
        metavar="H,R,T",
        help="Which columns are head, relation, tail: names, or places from 0.  [default: found out]",
    ),
    click.option(
        "--header/--no-header", default=None, help="Whether line 1 is a header.  [default: found out]"
    ),
    click.option(
        "--delimiter", help="What separates fields: tab, space or a character.  [default: found out]"
    ),
)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the options that say how a text table is written."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def told_form(columns: str | None, header: bool | None, delimiter: str | None) -> dict[str, Any]:
    """What was said about the table's form, as options of `read_graph`; the rest is found out."""
    names = {name: character for character, name in DELIMITER_NAMES.items()} | {"\\t": "\t"}
    told = {
        "columns": None if columns is None else [_column(word.strip()) for word in columns.split(",")],
        "header": header,
        "delimiter": None if delimiter is None else names.get(delimiter, delimiter),
    }
    return {name: value for name, value in told.items() if value is not None}


def _column(word: str) -> str | int:
    return int(word) if word.isascii() and word.isdecimal() else word
