"""Requests as they are meant: parameters and bodies read strictly, mistakes told by name."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from autosf.app.web.refusals import Refused
from autosf.errors import did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request

NUMBER = re.compile(r"[0-9]{1,6}")
ROLES = ("head", "relation", "tail")


def parameters(request: Request, known: Sequence[str]) -> dict[str, str]:
    """The query's parameters, each known and given once."""
    pairs = request.query_params.multi_items()
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise Refused(400, f"unknown parameter {quoted(name)}{did_you_mean(name, known)}")
        if name in found:
            raise Refused(400, f"{name}: expected once, found more than once")
        found[name] = value
    return found


def number_in(given: Mapping[str, Any], name: str, default: int, most: int) -> int:
    """A whole number from 1 to the most that is served; from a query it comes as text."""
    value = given.get(name, default)
    if isinstance(value, str) and NUMBER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise Refused(400, f"{name}: expected a whole number from 1 to {most}, found {quoted(value)}")
    return value


def choice_in(given: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    """One of some words, the first where none is given."""
    value = given.get(name, choices[0])
    if value not in choices:
        raise Refused(400, f"{name}: expected {' or '.join(map(quoted, choices))}, found {quoted(value)}")
    return str(value)


def labels_in(given: Mapping[str, Any], wanted: int, place: str = "") -> dict[str, str]:
    """The labels by role: two for a question, three for a triple."""
    found = {role: given[role] for role in ROLES if role in given}
    for role, label in found.items():
        if not isinstance(label, str):
            raise Refused(400, f"{place}{role}: expected a label, found {quoted(label)}")
    if len(found) != wanted:
        expected = "two of head, relation and tail" if wanted == 2 else "head, relation and tail"
        raise Refused(400, f"{place}expected {expected}, found {quoted(', '.join(found) or 'none')}")
    return found


async def body_of(request: Request, known: Sequence[str]) -> dict[str, Any]:
    """The JSON object of a request's body."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "Content-Type: expected application/json")
    try:
        found = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise Refused(400, "body: expected a JSON object, found something else") from None
    if not isinstance(found, dict):
        raise Refused(400, "body: expected a JSON object, found another JSON value")
    for name in found:
        if name not in known:
            raise Refused(400, f"body: unknown key {quoted(name)}{did_you_mean(name, known)}")
    return found


def rows_in(body: Mapping[str, Any], name: str, most: int) -> list[dict[str, Any]]:
    """A list of objects in a body."""
    rows = body.get(name)
    if not isinstance(rows, list) or not 1 <= len(rows) <= most:
        raise Refused(400, f"{name}: expected a list of 1 to {most} objects")
    for place, row in enumerate(rows):
        if not isinstance(row, dict) or not set(row) <= set(ROLES):
            raise Refused(400, f"{name}[{place}]: expected an object with head, relation and tail")
    return rows
