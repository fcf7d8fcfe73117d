"""`autosf compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app import completing
from autosf.app.answer import answer, console, json_option
from autosf.app.commands.training import device_option

if TYPE_CHECKING:
    from autosf.app.comparing import Meeting


@click.command(epilog="Example: autosf compare umls --models complex,simple,rules --epochs 10")
@click.argument("graphs", nargs=-1, required=True, metavar="GRAPH...", shell_complete=completing.graphs)
@click.option(
    "--models", "texts", multiple=True, required=True, metavar="A,B,...",
    help="Names of the zoo, rows, RUNs, MODELs, pykeen:NAME, rules, gen-approx, published:NAME.",
)  # fmt: skip
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Trainings of each, with means and spread.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The first of the seeds.")
@click.option("--dimension", type=click.IntRange(1), help="Reals of an entity, for all.")
@click.option("--epochs", type=click.IntRange(1), help="How often to go through the graph, at most.")
@click.option("--batch-size", type=int, help="Queries in a step.")
@click.option(
    "--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Any other setting; may be repeated."
)
@click.option("--settings", type=click.Path(path_type=Path), help="Settings: TOML, or a tuning's folder.")
@click.option(
    "--split", type=click.Choice(["test", "valid"]), default="test", show_default=True,
    help="With valid the test triples are not read at all.",
)  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="Folder that keeps what is finished.")
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of the CPU to use. [default: all, 1 for a small graph]"
)
@device_option
@json_option
def compare(
    graphs: tuple[str, ...],
    texts: tuple[str, ...],
    seeds: int,
    seed: int,
    pairs: tuple[str, ...],
    settings: Path | None,
    split: str,
    out: Path | None,
    threads: int | None,
    device: str,
    as_json: bool,
    **given: Any,
) -> None:
    """Train and measure models on GRAPH, in one table.

    This is the final comparison: it ranks the test split, which nothing before it looks at. All of our models
    get the graph's one recipe. A RUN stands for the structure it has found; with several GRAPHs that shows how
    far a find carries. With --out the same command goes on after an end of any kind.
    """
    import torch

    from autosf.app.comparing import Comparison, arena_of, compared
    from autosf.app.contestants import contestants_in
    from autosf.app.graphs import graph_of
    from autosf.app.training import device_of
    from autosf.app.wanted_settings import gathered_settings
    from autosf.embedding.settings import is_small_step

    chosen, place = contestants_in(texts), device_of(device)
    read = [graph_of(graph) for graph in graphs]
    recipes = [gathered_settings(graph.name, settings, pairs, given, len(graph.entities)) for graph in read]
    small = [is_small_step(len(graph.entities), recipe) for graph, recipe in zip(read, recipes, strict=True)]
    if threads or all(small):
        torch.set_num_threads(threads or 1)
    with ComparisonBar() as bar:
        arenas = [
            arena_of(graph, recipe, split, place, bar.epoch)
            for graph, recipe in zip(read, recipes, strict=True)
        ]
        comparison = Comparison(arenas, chosen, range(seed, seed + seeds), out)
        bar.expect(comparison.meetings())
        result = compared(comparison, bar.finished)

    def for_people() -> Any:
        from autosf.app.compare_tables import comparison_for_people

        return comparison_for_people(result)

    answer(result, as_json, for_people)


class ComparisonBar:
    """A bar on stderr: who is being trained, and how many are done; silent where stderr is no terminal."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        out = console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[epochs]}"),
            TimeElapsedColumn(),
            console=out,
            transient=True,
            disable=not out.is_terminal,
        )
        self._task = self._bar.add_task("comparing", epochs="", total=None)
        self._left: list[Meeting] = []

    def __enter__(self) -> ComparisonBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def expect(self, meetings: list[Meeting]) -> None:
        self._left = meetings
        self._bar.update(self._task, total=len(meetings))
        self._show_next()

    def epoch(self, epochs: int) -> None:
        self._bar.update(self._task, epochs=f"epoch {epochs}")

    def finished(self, meeting: Meeting, result: dict[str, Any]) -> None:
        """One is done; its validation MRR stays on the screen."""
        from autosf.app.data_tables import label

        valid = result["valid"]
        told = f"validation MRR {valid['mrr']:.4f}" if valid else result["failed"] or "published"
        who = f"{label(meeting.contestant.name)} on {label(meeting.arena.graph.name)}"
        kept = ", kept" if result.get("kept") else ""
        self._bar.console.print(f"{who}, seed {meeting.seed}: {told}{kept}")
        self._left = self._left[self._left.index(meeting) + 1 :] if meeting in self._left else self._left[1:]
        self._bar.advance(self._task)
        self._show_next()

    def _show_next(self) -> None:
        from autosf.app.data_tables import label

        name = label(self._left[0].contestant.name, 40).plain if self._left else "comparing"
        self._bar.update(self._task, description=name, epochs="")
