"""The report as one HTML file: nothing in it is loaded from anywhere, and nothing in it runs."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from autosf.algebra.structure import from_rows
from autosf.app.charts import number
from autosf.app.drawing_svg import structure_svg
from autosf.app.duration import span_in_words
from autosf.app.pages import environment, stylesheet
from autosf.app.report.portrait import case_headings
from autosf.app.search_tables import how_decided, title_of, winning_structure
from autosf.errors import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from autosf.app.report.content import Report
    from autosf.app.report.figures import Figure
    from autosf.app.report.portrait import Portrait

ROWS = 12  # of the leaderboard; the others unfold
MOST_ROWS = 100  # that a page holds; all are in the CSV


def page(report: Report, figures: Mapping[str, Figure]) -> str:
    """The HTML of a report."""
    template = environment().get_template("report.html")
    return template.render(
        report=report,
        figures=figures,
        style=Markup(stylesheet()),  # noqa: S704 - our own file
        cases=case_headings(len(report.human[0].rows)),
        rows=ROWS,
        most_rows=MOST_ROWS,
        thumbnail=thumbnail,
        drawing=drawing,
        link=link,
        label=label,
        number=number,
        duration=span_in_words,
        title_of=title_of,
        winning=winning_structure(report.result),
        how_decided=how_decided(report.result),
        plainly=plainly,
        standing_of=lambda known: standing_of(report, known),
    )


def thumbnail(rows: Any) -> Markup:
    return Markup(structure_svg(from_rows(rows)))  # noqa: S704 - a structure holds numbers only


def drawing(figure: Figure) -> Markup:
    """A figure's SVG, in which every name is escaped already."""
    return Markup(figure.svg)  # noqa: S704


def link(figure: Figure, form: str) -> str:
    """A figure's file inside the page itself, so that it can be saved from there without any other file."""
    kind, text = ("image/svg+xml", figure.file()) if form == "svg" else ("text/csv", figure.csv())
    return f"data:{kind};base64,{b64encode(text.encode()).decode()}"


def standing_of(report: Report, known: Portrait) -> dict[str, Any] | None:
    """The leaderboard's row of a structure that people designed, if it was tried."""
    rows = report.result["leaderboard"]
    return next((row for row in rows if row["names"] and title_of(row) == known.title), None)


def plainly(value: object) -> str:
    """A setting in words."""
    words = {None: "none", True: "yes", False: "no"}
    return words.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)


def label(text: object, longest: int = 120) -> str:
    """A label of the user's on one line, without control characters; the template escapes it."""
    return quoted(text, longest)[1:-1]
