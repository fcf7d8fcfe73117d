"""The report's figures: each drawn for the page, and with its data as a table that stands for it anywhere else."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from autosf.algebra.structure import from_rows
from autosf.app.charts import Bar, Series, bar_chart, line_chart, scatter_chart, standalone
from autosf.app.drawing_svg import structure_svg
from autosf.app.report.portrait import title_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from autosf.app.report.comparison import Comparison
    from autosf.app.report.content import GraphProfile, Report
    from autosf.app.report.portrait import Portrait
    from autosf.app.report.search_story import LearningCurve, Prediction, SearchCurve, TimeSpent

FAR_BELOW = 3.0  # quartile distances below the lower quartile: what is out of sight
EXTREMES = 6  # relations shown where the winner gains most, and where it loses most
MRR = "validation MRR"
SPLITS = {"valid": "validation", "test": "test"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing for the page under its title, and its data: a table with a heading for each column."""

    name: str  # of its files
    title: str
    svg: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    note: str = ""

    def csv(self) -> str:
        """The data as a CSV file."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()

    def file(self) -> str:
        """The drawing as an SVG file."""
        return standalone(self.svg, self.title)


def figures(report: Report) -> dict[str, Figure]:
    """All figures that the report has data for, by name."""
    return {figure.name: figure for figure in drawn(report)}


def drawn(report: Report) -> Iterator[Figure]:
    if report.winner:
        yield structure_figure("winner", "The winner", report.winner)
    for known in report.human:
        yield structure_figure(f"structure-{known.title.lower()}", known.title, known)
    yield patterns_figure(report.graph)
    if any(curve.points for curve in report.search_curves):
        yield search_figure(report.search_curves)
    if report.result["leaderboard"]:
        yield leaderboard_figure(report)
    if report.learning_curves:
        yield learning_figure(report.learning_curves)
    if report.prediction:
        yield prediction_figure(report.prediction)
    for comparison in (report.comparison, report.test):
        if comparison:
            yield pattern_results_figure(comparison)
            if len(comparison.models) > 1:
                yield relations_figure(comparison)
    yield time_figure(report.time)


def in_sight(values: Sequence[float]) -> float:
    """The least value that is drawn: a hopeless structure would press all others together."""
    known = pl.Series(values, dtype=pl.Float64)
    low, high = known.quantile(0.25, "linear"), known.quantile(0.75, "linear")
    if low is None or high is None:
        return 0.0
    return low - FAR_BELOW * max(high - low, 0.002)


def out_of_sight(count: int) -> str:
    return "" if not count else f"{count} far below {'is' if count == 1 else 'are'} not drawn. "


def structure_figure(name: str, title: str, known: Portrait) -> Figure:
    parts = range(1, len(known.rows) + 1)
    rows = tuple((f"h{head}", *row) for head, row in zip(parts, known.rows, strict=True))
    svg = structure_svg(from_rows(known.rows), f"{title}: {known.formula}")
    return Figure(name, title, svg, ("", *(f"t{tail}" for tail in parts)), rows)


def patterns_figure(graph: GraphProfile) -> Figure:
    title = "What the graph is made of"
    svg = bar_chart(
        [Bar(row.name, [round(100 * row.train_share, 1)]) for row in graph.patterns],
        series=["share"],
        title=title,
        x_label="% of the train triples",
    )
    rows = tuple((row.name, row.relations, row.train_share) for row in graph.patterns)
    return Figure("graph-patterns", title, svg, ("pattern", "relations", "train_share"), rows)


def search_figure(curves: Sequence[SearchCurve]) -> Figure:
    title = "The search: best so far"
    lowest = min(curve.points[-1][1] for curve in curves if curve.points)
    least = min(lowest, in_sight([mrr for curve in curves for _, mrr in curve.points]))
    series = [Series(curve.name, [point for point in curve.points if point[1] >= least]) for curve in curves]
    svg = line_chart(series, title=title, x_label="trained epochs", y_label=f"best {MRR}", steps=True)
    rows = tuple((curve.name, curve.run, *point) for curve in curves for point in curve.points)
    columns = ("search", "run", "trained_epochs", "best_valid_mrr")
    return Figure("search-curve", title, svg, columns, rows, trained_otherwise(curves))


def trained_otherwise(curves: Sequence[SearchCurve]) -> str:
    """A sentence on each search that was not trained as the first one was."""
    told = [
        (curve.name, ", ".join(f"{name} {value}" for name, value in curve.other_settings.items()))
        for curve in curves
        if curve.other_settings
    ]
    return "".join(f"Other settings of {name}: {settings}. " for name, settings in told)


def leaderboard_figure(report: Report) -> Figure:
    """All structures by their number of blocks: what more terms are worth on this graph."""
    title = "All structures, by their number of blocks"
    rows = report.result["leaderboard"]
    least = in_sight([row["valid_mrr"] for row in rows])
    seen = [row for row in rows if row["valid_mrr"] >= least]
    clouds: dict[str, list[dict[str, Any]]] = {"new": [], "known before": [], "new, briefly trained": []}
    for row in seen:
        is_short = row["trial_epochs"] < report.circumstances.search["epochs"]
        clouds["known before" if row["names"] else "new, briefly trained" if is_short else "new"].append(row)
    series = [
        Series(
            name,
            [(row["blocks"], row["valid_mrr"]) for row in some],
            labels=[title_of(from_rows(row["structure"])) for row in some],
        )
        for name, some in clouds.items()
    ]
    svg = scatter_chart(series, title=title, x_label="blocks", y_label=MRR)
    columns = ("place", "structure", "names", "valid_mrr", "spread", "seeds", "epochs", "blocks")
    table = tuple(
        (place, str(from_rows(row["structure"])), " ".join(row["names"]), *(row[key] for key in columns[3:]))
        for place, row in enumerate(rows, 1)
    )
    return Figure("leaderboard", title, svg, columns, table, out_of_sight(len(rows) - len(seen)))


def learning_figure(curves: Sequence[LearningCurve]) -> Figure:
    title = "Learning curves"
    least = in_sight([curve.points[-1][1] for curve in curves])
    seen = {learner(curve): curve for curve in curves if curve.points[-1][1] >= least}
    series = [
        Series(
            name,
            [(epoch, mean) for epoch, mean, _, _ in curve.points],
            band=[(epoch, low, high) for epoch, _, low, high in curve.points] if curve.seeds > 1 else (),
        )
        for name, curve in seen.items()
    ]
    svg = line_chart(series, title=title, x_label="epochs", y_label=MRR)
    columns = ("structure", "name", "seeds", "epoch", "mean_valid_mrr", "least", "most")
    rows = tuple(
        (str(from_rows(curve.rows)), curve.title, curve.seeds, *point)
        for curve in curves
        for point in curve.points
    )
    unseen = [curve.title for curve in curves if curve not in seen.values()]
    note = f"Not drawn, as far below: {', '.join(unseen)}. " if unseen else ""
    if not any(curve.is_winner for curve in curves):
        note += "The best so far is not trained to the full yet. "
    return Figure("learning-curves", title, svg, columns, rows, note)


def learner(curve: LearningCurve) -> str:
    """What a learning curve is called."""
    if curve.is_winner:
        return "the winner"
    return f"place {curve.place}" if curve.title.startswith("[") else curve.title


def prediction_figure(prediction: Prediction) -> Figure:
    title = "Predicted against measured"
    least = in_sight([row.measured for row in prediction.structures])
    seen = [row for row in prediction.structures if row.measured >= least]
    points = [(row.predicted, row.measured) for row in seen]
    series = Series("structures", points, labels=[row.title for row in seen])
    svg = scatter_chart(
        [series], title=title, x_label=f"predicted {MRR}", y_label=f"measured {MRR}", diagonal=True
    )
    rows = tuple(
        (str(from_rows(row.rows)), row.title, row.predicted, row.measured) for row in prediction.structures
    )
    note = out_of_sight(len(rows) - len(seen))
    return Figure("prediction", title, svg, ("structure", "name", "predicted", "measured"), rows, note)


def pattern_results_figure(comparison: Comparison) -> Figure:
    title = f"By pattern, on {SPLITS[comparison.split]}"
    titles = tuple(model.title for model in comparison.models)
    svg = bar_chart(
        [Bar(row.name, [round(value, 3) for value in row.mrr]) for row in comparison.patterns],
        series=titles,
        title=title,
        x_label=f"MRR on {SPLITS[comparison.split]}",
    )
    rows = tuple((row.name, row.count, *row.mrr) for row in comparison.patterns)
    return Figure(f"patterns-{comparison.split}", title, svg, ("pattern", "triples", *titles), rows)


def relations_figure(comparison: Comparison) -> Figure:
    """The relations where the winner gains and loses most; the table has them all."""
    winner, human = (model.title for model in comparison.models)
    title = f"Where the winner gains and loses most, on {SPLITS[comparison.split]}"
    shown = [row for row in comparison.relations if row.gain]
    picked = shown if len(shown) <= 2 * EXTREMES else shown[:EXTREMES] + shown[-EXTREMES:]
    svg = bar_chart(
        [Bar(row.relation, [round(row.gain or 0.0, 3)]) for row in picked],
        series=["gain"],
        title=title,
        x_label=f"MRR of the winner, less that of {human}",
    )
    columns = ("relation", "pattern", "triples", winner, human, "gain", "standard_error")
    rows = tuple(
        (row.relation, row.pattern, row.count, *row.mrr, row.gain, row.error) for row in comparison.relations
    )
    return Figure(f"relations-{comparison.split}", title, svg, columns, rows)


def time_figure(spent: TimeSpent) -> Figure:
    title = "Seconds by part"
    parts = {
        "tuning": spent.tuning,
        "training": spent.training,
        "ranking": spent.ranking or 0.0,
        "the rest": spent.rest,
    }
    bars = [Bar(name, [round(seconds, 1)]) for name, seconds in parts.items()]
    svg = bar_chart(bars, series=["seconds"], title=title, x_label="seconds")
    return Figure("time", title, svg, ("part", "seconds"), tuple(parts.items()))
