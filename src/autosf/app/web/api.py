"""The JSON API: each function answers one address; `openapi.py` describes them."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from autosf.app.web.explorer import (
    answers_as_json,
    completions,
    neighbours_of,
    question_of,
    verdicts_of,
)
from autosf.app.web.openapi import DESCRIPTION, MOST_AT_ONCE, MOST_ROWS, MOST_TOP
from autosf.app.web.reading import body_of, choice_in, labels_in, number_in, parameters, rows_in
from autosf.app.web.refusals import Refused
from autosf.app.web.watching import leaderboard_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from autosf.app.web.asking import Question
    from autosf.app.web.explorer import Explorer
    from autosf.app.web.site import Site

KNOWN = ("mark", "hide")


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def as_json(content: Any, status: int = 200) -> Response:
    """A JSON answer that nobody keeps."""
    body = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return Response(body, status, {"Cache-Control": "no-store"}, media_type="application/json")


async def health(request: Request) -> Response:
    parameters(request, ())
    return as_json({"status": "ok"})


async def description(request: Request) -> Response:
    parameters(request, ())
    return as_json(DESCRIPTION)


async def status(request: Request) -> Response:
    parameters(request, ())
    return as_json(await asyncio.to_thread(site_of(request).status))


async def leaderboard(request: Request) -> Response:
    limit = number_in(parameters(request, ("limit",)), "limit", 20, MOST_ROWS)
    site = site_of(request)
    return as_json(await asyncio.to_thread(lambda: leaderboard_of(site.sight(), limit)))


async def predict(request: Request) -> Response:
    """The best answers of one question."""
    given = parameters(request, ("head", "relation", "tail", "top", "known"))
    explorer = site_of(request).explorer()
    top = number_in(given, "top", 10, MOST_TOP)
    hide = choice_in(given, "known", KNOWN) == "hide"
    question = question_of(explorer, labels_in(given, 2), top, hide)
    (rows,) = await answers_to(explorer, [question])
    return as_json({"predictions": rows})


async def predict_many(request: Request) -> Response:
    """The best answers of many questions."""
    body = await body_of(request, ("queries", "top", "known"))
    explorer = site_of(request).explorer()
    top = number_in(body, "top", 10, MOST_TOP)
    hide = choice_in(body, "known", KNOWN) == "hide"
    rows = rows_in(body, "queries", MOST_AT_ONCE)
    labels = [labels_in(row, 2, f"queries[{place}]: ") for place, row in enumerate(rows)]
    questions = [question_of(explorer, given, top, hide) for given in labels]
    answers = await answers_to(explorer, questions)
    return as_json(
        {"results": [{**given, "predictions": some} for given, some in zip(labels, answers, strict=True)]}
    )


async def answers_to(explorer: Explorer, questions: Sequence[Question]) -> list[list[dict[str, Any]]]:
    """The answers of the desk, with their labels."""
    explorer.desk.refuse_if_crowded()
    found = await asyncio.gather(*map(explorer.desk.ask, questions))
    return [
        answers_as_json(explorer, question, answers)
        for question, answers in zip(questions, found, strict=True)
    ]


async def classify(request: Request) -> Response:
    """Whether one triple is likely true."""
    labels = labels_in(parameters(request, ("head", "relation", "tail")), 3)
    explorer = site_of(request).explorer()
    (verdict,) = await explorer.desk.run(partial(verdicts_of, explorer), [labels])
    return as_json(verdict)


async def classify_many(request: Request) -> Response:
    """Whether many triples are likely true."""
    body = await body_of(request, ("triples",))
    explorer = site_of(request).explorer()
    rows = rows_in(body, "triples", MOST_AT_ONCE)
    labels = [labels_in(row, 3, f"triples[{place}]: ") for place, row in enumerate(rows)]
    return as_json({"results": await explorer.desk.run(partial(verdicts_of, explorer), labels)})


async def entities(request: Request) -> Response:
    return await completing(request, "entity")


async def relations(request: Request) -> Response:
    return await completing(request, "relation")


async def completing(request: Request, name: str) -> Response:
    """Labels that complete a text."""
    given = parameters(request, ("q", "limit"))
    limit = number_in(given, "limit", 10, MOST_ROWS)
    explorer = site_of(request).explorer()
    known = explorer.relations if name == "relation" else explorer.entities
    found = await asyncio.to_thread(completions, known, given.get("q", ""), limit, name)
    return as_json({"relations" if name == "relation" else "entities": found})


async def neighbours(request: Request) -> Response:
    given = parameters(request, ("entity", "limit"))
    if "entity" not in given:
        raise Refused(400, "entity: expected a label, found none")
    limit = number_in(given, "limit", 8, MOST_TOP)
    explorer = site_of(request).explorer()
    (found,) = await explorer.desk.run(partial(neighbours_of, explorer, limit=limit), [given["entity"]])
    return as_json(found)
