"""`autosf tune`."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app import completing
from autosf.app.answer import answer, console, json_option, say
from autosf.app.commands.training import device_option
from autosf.counting import counted

if TYPE_CHECKING:
    from autosf.embedding.settings import TrainingSettings
    from autosf.runs.tuning import Progress

TRIALS = 30  # where neither a number nor a budget is given
LINE_SECONDS = 10.0  # between two lines where stderr is no terminal


@click.command(epilog="Example: autosf tune umls --trials 3 --epochs 10 --out umls-tuned")
@click.argument("graph", shell_complete=completing.graphs)
@click.option(
    "--structure", default="simple", show_default=True, shell_complete=completing.structures,
    help="A name of the zoo, rows, a RUN or a MODEL.",
)  # fmt: skip
@click.option("--trials", type=click.IntRange(1), help=f"Trainings. [default: {TRIALS}, or by the budget]")
@click.option("--budget", help="Time to stop after, such as 30m or 1h30m.")
@click.option(
    "--settings", type=click.Path(path_type=Path), help="Settings to start from: TOML, or a folder."
)
@click.option("--dimension", type=click.IntRange(1), help="Width of an embedding.")
@click.option("--epochs", type=click.IntRange(1), help="Of a trial, at most.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="A setting to hold; repeatable.")
@click.option(
    "--range", "wanted", multiple=True, metavar="NAME=LOW:HIGH", help="Or NAME=a,b,c: to tune; repeatable."
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, other trials."
)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. [default: GRAPH-tuned]")
@click.option("--resume", is_flag=True, help="Go on with the tuning in the run folder.")
@device_option
@json_option
def tune(
    graph: str,
    structure: str,
    trials: int | None,
    budget: str | None,
    settings: Path | None,
    dimension: int | None,
    epochs: int | None,
    pairs: tuple[str, ...],
    wanted: tuple[str, ...],
    seed: int,
    out: Path | None,
    resume: bool,
    device: str,
    as_json: bool,
) -> None:
    """Find good settings for training on GRAPH.

    Tunes learning rate, regularisation, decay and batch size, or what --range names, by validation MRR. The
    first trials are the graph's preset and the defaults. `autosf train --settings RUN` uses what was found.
    """
    import torch

    from autosf.algebra.zoo import plain
    from autosf.app.duration import seconds_in
    from autosf.app.graphs import graph_of
    from autosf.app.run_results import structure_meant
    from autosf.app.training import device_of
    from autosf.app.tuning import TuningJob, parsed_range, run_tuning
    from autosf.app.wanted_settings import gathered_settings, parsed_pair
    from autosf.embedding.settings import is_small_step
    from autosf.runs.ranges import tuning_ranges

    chosen_structure, seconds = structure_meant(structure), seconds_in(budget) if budget else None
    place = device_of(device)
    given = dict(parsed_range(text) for text in wanted)
    read = graph_of(graph)
    for warning in read.warnings:
        click.echo(f"autosf: {warning}", err=True)
    sizes = {"dimension": dimension, "epochs": epochs}
    start = gathered_settings(read.name, settings, pairs, sizes, len(read.entities))
    ranges = tuning_ranges(start, given, [parsed_pair(pair)[0] for pair in pairs])
    if is_small_step(len(read.entities), start):
        torch.set_num_threads(1)
    job = TuningJob(
        graph=read,
        structure=chosen_structure,
        settings=start,
        ranges=ranges,
        trials=trials or (None if seconds else TRIALS),
        budget=seconds,
        seed=seed,
        device=place,
        out=out or Path(f"{plain(read.name)}-tuned"),
    )
    try:
        with TrialLines(job.trials, seconds, tuple(ranges)) as lines:
            result = run_tuning(job, resume, lines.report, say)
    except KeyboardInterrupt:
        again = shlex.join(word for word in sys.argv[1:] if word != "--resume")
        click.echo(f"autosf: finished trials are kept; go on with: autosf {again} --resume", err=True)
        raise
    answer(result, as_json, lambda: told(result, tuple(ranges)))


def told(result: dict[str, Any], tuned: tuple[str, ...]) -> str:
    """The result in three lines."""
    best = result["best"]
    why = ", out of time" if result["ending"] == "out of time" else ""
    return (
        f"validation MRR {best['valid_mrr']:.4f}, the best of {counted(result['trials'], 'trial')}"
        f" ({result['stopped']} stopped early{why})\n"
        f"{in_words(result['settings'], tuned)}\n"
        f"settings: {result['path']}"
        f"      use them: autosf train ... --settings {shlex.quote(result['path'])}, or autosf search"
    )


def in_words(settings: dict[str, Any], tuned: tuple[str, ...]) -> str:
    """The values of what is tuned."""
    names = ["entity_weight" if name == "regularisation" else name for name in tuned]
    shown = {name: settings[name] for name in names}
    return ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in shown.items()
    )


class TrialLines:
    """Trials, the best with its settings and the current one, on stderr; lines at times if it is no terminal."""

    def __init__(self, trials: int | None, budget: float | None, tuned: tuple[str, ...]) -> None:
        from rich.live import Live

        self._trials, self._budget, self._tuned = trials, budget, tuned
        self._started = self._told = time.monotonic()
        out = console(stderr=True)
        self._live = Live(console=out, transient=True) if out.is_terminal else None

    def __enter__(self) -> TrialLines:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def report(self, progress: Progress) -> None:
        if self._live:
            from rich.text import Text

            lines = [self._done(progress), *self._best(progress), *self._current(progress)]
            self._live.update(Text("\n".join(lines), overflow="ellipsis", no_wrap=True))  # at any width
        elif time.monotonic() - self._told > LINE_SECONDS:
            self._told = time.monotonic()
            say("; ".join([self._done(progress), *self._best(progress)]))

    def _done(self, progress: Progress) -> str:
        from autosf.app.duration import time_in_words

        of = f" of {self._trials}" if self._trials else ""
        left = self._budget and self._budget - (time.monotonic() - self._started)
        return f"trials: {progress.trials}{of} done" + (f", {time_in_words(left)} left" if left else "")

    def _best(self, progress: Progress) -> list[str]:
        best = progress.best
        return [f"best: {best.valid_mrr:.4f} with {self._words(best.settings)}"] if best else []

    def _current(self, progress: Progress) -> list[str]:
        if progress.settings is None:
            return []
        mrr = "-" if progress.valid_mrr is None else f"{progress.valid_mrr:.4f}"
        where = f"epoch {progress.epoch}/{progress.settings.epochs}, MRR {mrr}"
        return [f"now: {where} with {self._words(progress.settings)}"]

    def _words(self, settings: TrainingSettings) -> str:
        return in_words(settings.as_dict(), self._tuned)
