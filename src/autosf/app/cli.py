"""The command `autosf`: turns every ending of its commands into an exit code.

0 done, 2 the user's mistake (one line, no traceback), 1 ours, 130 interrupted.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autosf import __version__
from autosf.app.command_table import Commands, ReaderLeft
from autosf.errors import OF_DISKS, UserError, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a disk, a folder or a name may be to blame for: the user's to mend, told without a traceback.
THE_DISKS = OF_DISKS | {errno.EPERM, errno.ENAMETOOLONG}


@click.group(
    name="autosf",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command has --help with an example, and --json for programs.",
    options_metavar="[--version] [--help]",
    subcommand_metavar="COMMAND ...",
    no_args_is_help=False,
    invoke_without_command=True,
)
@click.version_option(__version__, "--version", message="autosf %(version)s")
@click.pass_context
def autosf(context: click.Context) -> None:
    """Find the scoring function of a knowledge graph, train it, ask it questions."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `autosf` and leave with its exit code."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # batch systems send it: as Ctrl-C
    given = [os.fsencode(word).decode(errors="replace") for word in sys.argv[1:]]  # whatever the locale says
    sys.exit(run(given if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Exit code of `autosf ARGUMENTS`. Our own mistakes pass through, with their traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a label that the terminal has no letters for is still told
            stream.reconfigure(errors="backslashreplace")
    try:
        ended = autosf.main(args=list(arguments), prog_name="autosf", standalone_mode=False)
        sys.stdout.flush()
        return ended if isinstance(ended, int) else 0
    except UserError as error:
        return refused(str(error))
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "autosf"
        return refused(f"{in_words(error)} (see: {where} --help)")
    except click.ClickException as error:
        return refused(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("autosf: interrupted", err=True)
        return 130
    except (BrokenPipeError, ReaderLeft):  # as in `autosf ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in THE_DISKS and "(os error" not in str(error):  # as polars has it
            raise
        where = shown(Path(error.filename)) if error.filename else "cannot write"
        return refused(f"{where}: {error.strerror or error}")


def in_words(error: click.UsageError) -> str:
    """What is wrong with the words of a command; an unknown option with the nearest there is."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error.format_message()
    given, known = error.option_name, [name for one in error.ctx.command.params for name in one.opts]
    nearest = get_close_matches(given.strip("-"), [name.strip("-") for name in known], n=1)
    return f"unknown option {quoted(given)}" + (f'; did you mean "--{nearest[0]}"?' if nearest else "")


def refused(message: str) -> int:
    """Tell the user's mistake in exactly one line of stderr."""
    click.echo(f"autosf: {' '.join(message.split())}", err=True)
    return 2
