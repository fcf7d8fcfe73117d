"""The command `autosf`: gathers the commands and turns every ending into an exit code.

0 done, 2 the user's mistake (one line, no traceback), 1 ours, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from autosf import __version__
from autosf.app.commands.data import data
from autosf.app.commands.demo import demo
from autosf.app.commands.models import classify, evaluate, export, predict
from autosf.app.commands.search import leaderboard, resume, search
from autosf.app.commands.serve import serve
from autosf.app.commands.structures import show, space, zoo
from autosf.app.commands.training import train
from autosf.app.commands.tune import tune
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group(
    name="autosf",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with: autosf demo. Every command has --help with an example, and --json for programs.",
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, "--version", message="autosf %(version)s")
@click.pass_context
def autosf(context: click.Context) -> None:
    """Find the scoring function that suits a knowledge graph, train it, and ask it questions."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    demo,
    search,
    resume,
    leaderboard,
    serve,
    train,
    tune,
    evaluate,
    classify,
    predict,
    export,
    show,
    space,
    zoo,
    data,
):
    autosf.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `autosf` and leave with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Exit code of `autosf ARGUMENTS`. Our own mistakes pass through, with their traceback."""
    try:
        ended = autosf.main(args=list(arguments), prog_name="autosf", standalone_mode=False)
        sys.stdout.flush()
        return ended if isinstance(ended, int) else 0
    except UserError as error:
        return refused(str(error))
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "autosf"
        return refused(f"{error.format_message()} (see: {where} --help)")
    except click.ClickException as error:
        return refused(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("autosf: interrupted", err=True)
        return 130
    except BrokenPipeError:  # the reader left, as in `autosf ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def refused(message: str) -> int:
    """Tell the user's mistake in exactly one line of stderr."""
    click.echo(f"autosf: {' '.join(message.split())}", err=True)
    return 2
