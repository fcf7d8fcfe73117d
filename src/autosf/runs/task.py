"""A trial as it travels: what names it in the ledger, what a worker is told, what comes back, all as JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from autosf.algebra.invariance import canonical
from autosf.algebra.structure import from_json, to_json
from autosf.embedding.settings import TrainingSettings
from autosf.search.record import Record, Trial

if TYPE_CHECKING:
    from collections.abc import Mapping

DIVERGED = "diverged"  # begins the reason of a failure that would be the same again
SAVE_SECONDS = 20.0  # between two checkpoints within a rung, so that writing them costs little


@dataclass(frozen=True, slots=True)
class Key:
    """What makes two trials the same training: equivalent structures have one key."""

    graph: str  # digest
    structure: str  # canonical under the extended group
    settings: str  # digest
    epochs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Task:
    """A trial of a canonical structure for a worker: trained from `checkpoint` where there is one."""

    trial: Trial
    graph: str  # digest
    settings: TrainingSettings
    checkpoint: str  # a file's path
    keep: bool = False  # the state at the end is wanted: a longer trial may go on from it
    save_seconds: float = SAVE_SECONDS


def key_of(trial: Trial, graph: str, settings: TrainingSettings) -> Key:
    """The trial's key; training the structure it names gives the trial's record."""
    structure = to_json(canonical(trial.structure, "extended"))
    return Key(graph, structure, settings_digest(settings), trial.epochs, trial.seed)


@lru_cache(maxsize=64)  # each trial's key asks for that of the run
def settings_digest(settings: TrainingSettings) -> str:
    """SHA-256 of the settings that are not the defaults, but `epochs`, which is a trial's own, and memory's.

    So a setting that a later version adds leaves the keys of earlier records as they are.
    """
    usual = TrainingSettings().as_dict()
    chosen = {name: value for name, value in settings.as_dict().items() if value != usual[name]}
    return digest(
        {name: value for name, value in chosen.items() if name not in ("epochs", "score_megabytes")}
    )


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON object, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checkpoint_name(key: Key) -> str:
    """One file for all fidelities of a training: a longer state takes the place of a shorter one."""
    return digest(asdict(replace(key, epochs=0)))[:32] + ".safetensors"


def task_as_json(task: Task) -> dict[str, Any]:
    return {
        **{field.name: getattr(task, field.name) for field in fields(task)},
        "trial": trial_as_json(task.trial),
        "settings": task.settings.as_dict(),
    }


def task_from_json(found: Mapping[str, Any]) -> Task:
    trial, settings = trial_from_json(found["trial"]), TrainingSettings(**found["settings"])
    return Task(**{**found, "trial": trial, "settings": settings})


def trial_as_json(trial: Trial) -> dict[str, Any]:
    return {"structure": to_json(trial.structure), "epochs": trial.epochs, "seed": trial.seed}


def trial_from_json(found: Mapping[str, Any]) -> Trial:
    return Trial(from_json(found["structure"]), found["epochs"], found["seed"])


def record_as_json(record: Record) -> dict[str, Any]:
    return {**asdict(record), "trial": trial_as_json(record.trial)}


def record_from_json(found: Mapping[str, Any]) -> Record:
    return Record(**{**found, "trial": trial_from_json(found["trial"]), "curve": curve_of(found["curve"])})


def curve_of(points: list[list[Any]]) -> tuple[tuple[int, float], ...]:
    """A record's curve from JSON's lists."""
    return tuple((int(epoch), float(mrr)) for epoch, mrr in points)
