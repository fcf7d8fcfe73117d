"""Settings for graphs that are well known, as data."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from autosf.algebra.zoo import plain
from autosf.embedding.settings import TrainingSettings

MANY = 10_000  # entities: from here on a step over all of them takes several times as long as one that draws some
LARGE = 250_000  # entities: from here on even ranking among all of them takes long
DRAW = 1024  # entities, beside those that a step asks from and for
FOR_OTHERS = {
    "learning_rate": 0.5,
    "entity_weight": 0.01,
    "relation_weight": 0.01,
    "dropout": 0.2,
    "averaging": 0.9,
    "batch_size": 256,
    "epochs": 100,
}
DRAWN = {"loss": "sampled-softmax", "negatives": DRAW}
FOR_MANY = FOR_OTHERS | DRAWN
ESTIMATED = {"validation_candidates": 1000}
# Averages take a model's memory once more.
FOR_LARGE = FOR_MANY | ESTIMATED | {"averaging": 0.0, "epochs": 50}


@cache
def presets() -> dict[str, dict[str, Any]]:
    """What differs from the defaults, by the graph's name."""
    text = files("autosf.embedding").joinpath("presets.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def preset(graph_name: str, entities: int = 0) -> TrainingSettings:
    """The settings for a graph: its preset where there is one, elsewhere what suits most of so many entities."""
    found = preset_values(graph_name)
    if found is None:
        found = FOR_LARGE if entities > LARGE else FOR_MANY if entities > MANY else FOR_OTHERS
    return TrainingSettings().changed(found)


def has_preset(graph_name: str) -> bool:
    """Whether somebody has found settings for the graph."""
    return preset_values(graph_name) is not None


def preset_values(graph_name: str) -> dict[str, Any] | None:
    """What differs from the defaults; None for a graph that is not known."""
    wanted = plain(graph_name)
    return next((values for name, values in presets().items() if plain(name) == wanted), None)
