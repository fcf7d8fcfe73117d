"""The commands by the job they do, each loaded when it is called: a table, and the group that reads it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from autosf.errors import did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

# Job, then its commands with the place of each; one whose module is not there is not listed.
JOBS = {
    "Start": {
        "demo": "autosf.app.commands.demo:demo",
        "doctor": "autosf.app.commands.doctor:doctor",
        "completion": "autosf.app.commands.completion:completion",
    },
    "Graphs": {
        "data": "autosf.app.commands.data:data",
    },
    "Search": {
        "search": "autosf.app.commands.search:search",
        "resume": "autosf.app.commands.search:resume",
        "leaderboard": "autosf.app.commands.search:leaderboard",
        "tune": "autosf.app.commands.tune:tune",
        "compare": "autosf.app.commands.compare:compare",
        "report": "autosf.app.commands.report:report",
    },
    "Models": {
        "train": "autosf.app.commands.training:train",
        "evaluate": "autosf.app.commands.models:evaluate",
        "classify": "autosf.app.commands.models:classify",
        "predict": "autosf.app.commands.models:predict",
        "export": "autosf.app.commands.models:export",
        "serve": "autosf.app.commands.serve:serve",
    },
    "Structures": {
        "show": "autosf.app.commands.structures:show",
        "space": "autosf.app.commands.structures:space",
        "zoo": "autosf.app.commands.structures:zoo",
    },
}


def place_of(name: str) -> tuple[str, str] | None:
    """Module and attribute of a command; None if there is none of that name, or no such module."""
    for commands in JOBS.values():
        if name in commands:
            module, _, attribute = commands[name].partition(":")
            return (module, attribute) if find_spec(module) else None
    return None


def listed() -> list[str]:
    """The names of the commands that are there, in the table's order."""
    return [name for commands in JOBS.values() for name in commands if place_of(name)]


class ReaderLeft(Exception):  # noqa: N818 - no error, but a way out
    """Nobody reads on; as a BrokenPipeError click itself would end the program with exit code 1."""


class Commands(click.Group):
    """A group that knows its commands by the table; click leaves no way to it but inheriting."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderLeft from error

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return listed()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        place = place_of(cmd_name)
        if place is None:
            return None
        command: click.Command = getattr(import_module(place[0]), place[1])
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            known = list(self.spoken(ctx))
            below = [words for words in known if words.endswith(f" {name}")]  # `stats` means `data stats`
            hint = f"; did you mean {quoted(below[0])}?" if below else did_you_mean(name, known)
            raise click.UsageError(f"unknown command {quoted(name)}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def spoken(self, ctx: click.Context) -> Iterator[str]:
        """The words that call each command, those of groups included."""
        for name in self.list_commands(ctx):
            yield name
            command = self.get_command(ctx, name)
            if isinstance(command, click.Group):
                yield from (f"{name} {below}" for below in command.list_commands(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One line a command, the jobs in a column of their own: all of it on one screen."""
        formatter.write_paragraph()
        for job, commands in JOBS.items():
            title = job
            for name in commands:
                command = self.get_command(ctx, name)
                if command is not None:
                    shown = click.style(f"{title:<12}", bold=True)
                    formatter.write(f"  {shown}{name:<13}{command.get_short_help_str(60)}\n")
                    title = ""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands alone: the line of usage has room for the two options."""
        self.format_commands(ctx, formatter)
