"""How the search went, from its records: curves, what a predictor would have said, where the time went."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import correlation, fmean
from typing import TYPE_CHECKING, Any

import polars as pl
from threadpoolctl import threadpool_limits

from autosf.algebra.features import ENCODERS
from autosf.algebra.invariance import canonical
from autosf.app.report.portrait import title_of
from autosf.app.run_results import near, outcome_of, search_settings, tuning_seconds
from autosf.errors import UserError, shown
from autosf.runs.history import added_epochs, search_curve
from autosf.runs.ledger import opened_ledger
from autosf.search.fidelity import full_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from autosf.algebra.structure import Rows, Structure
    from autosf.app.run_results import Outcome
    from autosf.runs.run import Run
    from autosf.search.record import Record

    Values = dict[Structure, float]

FOLDS = 10  # of the structures, each predicted from the others
FEWEST = 12  # structures from which a prediction is shown
LEARNING_CURVES = 6


@dataclass(frozen=True, slots=True)
class SearchCurve:
    """The best validation MRR so far against the epochs trained; `run` is the folder's name, or its path where
    another's name is the same. `other_settings` are those of training that differ from the first run's."""

    name: str
    run: str
    strategy: str
    other_settings: dict[str, Any]
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class LearningCurve:
    """Validation MRR after each validated epoch of a structure's full trainings: mean, least, most over seeds."""

    title: str
    place: int  # on the leaderboard
    is_winner: bool  # or the best so far
    rows: Rows
    seeds: int
    points: tuple[tuple[int, float, float, float], ...]  # epoch, mean, least, most


@dataclass(frozen=True, slots=True)
class Predicted:
    """A structure's MRR as predicted from the others, and as measured."""

    rows: Rows
    title: str
    predicted: float
    measured: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """How well structures are predicted that the predictor has not seen; Spearman's rank correlation."""

    method: str
    correlation: float
    structures: tuple[Predicted, ...]


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Where a search's time went, in seconds of the clock on the wall (Table VII).

    `ranking` is an estimate, from a ranking measured on its own: the ledger keeps both together. Without it
    `training` holds both. `rest` is the time in which no trial was under way.
    """

    tuning: float
    training: float
    ranking: float | None
    rest: float
    worker_seconds: float  # of all trials
    at_once: int  # trials, at most
    epochs: int


def search_curves(run: Run, outcome: Outcome, others: Sequence[Run]) -> tuple[SearchCurve, ...]:
    """The run's curve and those of its rivals on the same graph, each under a name of its own."""
    refuse_twice([run, *others])
    found = [(run, outcome.records), *((other, rival(run, other).records) for other in others)]
    strategies = [search_settings(one).strategy for one, _ in found]
    folders = [one.folder.name for one, _ in found]
    own = run.plan.settings.as_dict()
    curves = []
    for (one, records), strategy, folder in zip(found, strategies, folders, strict=True):
        place = folder if folders.count(folder) == 1 else near(one.folder)
        curves.append(
            SearchCurve(
                name=strategy if strategies.count(strategy) == 1 else f"{strategy} ({place})",
                run=place,
                strategy=strategy,
                other_settings={k: v for k, v in one.plan.settings.as_dict().items() if v != own[k]},
                points=tuple(search_curve(records, search_settings(one))),
            )
        )
    return tuple(curves)


def refuse_twice(runs: Sequence[Run]) -> None:
    """Raise if a run is to be drawn beside itself."""
    folders = [run.folder for run in runs]
    for place, folder in enumerate(folders):
        if folder in folders[:place]:
            raise UserError(f"{shown(folder)}: given twice; expected another search of the same graph")


def rival(run: Run, other: Run) -> Outcome:
    """The outcome of another run, if its figures can be compared with the run's."""
    if other.graph != run.graph:
        raise UserError(f"{shown(other.folder)}: expected a run on the same graph, found one on another")
    if other.plan.hide_test != run.plan.hide_test:
        raise UserError(
            f"{shown(other.folder)}: its validation was ranked otherwise (--hide-test): no MRR of it compares"
        )
    own, its = (one.plan.settings.validation_candidates for one in (run, other))
    if its != own:
        raise UserError(
            f"{shown(other.folder)}: expected validation_candidates {own}, found {its}: no MRR of it compares"
        )
    return outcome_of(other)


def learning_curves(
    records: Sequence[Record], chosen: Mapping[Structure, int], winner: Structure | None, full: int
) -> tuple[LearningCurve, ...]:
    """The curves of the chosen structures, given with their places, as far as they were trained to the full."""
    own = None if winner is None else canonical(winner, "extended")
    runs = {
        canonical(structure, "extended"): of_one for structure, of_one in full_runs(records, full).items()
    }
    curves: list[LearningCurve] = []
    for structure, place in chosen.items():
        of_one = [run for run in runs.get(canonical(structure, "extended"), ()) if run.curve]
        if of_one and len(curves) < LEARNING_CURVES:
            curves.append(
                LearningCurve(
                    title=title_of(structure),
                    place=place,
                    is_winner=canonical(structure, "extended") == own,
                    rows=structure.rows,
                    seeds=len(of_one),
                    points=over_seeds(of_one),
                )
            )
    return tuple(curves)


def over_seeds(records: Sequence[Record]) -> tuple[tuple[int, float, float, float], ...]:
    """Mean, least and most at each epoch that all of them have validated."""
    curves = [dict(record.curve) for record in records]
    shared = sorted(set(curves[0]).intersection(*curves[1:]))
    values = [(epoch, [curve[epoch] for curve in curves]) for epoch in shared]
    return tuple((epoch, fmean(some), min(some), max(some)) for epoch, some in values)


def prediction(run: Run, records: Sequence[Record]) -> Prediction | None:
    """What the strategy's predictor says of each structure when fitted to the others; None of too few."""
    settings = search_settings(run)
    values = {
        structure: fmean(record.valid_mrr for record in of_one)
        for structure, of_one in full_runs([r for r in records if not r.failed], settings.epochs).items()
    }
    if len(values) < FEWEST or len(set(values.values())) < 2:
        return None
    method, predictor = predictor_of(settings.strategy, records, settings.epochs)
    structures = list(values)
    told: Values = {}
    with threadpool_limits(1):  # matrices so small gain nothing from threads
        for fold in range(FOLDS):
            asked = structures[fold::FOLDS]
            told |= predictor({s: value for s, value in values.items() if s not in asked}, asked)
    rows = [Predicted(s.rows, title_of(s), told[s], values[s]) for s in structures]
    return Prediction(method, rank_correlation(rows), tuple(rows))


def predictor_of(
    strategy: str, records: Sequence[Record], full: int
) -> tuple[str, Callable[[Values, Sequence[Structure]], Values]]:
    """The predictor that a strategy has; ours for one that has none."""
    if strategy.startswith("paper") and strategy != "paper-without-predictor":
        encoder = "one-hot" if strategy == "paper-one-hot" else "srf"
        return f"the paper's network on {encoder} features", lambda known, asked: by_network(
            known, asked, encoder
        )
    return "a Gaussian process on the structures' invariants", by_surrogate(records, full)


def by_surrogate(records: Sequence[Record], full: int) -> Callable[[Values, Sequence[Structure]], Values]:
    from autosf.search.fidelity import estimates
    from autosf.search.surrogate import fit_surrogate

    labels = estimates(records, full)

    def told(known: Values, asked: Sequence[Structure]) -> Values:
        surrogate = fit_surrogate({structure: labels[structure] for structure in known})
        return dict(zip(asked, surrogate.posterior(asked)[0].tolist(), strict=True))

    return told


def by_network(known: Values, asked: Sequence[Structure], encoder: str) -> Values:
    from autosf.search.predictor import HIDDEN, fit_predictor
    from autosf.search.record import Record, Trial

    records = [Record(Trial(structure, 1, 0), value, 1) for structure, value in known.items()]
    predict = fit_predictor(records, ENCODERS[encoder], HIDDEN[encoder], seed=0)
    return dict(zip(asked, predict(asked).tolist(), strict=True))


def rank_correlation(rows: Sequence[Predicted]) -> float:
    """Spearman's, ties at their mean place; 0 where all are predicted alike."""
    one, other = (
        pl.Series([getattr(row, name) for row in rows]).rank() for name in ("predicted", "measured")
    )
    if one.n_unique() == 1 or other.n_unique() == 1:
        return 0.0
    return correlation(one.to_list(), other.to_list())


def time_spent(run: Run, records: Sequence[Record], one_ranking: float | None) -> TimeSpent:
    """Where the time went; `one_ranking` is what ranking the validation triples takes."""
    with opened_ledger(run.ledger, time.time) as ledger:
        spans, seconds = ledger.spans(), ledger.seconds_spent()
    busy, at_once = covered(spans)
    worker_seconds = sum(record.seconds for record in records)
    share = None
    if one_ranking is not None and worker_seconds:
        share = min(1.0, one_ranking * validations(records) / worker_seconds)
    return TimeSpent(
        tuning=tuning_seconds(run),
        training=busy * (1 - (share or 0.0)),
        ranking=None if share is None else busy * share,
        rest=max(0.0, seconds - busy),
        worker_seconds=worker_seconds,
        at_once=at_once,
        epochs=sum(added_epochs(records)),
    )


def validations(records: Sequence[Record]) -> int:
    """How often validation was ranked: of a trial that goes on from another, what it adds."""
    added = zip(records, added_epochs(records), strict=True)
    return sum(sum(epoch > record.epochs - cost for epoch, _ in record.curve) for record, cost in added)


def covered(spans: Sequence[tuple[float, float]]) -> tuple[float, int]:
    """Seconds in which at least one span lay, and how many did at once, at most."""
    turns = sorted([(began, 1) for began, _ in spans] + [(ended, -1) for _, ended in spans])
    total, since, depth, most = 0.0, 0.0, 0, 0
    for at, turn in turns:
        if depth == 0:
            since = at
        depth += turn
        most = max(most, depth)
        if depth == 0:
            total += at - since
    return total, most
