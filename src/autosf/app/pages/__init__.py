"""Pages for people: templates that escape whatever they are given, and the one stylesheet they share."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def stylesheet() -> str:
    """The CSS of every page, figures included. Nothing in it is loaded from anywhere."""
    return read("style.css") + read("charts.css")


@cache
def environment() -> Environment:
    """The templates of this folder; a name that a page does not have is an error, not an empty text."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read(name: str) -> str:
    """The text of a file in this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
