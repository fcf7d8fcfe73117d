"""Figures that were published, for rows that nobody here can measure."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import Any

from autosf.algebra.zoo import plain
from autosf.errors import UserError, did_you_mean, quoted
from autosf.evaluation.metrics import Metrics

PREFIX = "published:"


@cache
def published() -> dict[str, dict[str, Any]]:
    """By the method's name: its title, and its figures by graph."""
    text = files("autosf.app").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def published_figures(name: str) -> dict[str, dict[str, float]]:
    """The figures of a method by graph."""
    methods = published()
    found = next((known for known in methods if plain(known) == plain(name)), None)
    if found is None:
        hint = did_you_mean(name, methods) or f"; expected one of {', '.join(methods)}"
        raise UserError(f"no published figures of {quoted(name)}{hint}")
    return {graph: row for graph, row in methods[found].items() if graph != "title"}


def published_metrics(name: str, graph: str) -> dict[str, Any] | None:
    """The method's test metrics on a graph, with None for what was not published; None if nothing was."""
    row = next((row for known, row in published_figures(name).items() if plain(known) == plain(graph)), None)
    return None if row is None else {field.name: row.get(field.name) for field in fields(Metrics)}
