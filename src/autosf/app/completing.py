"""What a shell offers after TAB: graphs, structures, runs and models by name, else the files that are there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_AUTOSF_COMPLETE"  # by which the shell's script asks


def script(command: click.Command, shell: str) -> str:
    """The shell's script that asks `command` for completions."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, "one of SHELLS"
    completion = kind(command, {}, "autosf", VARIABLE)
    return completion.source_template % completion.source_vars()


def offered(names: Iterable[str], incomplete: str, files: str = "file") -> list[CompletionItem]:
    """The names that go on from what is typed, in any case; where none does, the shell completes files."""
    fitting = [name for name in dict.fromkeys(names) if name.casefold().startswith(incomplete.casefold())]
    plain = [CompletionItem(name) for name in fitting if name.isprintable()]  # one line each, whatever a name
    return plain or [CompletionItem(incomplete, type=files)]


def graphs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the graphs on this machine, and folders here that hold one."""
    from autosf.graph.registry import at_hand, graph_folders, known_graphs, search_path

    path = search_path(os.environ)
    known = [graph.name for graph in known_graphs() if at_hand(graph.name, search_path=path)]
    same = {name.casefold() for name in known}
    others = [child.name for folder in path for child in graph_folders(folder)]
    here = [child.name for child in graph_folders(Path())]
    return offered([*known, *(name for name in others if name.casefold() not in same), *here], incomplete)


def structures(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the zoo, and runs here, which stand for the best they have found."""
    from autosf.algebra.zoo import ZOO

    return offered([*(name for known in ZOO for name in known.names), *folders_with("run.json")], incomplete)


def runs(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return offered(folders_with("run.json"), incomplete, "dir")


def models(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Model folders and runs, which have a model each."""
    return offered(folders_with("model.json", "run.json"), incomplete, "dir")


def folders_with(*files: str) -> list[str]:
    """Folders here, and those in them, that hold one of the files."""
    try:
        found = {
            path.parent for name in files for depth in ("*", "*/*") for path in Path().glob(f"{depth}/{name}")
        }
    except OSError:
        return []
    inside_runs = {path for path in found if path.name == "model" and (path.parent / "run.json").exists()}
    return sorted(str(path) for path in found - inside_runs)
