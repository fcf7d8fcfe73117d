"""Settings for graphs that are well known, as data."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from autosf.algebra.zoo import plain
from autosf.embedding.settings import TrainingSettings


@cache
def presets() -> dict[str, dict[str, Any]]:
    """What differs from the defaults, by the graph's name."""
    text = files("autosf.embedding").joinpath("presets.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def preset(graph_name: str) -> TrainingSettings:
    """The settings for a graph: its preset where there is one, the defaults elsewhere."""
    wanted = plain(graph_name)
    values = next((values for name, values in presets().items() if plain(name) == wanted), {})
    return TrainingSettings().changed(values)
