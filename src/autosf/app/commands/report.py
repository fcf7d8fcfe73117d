"""`autosf report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app.answer import answer, json_option, say
from autosf.app.commands.search import run_argument

if TYPE_CHECKING:
    from autosf.runs.run import Run


@click.command(epilog="Example: autosf report umls-search")
@run_argument
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="[default: report.html in RUN]")
@click.option(
    "--with", "rivals", multiple=True, type=click.Path(path_type=Path), metavar="RUN",
    help="Another search of the same graph, to be drawn beside; may be repeated.",
)  # fmt: skip
@click.option(
    "--human/--no-human", default=None,
    help="Train the best human-designed structure to compare with. [default: if it takes a minute at most]",
)  # fmt: skip
@click.option("--test", is_flag=True, help="Also measure on the test split, which nothing else reads.")
@click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True,
    help="Where the human-designed one is trained.",
)  # fmt: skip
@json_option
def report(
    run: Path,
    out: Path | None,
    rivals: tuple[Path, ...],
    human: bool | None,
    test: bool,
    device: str,
    as_json: bool,
) -> None:
    """Write what the search in RUN found as a page.

    One HTML file that needs no other: the winner and what it means, the graph, the search, results by
    relation and pattern, where the time went, and how to do it again. Beside it every figure as SVG and its
    data as CSV. At any time, also while the search runs.
    """
    from autosf.app.report import NAME, write_report
    from autosf.app.training import device_of
    from autosf.app.tuned_first import refuse_tuning
    from autosf.runs.run import open_run
    from autosf.whole import place_of

    refuse_tuning(run)
    opened, others = open_run(run), [open_run(rival) for rival in rivals]
    place = out or opened.folder / NAME
    place_of(place)  # refuses what is no file before anything is trained
    meet_opponent(opened, human, device_of(device))
    result = write_report(opened, place, others, test=test)
    answer(result, as_json, lambda: told(result))


def meet_opponent(run: Run, human: bool | None, device: str) -> None:
    """Train the best human-designed structure if that is wanted, and if there is a winner to compare with."""
    from autosf.app.commands.training import EpochBar
    from autosf.app.duration import span_in_words
    from autosf.app.final_model import has_model_of_winner, kept_entities
    from autosf.app.report.opponent import CHEAP, opponent_of, train_opponent
    from autosf.app.run_results import outcome_of

    outcome = outcome_of(run)
    if human is False or outcome.state != "ended" or outcome.best is None:
        return
    opponent = opponent_of(run, outcome)
    is_cheap = opponent.seconds is not None and opponent.seconds <= CHEAP
    if not (human or is_cheap) or not has_model_of_winner(run, outcome):
        return
    if kept_entities(run, opponent.folder, opponent.structure) is None:
        cost = "" if opponent.seconds is None else f", about {span_in_words(opponent.seconds)}"
        say(f"training {opponent.title} to compare with{cost} (once; --no-human leaves it out)")
        with EpochBar(run.plan.settings.epochs) as bar:
            train_opponent(run, opponent, device, say, bar.report)


def told(result: dict[str, Any]) -> str:
    """Where everything is, and what is not there yet."""
    lines = [*result["missing"], f"report: {result['path']}"]
    folder = Path(next(iter(result["figures"].values()))["svg"]).parent
    return "\n".join([*lines, f"{len(result['figures'])} figures as SVG and CSV: {folder}"])
