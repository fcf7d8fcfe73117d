"""`autosf.search` and `autosf.resume`: a search from Python, silent, and what it found as an object."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from autosf.algebra.notebook import beside, facts
from autosf.app.cluster_site import site_of
from autosf.app.duration import seconds_given
from autosf.app.final_model import final_model
from autosf.app.given import path_given, share, whole_number, whole_number_or_none
from autosf.app.graphs import graph_for_programs
from autosf.app.predicting import AskableModel, load
from autosf.app.request import PLAYOFF, PLAYOFF_SEEDS, TUNING_SHARE, refuse_unsearchable, requested
from autosf.app.run_results import called, outcome_of, standing_as_json, zoo_names
from autosf.app.searching import begun, gone_without_cluster, reopened, served
from autosf.app.tracking import NOBODY, Tracker, epoch_log, tracked, trial_log
from autosf.app.training import device_of
from autosf.app.tuned_first import pending, refuse_taken, requested_graph
from autosf.app.wanted_settings import settings_given
from autosf.runs.run import open_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from autosf.app.run_results import Best, Outcome
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.cluster import Site
    from autosf.runs.run import Run
    from autosf.search.record import Record


SHOWN = 5  # of the leaderboard, in a notebook
# The least of each whole number that a search takes; the others of them have bounds in `SearchSettings`.
NEEDED = {"seed": 0, "playoff": 1, "playoff_seeds": 1}
OPTIONAL = {
    "blocks": None,
    "trials": 1,
    "candidates": 1,
    "workers": 1,
    "threads": 1,
    "sample": 2,
    "draw": 0,
    "final_dimension": 1,
}


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to; `path` is its run folder, which every command takes as RUN."""

    path: Path
    outcome: Outcome

    def __repr__(self) -> str:
        tried = f"{len(self.records)} trainings of {len(self.outcome.standings)} structures"
        return f"<search in {self.path}: {tried}, best {called(self.best.structure)}>"

    def _repr_html_(self) -> str:
        rows = [
            (f"{place}. {called(row.structure)}", f"{row.valid_mrr:.4f}")
            for place, row in enumerate(self.outcome.standings[:SHOWN], 1)
        ]
        title = f"{len(self.records)} trainings of {len(self.outcome.standings)} structures in {self.path}"
        return beside(self.best._repr_html_(), facts(title, rows))

    @property
    def best(self) -> Best:
        """The winner: its structure, valid_mrr, spread, seeds, names, and the finals' verdict."""
        assert self.outcome.best is not None, "a search without any success raises"
        return self.outcome.best

    @property
    def leaderboard(self) -> pl.DataFrame:
        """All structures, best first: structure as its rows in JSON, valid_mrr, spread, seeds, epochs, blocks,
        names."""
        rows = [
            {
                **standing_as_json(row),
                "structure": str(row.structure),
                "names": list(zoo_names(row.structure)),
            }
            for row in self.outcome.standings
        ]
        return pl.DataFrame(rows, schema_overrides={"spread": pl.Float64(), "names": pl.List(pl.String())})

    @property
    def records(self) -> tuple[Record, ...]:
        """Every training, in the order they ended."""
        return self.outcome.records

    @property
    def ending(self) -> str | None:
        return self.outcome.ending

    def report(self, out: Path | str | None = None) -> Path:
        """Write what the search found as a page, `report.html` in its folder unless told otherwise; its path."""
        from autosf.app.report import NAME, write_report

        place = path_given("out", out) if out is not None else self.path / NAME
        write_report(open_run(self.path), place)
        return place

    @property
    def model(self) -> AskableModel:
        """The winner's model, to be asked."""
        return load(self.path)


def search(
    graph: object,
    out: Path | str | None = None,
    *,
    strategy: str = "free",
    trials: int | None = None,
    budget: str | float | None = None,
    workers: int | None = None,
    seed: int = 0,
    device: str = "auto",
    final_dimension: int | None = None,
    blocks: int | None = None,
    parents: int = 8,
    candidates: int | None = None,
    chosen: int = 8,
    rounds: int = 32,
    fresh_seeds: int = 3,
    threads: int | None = None,
    asynchronous: bool = False,
    sample: int | None = None,
    sample_by: str = "walk",
    draw: int | None = None,
    playoff: int = PLAYOFF,
    playoff_seeds: int = PLAYOFF_SEEDS,
    cluster: str | None = None,
    cpus_per_trial: float | None = None,
    gpus_per_trial: float | None = None,
    tune: bool = True,
    tune_share: float = TUNING_SHARE,
    hide_test: bool = False,
    track: Sequence[str] | str = (),
    settings: Path | str | Mapping[str, Any] | None = None,
    **values: Any,
) -> Found:
    """Search a graph (a name, path, frame, array or KnowledgeGraph) for its scoring function and train it.

    The run is the new folder `out`; without one it is in a temporary folder, which stays. `budget` is a text
    such as "30m", or seconds. `cluster` is the address of a Ray cluster that runs the trials. `blocks` is the
    paper's B, and the most that `free` tries; `parents`, `candidates`, `chosen` and `rounds` are its K1, N, K2 and
    the rounds for each b; `fresh_seeds` are those of each finalist, of which more make a surer winner.
    `asynchronous` keeps more workers busy, but no two such searches are alike. Settings are those of
    `TrainingSettings` over the graph's preset: `epochs=20, ...`, or in `settings`, a TOML file, a tuning's folder
    or a mapping, which single values win over. Where there is neither, a share of the budget goes to tuning, a
    fifth or `tune_share`, unless `tune` is false. The test split is not read; with `hide_test` its answers are
    hidden while validation is ranked, as most papers do. With `sample` the search has so many entities of the
    graph, a connected part of it (met by walks, or its "core"); with `draw` each step of a trial sees so many
    entities, by default 1024 of more than 10,000 where the loss takes all, and 0 is all. Either way as many as
    `playoff` says, the best human-designed one among them, are then trained in full, those who may be the best
    with up to `playoff_seeds` seeds, and the best is the winner. `track` names who else is told of every trial:
    "tensorboard:FOLDER", "mlflow:ADDRESS".
    """
    numbers = whole_numbers(
        trials=trials, blocks=blocks, parents=parents, candidates=candidates, chosen=chosen, rounds=rounds,
        fresh_seeds=fresh_seeds, seed=seed, threads=threads, sample=sample, draw=draw, playoff=playoff,
        playoff_seeds=playoff_seeds, final_dimension=final_dimension, workers=workers,
    )  # fmt: skip
    workers = numbers.pop("workers")
    seconds, place = seconds_given(budget), device_of(device)
    part = share("tune_share", tune_share)
    folder = None if out is None else path_given("out", out)
    if folder is not None:
        refuse_taken(folder)  # before anybody is told of the search
    site = site_of(cluster, workers, cpus_per_trial, gpus_per_trial)
    read = graph_for_programs(graph)
    request = requested(
        read,
        str(graph) if isinstance(graph, str | Path) else "",
        None if settings is None else settings_given(settings),
        values,
        tuning_share=part if tune else 0.0,
        strategy=strategy,
        budget=seconds,
        asynchronous=asynchronous,
        sample_by=sample_by,
        hide_test=hide_test,
        **numbers,
    )
    refuse_unsearchable(read, request)  # before a folder is made for nothing
    folder = folder or Path(tempfile.mkdtemp(prefix="autosf-")) / "run"
    described = {"graph": read.name, "strategy": strategy, "seed": request.seed}
    with tracked(track, folder.name, described) as tracker:
        run = begun(read, request, folder, workers=workers)
        with gone_without_cluster(run, site):
            return finished(run, read, workers, place, site, tracker)


def whole_numbers(**given: Any) -> dict[str, Any]:
    """The numbers of a search in their plain type; None where it stands for a default."""
    return {
        name: whole_number_or_none(name, value, OPTIONAL[name])
        if name in OPTIONAL
        else whole_number(name, value, NEEDED.get(name))
        for name, value in given.items()
    }


def resume(
    run: Path | str,
    *,
    budget: str | float | None = None,
    trials: int | None = None,
    workers: int | None = None,
    device: str = "auto",
    cluster: str | None = None,
    cpus_per_trial: float | None = None,
    gpus_per_trial: float | None = None,
    retry_failed: bool = False,
    track: Sequence[str] | str = (),
) -> Found:
    """Go on with the search in a run folder, however it was ended, to what it would have come to.

    A larger `budget`, or more `trials`, make it longer: both count from the search's beginning, and are kept in
    the run. Figures of earlier finals stay and count, so that it may end otherwise than one that was as long from
    the start. With `retry_failed` what failed because its worker was lost twice is tried again. One that has
    ended answers at once, whatever has become of its graph. `track` is as in `search`.
    """
    trials = whole_number_or_none("trials", trials, 1)
    workers = whole_number_or_none("workers", workers, 1)
    folder, place, seconds = path_given("run", run), device_of(device), seconds_given(budget)
    site = site_of(cluster, workers, cpus_per_trial, gpus_per_trial)
    waiting = pending(folder)
    if waiting:
        request = waiting.request.longer(seconds, trials)
        graph = requested_graph(folder, request)
        opened = begun(graph, request, folder, workers=workers, is_pending=True)
    else:
        opened, outcome, found = reopened(folder, seconds, trials, retry_failed=retry_failed)
        if found is None:
            return Found(opened.folder, outcome)
        graph = found
    described = {"graph": graph.name, "strategy": opened.plan.search["strategy"], "seed": opened.plan.seed}
    with tracked(track, opened.folder.name, described) as tracker:
        return finished(opened, graph, workers, place, site, tracker)


def finished(
    run: Run,
    graph: KnowledgeGraph,
    workers: int | None,
    device: str,
    site: Site | None = None,
    tracker: Tracker = NOBODY,
) -> Found:
    """The run with its strategy at its end and its winner trained."""
    before = outcome_of(run)
    if before.state != "ended":
        served(run, workers, finished=trial_log(tracker, past=before.records), site=site)
    final_model(
        run,
        graph,
        device,
        epoch_log(tracker, prefix="winner_"),
        contestant=lambda number: epoch_log(tracker, prefix=f"playoff{number}_"),
    )
    found = Found(run.folder, outcome_of(run))
    tracker.words({"winner": found.best.structure, "ending": found.ending, **run.plan.settings.as_dict()})
    return found
