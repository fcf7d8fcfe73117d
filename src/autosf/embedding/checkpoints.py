"""A training's state on disk: one safetensors file, written beside and renamed, so that it is whole or absent.

What belongs to the state but is no tensor (the curve, and what is being trained) is JSON in the file's header.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from autosf.embedding.settings import TrainingSettings
from autosf.embedding.state import Epoch, State
from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor

SELDOM = 20  # times as long as writing a checkpoint took passes before the next

EXTRA = (
    "average_entities",
    "average_relations",
    "best_entities",
    "best_relations",
    "cached_tails",
    "cached_heads",
)

FREE = ("epochs", "patience", "score_megabytes")  # settings that may change when training goes on


def identity(digest: str, structure: str, settings: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """What must be the same for a checkpoint to be continued."""
    fixed = {name: value for name, value in settings.items() if name not in FREE}
    return {"graph": digest, "structure": structure, "settings": fixed, "seed": seed}


class Pace:
    """When to write the next checkpoint: after some seconds, but so seldom that writing takes little of the time.

    Writing a large state may take longer than the seconds between two small ones.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._wait, self._clock, self._last = seconds, clock, clock()
        self._least = seconds

    def is_due(self) -> bool:
        return self._clock() - self._last > self._wait

    def write(self, save: Callable[[], None]) -> None:
        """Save, and wait the longer for the next time the longer it took."""
        started = self._clock()
        save()
        self._last = self._clock()
        self._wait = max(self._least, SELDOM * (self._last - started))


def save_checkpoint(path: Path, state: State, who: Mapping[str, Any], *, flush: bool = False) -> None:
    """Write the state; an earlier checkpoint stays until this one is whole.

    With `flush` it is on the disk before it takes the earlier one's place: a power cut leaves one of them.
    """
    facts = {"who": who, "curve": [asdict(epoch) for epoch in state.curve], "same": shared(state)}
    header = {name: json.dumps(fact) for name, fact in facts.items()}
    beside = path.with_name(path.name + ".partial")
    save_file({name: tensor.contiguous() for name, tensor in tensors(state).items()}, beside, header)
    if flush:
        with beside.open("rb") as file:
            os.fsync(file.fileno())
    beside.replace(path)


def load_checkpoint(path: Path, who: Mapping[str, Any]) -> State:
    """The state to go on from; one of another graph, structure, setting or seed is refused."""
    try:
        with safe_open(path, "pt") as file:
            header = file.metadata() or {}
            found: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        known, curve = json.loads(header["who"]), json.loads(header["curve"])
        found |= {name: found[owner] for name, owner in json.loads(header.get("same", "{}")).items()}
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{path}: expected a checkpoint, found a damaged file; delete it to start anew"
        ) from error
    refuse_other(path, known, who)
    return State(
        entities=found["entities"],
        relations=found["relations"],
        entity_sums=under(found, "entity_sums."),
        relation_sums=under(found, "relation_sums."),
        curve=tuple(Epoch(**epoch) for epoch in curve),
        **{name: found.get(name) for name in EXTRA},
    )


def tensors(state: State) -> dict[str, Tensor]:
    """All tensors of a state by name; of those that share memory, such as the last weights if they are the best
    ones, only the first."""
    same = shared(state)
    return {name: tensor for name, tensor in every_tensor(state).items() if name not in same}


def shared(state: State) -> dict[str, str]:
    """For each tensor that is another one of the state as well, that one's name."""
    first: dict[int, str] = {}
    owners = {
        name: first.setdefault(tensor.data_ptr(), name)
        for name, tensor in every_tensor(state).items()
        if tensor.numel()
    }
    return {name: owner for name, owner in owners.items() if name != owner}


def every_tensor(state: State) -> dict[str, Tensor]:
    named = {"entities": state.entities, "relations": state.relations}
    named |= {f"entity_sums.{name}": value for name, value in state.entity_sums.items()}
    named |= {f"relation_sums.{name}": value for name, value in state.relation_sums.items()}
    return named | {name: value for name in EXTRA if (value := getattr(state, name)) is not None}


def under(found: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in found.items() if name.startswith(prefix)}


def refuse_other(path: Path, known: Mapping[str, Any], who: Mapping[str, Any]) -> None:
    """Name what the checkpoint was made with where it differs."""
    for what, wanted in who.items():
        if what == "settings":
            then = TrainingSettings().as_dict() | known[what]  # what a setting that came later was until then
            changed = [name for name in wanted if then[name] != wanted[name]]
            if changed:
                name = changed[0]
                raise UserError(
                    f"{path}: the checkpoint has {name} {then[name]}, now it is {wanted[name]};"
                    " give the same, or another --out"
                )
        elif known.get(what) != wanted:
            raise UserError(f"{path}: the checkpoint is of another {what}; give the same, or another --out")
