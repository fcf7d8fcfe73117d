"""`autosf train`."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app import completing
from autosf.app.answer import answer, console, json_option, say
from autosf.counting import counted

if TYPE_CHECKING:
    from autosf.app.training import Job
    from autosf.embedding.state import State

LINE_SECONDS = 60.0  # between two lines where stderr is no terminal

device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "mps"]),
    default="auto",
    show_default=True,
    help="Where to train.",
)
track_option = click.option(
    "--track",
    multiple=True,
    metavar="WHERE",
    help="Also tell tensorboard:FOLDER or mlflow:ADDRESS; repeatable.",
)


@click.command(epilog="Example: autosf train umls --structure simple --epochs 20 --out umls-simple")
@click.argument("graph", shell_complete=completing.graphs)
@click.option(
    "--structure", default="complex", show_default=True, shell_complete=completing.structures,
    help="A name of the zoo, rows, a RUN or a MODEL.",
)  # fmt: skip
@click.option("--dimension", type=click.IntRange(1), help="Width of an embedding.")
@click.option("--epochs", type=click.IntRange(1), help="How often to go through the graph.")
@click.option("--batch-size", type=int, help="Queries in a step.")
@click.option("--learning-rate", type=float, help="Size of a step.")
@click.option(
    "--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Any other setting; may be repeated."
)
@click.option("--settings", type=click.Path(path_type=Path), help="Settings: TOML, or a tuning's folder.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Another seed, another start and order.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Model folder. [default: GRAPH-STRUCTURE]")
@device_option
@click.option(
    "--threads", type=click.IntRange(1), help="Threads of the CPU to use. [default: all, 1 for a small graph]"
)
@click.option(
    "--on-disk", is_flag=True, help="Keep embeddings in files beside the model: for graphs beyond memory."
)
@click.option("--resume", is_flag=True, help="Go on where an interrupted training stopped.")
@track_option
@json_option
def train(
    graph: str,
    structure: str,
    pairs: tuple[str, ...],
    settings: Path | None,
    seed: int,
    out: Path | None,
    device: str,
    threads: int | None,
    on_disk: bool,
    resume: bool,
    track: tuple[str, ...],
    as_json: bool,
    **given: Any,
) -> None:
    """Train one function on GRAPH and save the model.

    Settings come from the graph's preset, then from --settings, --set and the options. Ctrl-C, or an
    orderly kill, keeps a checkpoint; the same command with --resume goes on to the same weights as if it had not
    been stopped.
    """
    import torch

    from autosf.app.graphs import graph_of
    from autosf.app.run_results import structure_meant
    from autosf.app.tracking import epoch_log, tracked
    from autosf.app.training import Job, device_of, ended_result, run_training
    from autosf.app.wanted_settings import gathered_settings
    from autosf.embedding.model_folder import is_model_folder
    from autosf.embedding.presets import MANY
    from autosf.embedding.settings import is_small_step

    wanted = structure_meant(structure)
    read = graph_of(graph)
    for warning in read.warnings:
        say(warning)
    chosen = gathered_settings(read.name, settings, pairs, given, len(read.entities))
    if len(read.entities) > MANY and chosen.loss == "sampled-softmax":
        click.echo(
            f"autosf: {len(read.entities):,} entities: each step takes {chosen.negatives:,} of them;"
            " --set loss=multiclass takes all",
            err=True,
        )
    folder = out or default_folder(read.name, structure)
    if threads or is_small_step(len(read.entities), chosen):
        torch.set_num_threads(threads or 1)
    job = Job(read, wanted, chosen, seed, device_of(device), folder, graph, on_disk=on_disk)
    if resume and is_model_folder(folder) and not job.checkpoint.exists():
        result = ended_result(job)
        say("this training has ended: what it came to is told again")
        return answer(result, as_json, lambda: told(result))
    if not resume and not on_disk:  # the announcement takes memory
        announce(job)
    described = {"graph": read.name, "structure": wanted, "seed": seed, **chosen.as_dict()}
    with tracked(track, folder.name, described, say) as tracker, EpochBar(chosen.epochs) as bar:
        report = epoch_log(tracker, bar.report)
        try:
            result = run_training(job, resume, report, "autosf " + shlex.join(sys.argv[1:]), say)
        except KeyboardInterrupt:
            if job.checkpoint.exists():
                say("what was trained is kept; the same command with --resume goes on")
            raise
        tracker.numbers(
            result["epochs"], {f"valid/{name}": value for name, value in (result["valid"] or {}).items()}
        )
    return answer(result, as_json, lambda: told(result))


def announce(job: Job) -> None:
    """Say what a long training will cost."""
    from autosf.app.cost import cost_of
    from autosf.app.estimating import training_announced

    cost = cost_of(job.graph, job.structure, job.settings, device=job.device)
    told = training_announced(cost, job.settings) if cost else None
    if told:
        say(told)


def default_folder(graph: str, structure: str) -> Path:
    """A folder named after both; rows have no name, a run's folder has its own."""
    from autosf.algebra.zoo import plain

    name = "structure" if structure.lstrip().startswith("[") else plain(Path(structure).name)
    return Path(f"{plain(graph)}-{name}")


def told(result: dict[str, Any]) -> str:
    """The result in two sentences."""
    from autosf.app.duration import span_in_words

    valid = result["valid"]
    among = result["valid_candidates"]
    estimated = f" (estimated from {among:,} candidates)" if among else ""
    quality = (
        f"validation MRR {valid['mrr']:.4f}, hits@10 {valid['hits_at_10']:.4f}{estimated}; " if valid else ""
    )
    ending = {
        "no better": ", as it no longer improved",
        "diverged": ", as loss or weights were no longer finite",
    }
    ask = f"autosf predict {shlex.quote(result['model'])} --head ... --relation ..."
    spent = span_in_words(result["train_seconds"])
    return (
        f"{quality}{counted(result['epochs'], 'epoch')} in {spent}{ending.get(result['ending'], '')}"
        f" (best: epoch {result['best_epoch']})\n"
        f"model: {result['model']}      ask it: {ask}"
    )


class EpochBar:
    """A bar on stderr with loss, validation MRR and time left; a line a minute where stderr is no terminal."""

    def __init__(self, epochs: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        out = console(stderr=True)
        self._lines, self._told, self._epochs = not out.is_terminal, time.monotonic(), epochs
        self._reached = 0
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("valid MRR {task.fields[mrr]}"),
            TimeRemainingColumn(),
            console=out,
            disable=not out.is_terminal,
        )
        self._task = self._bar.add_task("training", total=epochs, loss="-", mrr="-")

    def __enter__(self) -> EpochBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def report(self, state: State) -> None:
        best = state.best
        mrr = f"{best.valid_mrr:.4f}" if best and best.valid_mrr is not None else "-"
        loss = f"{state.curve[-1].loss:.4f}"
        if state.epochs < self._reached:  # another training
            self._bar.reset(self._task)
        self._reached = state.epochs
        self._bar.update(self._task, completed=state.epochs, loss=loss, mrr=mrr)
        if self._lines and time.monotonic() - self._told > LINE_SECONDS:
            self._told = time.monotonic()
            say(f"epoch {state.epochs} of {self._epochs}, loss {loss}, valid MRR {mrr}")
