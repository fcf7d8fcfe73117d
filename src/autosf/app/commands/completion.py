"""`autosf completion`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from autosf.app.answer import json_option
from autosf.app.completing import SHELLS


@click.command(epilog="Example: autosf completion bash")
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@json_option
@click.pass_context
def completion(context: click.Context, shell: str | None, as_json: bool) -> None:
    """Print the script that lets a shell complete autosf.

    TAB then completes commands, options, and the names of graphs, structures, runs and models. For good:

    \b
      bash   echo 'eval "$(autosf completion bash)"' >> ~/.bashrc
      zsh    echo 'eval "$(autosf completion zsh)"' >> ~/.zshrc
      fish   autosf completion fish > ~/.config/fish/completions/autosf.fish

    Without SHELL it is the one in use.
    """
    from autosf.app.completing import script

    chosen = shell or Path(os.environ.get("SHELL", "")).name
    if chosen not in SHELLS:
        raise click.UsageError(f"which shell? expected one of {', '.join(SHELLS)}", context)
    text = script(context.find_root().command, chosen)
    click.echo(json.dumps({"shell": chosen, "script": text}) if as_json else text, nl=as_json)
