"""`autosf search`, `resume` and `leaderboard`."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app import completing
from autosf.app.answer import answer, json_option, say
from autosf.app.commands.training import track_option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from autosf.app.request import Request
    from autosf.app.tracking import Tracker
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.cluster import Site
    from autosf.runs.run import Run

workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    help="Trials at once. [default: one a core; 1 for a large graph; on a cluster: all it has room for]",
)
device_option = click.option(
    "--device", type=click.Choice(["auto", "cpu", "cuda", "mps"]), default="auto", show_default=True,
    help="Where the winner is trained; trials use the CPU, or --gpus-per-trial.",
)  # fmt: skip
run_argument = click.argument("run", type=click.Path(path_type=Path), shell_complete=completing.runs)
cluster_options = (
    click.option(
        "--cluster", metavar="ADDRESS",
        help="Train on a Ray cluster: HOST:PORT of its head, auto for the one this machine is in, or local.",
    ),
    click.option(
        "--cpus-per-trial", type=float, help="Of a node, for each trial; may be a share. [default: its threads]"
    ),
    click.option(
        "--gpus-per-trial", type=float, help="Likewise; above 0 trials train on a GPU. [default: 0]"
    ),
)  # fmt: skip


def with_cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options that say where its trials run."""
    for option in reversed(cluster_options):
        command = option(command)
    return command


@click.command(epilog="Example: autosf search umls --trials 14 --epochs 10 --dimension 16 --out umls-search")
@click.argument("graph", shell_complete=completing.graphs)
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. [default: GRAPH-search]")
@click.option(
    "--strategy", default="free", show_default=True,
    help="free; paper (Alg. 2), paper-without-filter, -without-predictor, -one-hot; greedy, random, tpe.",
)  # fmt: skip
@click.option(
    "--trials", type=click.IntRange(1),
    help="free: structures, 64 without a budget. Others: trainings, by default as the paper ends.",
)  # fmt: skip
@click.option("--budget", help="Time to stop after, such as 30m or 1h30m, all included.")
@workers_option
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Of each worker; they decide the last bits. [default: 1; large graph: all]",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, another search."
)
@click.option("--settings", type=click.Path(path_type=Path), help="Settings: TOML, or a tuning's folder.")
@click.option("--set", "pairs", multiple=True, metavar="NAME=VALUE", help="Any setting; may be repeated.")
@click.option("--dimension", type=click.IntRange(1), help="Width of an embedding.")
@click.option("--epochs", type=click.IntRange(1), help="Of a full trial.")
@click.option(
    "--blocks", type=int, help="paper, free: the most; random, tpe: the only number. [default: 6; free: any]"
)
@click.option(
    "--parents", type=click.IntRange(1), default=8, show_default=True,
    help="K1: how many of the best are built upon.",
)  # fmt: skip
@click.option("--candidates", type=click.IntRange(1), help="N: drawn in a round. [default: 256; free: 128]")
@click.option(
    "--chosen", type=click.IntRange(1), default=8, show_default=True,
    help="K2: trained in a round; free: more where short trainings tell.",
)  # fmt: skip
@click.option(
    "--rounds", type=click.IntRange(1), default=32, show_default=True,
    help="paper, greedy: for each number of blocks above 4. random, tpe: in all, where --trials is not given.",
)  # fmt: skip
@click.option(
    "--fresh-seeds", type=click.IntRange(1), default=3, show_default=True,
    help="free: trainings of each finalist; more make a surer winner.",
)  # fmt: skip
@click.option(
    "--final-dimension", type=click.IntRange(1), help="Of the winner's model. [default: as in the search]"
)
@click.option(
    "--sample", type=click.IntRange(2),
    help="Search on a connected part with so many entities; the best are then trained on all.",
)  # fmt: skip
@click.option(
    "--sample-by", type=click.Choice(["walk", "core"]), default="walk", show_default=True,
    help="Entities that random walks meet, near the graph's mix of relations; or its densest core.",
)  # fmt: skip
@click.option(
    "--draw", type=click.IntRange(0),
    help="Entities that each step of a trial sees, 0 for all; the best are then trained with all."
    " [default: 1024 of more than 10,000 where the loss takes all]",
)  # fmt: skip
@click.option(
    "--playoff", type=click.IntRange(1), default=4, show_default=True,
    help="With --sample or --draw: how many are trained in full, to see which is the best then.",
)  # fmt: skip
@click.option(
    "--playoff-seeds", type=click.IntRange(1), default=3, show_default=True,
    help="Trainings of each of them, as long as it may be the best.",
)  # fmt: skip
@click.option("--no-tune", is_flag=True, help="Use the defaults for a graph without a preset.")
@click.option("--tune-share", type=float, help="Of the budget, for tuning such a graph. [default: 0.2]")
@click.option(
    "--hide-test", is_flag=True,
    help="Hide answers in the test split while validation is ranked, as most papers do. [default: not read]",
)  # fmt: skip
@click.option(
    "--asynchronous", is_flag=True,
    help="free without rounds: keeps any number of workers busy, but no two searches are alike.",
)  # fmt: skip
@with_cluster_options
@device_option
@track_option
@json_option
def search(
    graph: str, out: Path | None, budget: str | None, workers: int | None, device: str, track: tuple[str, ...],
    cluster: str | None, cpus_per_trial: float | None, gpus_per_trial: float | None, as_json: bool, **wish: Any,
) -> None:  # fmt: skip
    """Find the function that suits GRAPH, and train it.

    Settings come from the graph's preset, then from --settings, --set and the options; without any of them
    SimplE is tuned first. All trials are kept in the run folder: `autosf leaderboard RUN` looks at them at any
    time, `autosf resume RUN` goes on after any end, `autosf predict RUN` asks the winner.
    """
    from autosf.algebra.zoo import plain
    from autosf.app.cluster_site import site_of
    from autosf.app.duration import seconds_in
    from autosf.app.graphs import graph_of
    from autosf.app.idle_options import refuse_idle
    from autosf.app.request import refuse_unsearchable
    from autosf.app.searching import gone_without_cluster
    from autosf.app.tracking import tracked
    from autosf.app.training import device_of
    from autosf.app.tuned_first import refuse_taken

    site = site_of(cluster, workers, cpus_per_trial, gpus_per_trial)
    seconds, place = seconds_in(budget) if budget else None, device_of(device)
    if out is not None:
        refuse_taken(out)
    read = graph_of(graph)
    for warning in read.warnings:
        say(warning)
    folder = out or Path(f"{plain(read.name)}-search")
    refuse_taken(folder)  # before anybody is told of the search
    request = request_of(read, graph, seconds, **wish)
    refuse_unsearchable(read, request)
    refuse_idle(request, named_on_the_command_line())
    what = {"graph": read.name, "strategy": request.strategy, "seed": request.seed}
    with telling_how_to_go_on(folder), tracked(track, folder.name, what, say) as tracker:
        run = begun_in_sight(read, request, folder, workers)
        tracker.words(run.plan.settings.as_dict())
        with gone_without_cluster(run, site):
            result = brought_to_its_end(run, read, workers, place, site, tracker)
    answer(result, as_json, lambda: result_for_people(result))


def named_on_the_command_line() -> set[str]:
    """The parameters that the user has given, rather than a default."""
    context, given = click.get_current_context(), click.core.ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is given}


def request_of(
    graph: KnowledgeGraph,
    source: str,
    budget: float | None,
    *,
    settings: Path | None,
    pairs: tuple[str, ...],
    dimension: int | None,
    epochs: int | None,
    no_tune: bool,
    tune_share: float | None,
    **wish: Any,
) -> Request:
    """What the options ask for."""
    from autosf.app.given import share
    from autosf.app.request import TUNING_SHARE, requested
    from autosf.app.wanted_settings import parsed_pair, settings_in

    given = {"dimension": dimension, "epochs": epochs}
    values = dict(map(parsed_pair, pairs)) | {
        name: value for name, value in given.items() if value is not None
    }
    part = share("--tune-share", TUNING_SHARE if tune_share is None else tune_share)
    return requested(
        graph,
        source,
        settings_in(settings) if settings else None,
        values,
        tuning_share=0.0 if no_tune else part,
        budget=budget,
        command="autosf " + shlex.join(sys.argv[1:]),
        **wish,
    )


@click.command(epilog="Example: autosf resume umls-search")
@run_argument
@click.option("--budget", help="Time in all, earlier sessions included. [default: as asked for last]")
@click.option(
    "--trials",
    type=click.IntRange(1),
    help="As many in all, earlier ones included. [default: as asked for last]",
)
@click.option("--retry-failed", is_flag=True, help="Try again what failed because its worker was lost twice.")
@workers_option
@with_cluster_options
@device_option
@track_option
@json_option
def resume(
    run: Path, budget: str | None, trials: int | None, retry_failed: bool, workers: int | None, device: str,
    track: tuple[str, ...], as_json: bool,
    cluster: str | None, cpus_per_trial: float | None, gpus_per_trial: float | None,
) -> None:  # fmt: skip
    """Go on with the search in RUN, however it ended.

    What is finished is not trained again, and the outcome is that of a search that was never interrupted. One
    that was out of time goes on with a larger --budget, one that had its trials with more --trials: figures of
    earlier finals stay and count. Otherwise one that has ended answers at once.
    """
    from autosf.app.cluster_site import site_of
    from autosf.app.duration import seconds_in
    from autosf.app.run_results import result_of
    from autosf.app.searching import reopened
    from autosf.app.tracking import tracked
    from autosf.app.training import device_of
    from autosf.app.tuned_first import pending, requested_graph

    site = site_of(cluster, workers, cpus_per_trial, gpus_per_trial)
    seconds, place = seconds_in(budget) if budget else None, device_of(device)
    with telling_how_to_go_on(run):
        waiting = pending(run)
        if waiting:
            request = waiting.request.longer(seconds, trials)
            graph = requested_graph(run, request)
            opened = begun_in_sight(graph, request, run, workers, is_pending=True)
        else:
            opened, outcome, found = reopened(run, seconds, trials, retry_failed=retry_failed, say=say)
            if found is None:
                result = result_of(opened, outcome)
                return answer(result, as_json, lambda: result_for_people(result))
            graph = found
        what = {"graph": graph.name, "strategy": opened.plan.search["strategy"], "seed": opened.plan.seed}
        with tracked(track, opened.folder.name, what | opened.plan.settings.as_dict(), say) as tracker:
            result = brought_to_its_end(opened, graph, workers, place, site, tracker)
    return answer(result, as_json, lambda: result_for_people(result))


@click.command(epilog="Example: autosf leaderboard umls-search")
@run_argument
@click.option("--top", type=click.IntRange(1), help="Rows. [default: 10; all with --json]")
@json_option
def leaderboard(run: Path, top: int | None, as_json: bool) -> None:
    """Show the best structures of the search in RUN.

    At any time, also while it runs. MRR is that of validation, as the mean over seeds with its standard
    deviation; epochs are those spent on the structure in all.
    """
    from autosf.app.run_results import result_of
    from autosf.app.search_tables import ROWS, leaderboard_for_people
    from autosf.app.tuned_first import refuse_tuning
    from autosf.runs.run import open_run

    refuse_tuning(run)
    result = result_of(open_run(run))
    rows = result["leaderboard"]
    result["leaderboard"] = rows[:top] if top or as_json else rows[:ROWS]
    answer(result, as_json, lambda: leaderboard_for_people(result))


def begun_in_sight(
    graph: KnowledgeGraph, request: Request, folder: Path, workers: int | None, *, is_pending: bool = False
) -> Run:
    """The new run; what is tuned before shows on stderr."""
    from autosf.app.commands.tune import TrialLines
    from autosf.app.request import refuse_unsearchable
    from autosf.app.searching import begun
    from autosf.app.tuned_first import TUNING_TRIALS
    from autosf.runs.ranges import tuning_ranges

    if not request.tuning_share:
        return begun(graph, request, folder, say=say, workers=workers, is_pending=is_pending)
    refuse_unsearchable(graph, request)
    budget = request.budget and request.budget * request.tuning_share
    tuned = tuple(tuning_ranges(request.settings, {}))
    with TrialLines(None if budget else TUNING_TRIALS, budget, tuned) as lines:
        return begun(graph, request, folder, lines.report, say, workers, is_pending=is_pending)


def brought_to_its_end(
    run: Run,
    graph: KnowledgeGraph,
    workers: int | None,
    device: str,
    site: Site | None = None,
    tracker: Tracker | None = None,
) -> dict[str, Any]:
    """Search until the strategy ends, train the winner, and tell the outcome; progress shows on stderr."""
    from autosf.algebra.structure import from_rows
    from autosf.app.commands.training import EpochBar
    from autosf.app.estimating import announcement
    from autosf.app.final_model import final_model
    from autosf.app.run_results import outcome_of, result_of, search_settings
    from autosf.app.search_progress import SearchLines
    from autosf.app.searching import served
    from autosf.app.tracking import NOBODY, epoch_log, trial_log

    before, ears = outcome_of(run), tracker or NOBODY
    if before.state != "ended":
        search = search_settings(run)
        structures = search.trials if search.strategy == "free" else None
        whole = run.plan.search["budget"]
        begins = not before.records and site is None  # how much a cluster can do shows only there
        told = announcement(run, graph, workers) if begins else None
        if told:
            say(told)
        with SearchLines(before.records, structures, whole, before.seconds) as lines:
            told_of = trial_log(ears, lines.finished, before.records)
            served(run, workers, lines.progress, told_of, site)
    with EpochBar(run.plan.settings.epochs) as bar:
        final_model(
            run,
            graph,
            device,
            epoch_log(ears, bar.report, "winner_"),
            contestant=lambda number: epoch_log(ears, bar.report, f"playoff{number}_"),
            say=say,
        )
    result = result_of(run)
    ears.words({"winner": from_rows(result["best"]["structure"]), "ending": result["ending"]})
    return result


@contextmanager
def telling_how_to_go_on(folder: Path) -> Iterator[None]:
    """Ctrl-C is answered with the command that goes on, if there is something to go on from."""
    from autosf.app.run_results import is_run
    from autosf.app.tuned_first import pending

    try:
        yield
    except KeyboardInterrupt:
        if is_run(folder) or pending(folder):
            say(f"all finished trials are kept; go on with: autosf resume {shlex.quote(str(folder))}")
        raise


def result_for_people(result: dict[str, Any]) -> Any:
    from autosf.app.search_tables import result_for_people as shown

    return shown(result)
