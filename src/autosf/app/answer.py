"""How every command answers: one JSON object for programs, or a text for people, on stdout."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console, RenderableType

json_option = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON object on stdout.")


def answer(
    result: Mapping[str, Any], as_json: bool, for_people: Callable[[], RenderableType | list[RenderableType]]
) -> None:
    """Print `result` as JSON, or what `for_people` makes of it; only the chosen one is computed."""
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False, separators=(", ", ": ")))
        return
    shown = for_people()
    out = console()
    with out.capture() as captured:
        for piece in shown if isinstance(shown, list) else [shown]:
            out.print(piece)
    for line in captured.get().splitlines():  # tables pad their lines; a file or a diff should not see that
        click.echo(line.rstrip())


def say(line: str) -> None:
    """A line to the user besides the answer, on stderr."""
    click.echo(f"autosf: {line}", err=True)


def console(stderr: bool = False) -> Console:
    """A rich console: colours on a terminal only, NO_COLOR respected, wide enough for tables in a pipe."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 110
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, markup=False, emoji=False)
