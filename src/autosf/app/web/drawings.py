"""The drawings of the live view, as SVG text that its page puts in place: curves of the search, structures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.responses import Response

from autosf.algebra.structure import from_json
from autosf.app.charts import Series, line_chart
from autosf.app.drawing_svg import structure_svg
from autosf.app.run_results import called, zoo_names
from autosf.app.web.reading import parameters
from autosf.app.web.refusals import Refused
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from autosf.app.web.site import Site
    from autosf.search.record import Record

CURVES = 5
MOST_PARTS = 16
MOST_LETTERS = 4000


def svg(text: str, keep: bool = False) -> Response:
    cache = "private, max-age=3600" if keep else "no-store"
    return Response(text, headers={"Cache-Control": cache}, media_type="image/svg+xml")


async def search_curve(request: Request) -> Response:
    """The best validation MRR after each trial."""
    return await asyncio.to_thread(drawn_search, request.app.state.site)


async def learning_curves(request: Request) -> Response:
    """The validation MRR of the best structures over their epochs."""
    return await asyncio.to_thread(drawn_curves, request.app.state.site)


async def structure(request: Request) -> Response:
    """A structure, given by its rows."""
    rows = parameters(request, ("rows",)).get("rows", "")
    try:
        found = from_json(rows[:MOST_LETTERS])
    except UserError as error:
        raise Refused(400, str(error)) from None
    if found.parts > MOST_PARTS:
        raise Refused(400, f"rows: expected at most {MOST_PARTS} of them, found {found.parts}")
    return svg(structure_svg(found, called(found)), keep=True)


def drawn_search(site: Site) -> Response:
    points = best_so_far(site.sight().outcome.records)
    series = [Series("best so far", points)]
    title = "Best validation MRR after each trial"
    return svg(line_chart(series, title=title, x_label="trials", y_label="validation MRR", steps=True))


def drawn_curves(site: Site) -> Response:
    outcome = site.sight().outcome
    series = []
    for place, standing in enumerate(outcome.standings[:CURVES], 1):
        records = [record for record in outcome.records if record.trial.structure == standing.structure]
        longest = max(records, key=lambda record: (len(record.curve), record.valid_mrr))
        names = zoo_names(standing.structure)
        series.append(Series(f"{place}. {names[0]}" if names else f"place {place}", longest.curve))
    title = "Learning curves of the best structures"
    return svg(line_chart(series, title=title, x_label="epochs", y_label="validation MRR"))


def best_so_far(records: Iterable[Record]) -> list[tuple[float, float]]:
    """(trials done, best MRR among them); trials that failed count as done."""
    points: list[tuple[float, float]] = []
    best = 0.0
    for number, record in enumerate(records, 1):
        best = max(best, record.valid_mrr)
        points.append((number, best))
    return points
