"""One structure at one fidelity becomes a record: the same bits in one go, by rungs, or killed in between.

Training depends only on (graph, structure, settings, seed, epoch), and a checkpoint is a whole state, so that
a trial goes on from any earlier state of the same training, and a longer one holds a shorter one's record.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError, safe_open

from autosf.embedding.checkpoints import Pace, identity, load_checkpoint, save_checkpoint, tensors
from autosf.embedding.training import train
from autosf.errors import UserError
from autosf.evaluation.metrics import summarise
from autosf.evaluation.sampled_ranking import ranker
from autosf.runs.task import DIVERGED
from autosf.search.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.embedding.model import Model
    from autosf.embedding.settings import TrainingSettings
    from autosf.embedding.state import Epoch, State
    from autosf.evaluation.ranking import Ranks
    from autosf.runs.shared_graph import SearchGraph
    from autosf.runs.task import Task
    from autosf.search.record import Trial


@dataclass(frozen=True, slots=True)
class Outside:
    """What a trial needs of the world: a clock in seconds, an ear for each epoch, one for what is odd.

    `heard` answers whether the trial is to go on; one that is not saves its state and raises `Stopped`.
    `saved` is told of every checkpoint that is written.
    """

    clock: Callable[[], float]
    heard: Callable[[Epoch], bool] = lambda _: True
    note: Callable[[str], None] = lambda _: None
    saved: Callable[[Path], None] = lambda _: None
    device: str = "cpu"


class Stopped(Exception):  # noqa: N818 - no error, but a way out
    """The trial was told to stop between two epochs; its state is saved where it can be."""


def run_alone(task: Task, seen: SearchGraph, outside: Outside) -> Record:
    """What the trial comes to, trained by itself from the longest earlier state there is."""
    began = outside.clock()
    found = saved_state(task, outside.note)
    state = found if found is not None and can_serve(found, task) else None
    ending = ""
    if state is None or not is_over(state, task):
        state, ending = trained_state(task, seen, state, Keeper.of(task, found, outside))
    failure = divergence(state, outside) if ending == "diverged" else ""
    return record_of(task.trial, state, failure, outside.clock() - began)


def divergence(state: State, outside: Outside) -> str:
    """Tells of a divergence after the state; its words."""
    failure = f"{DIVERGED} in epoch {state.epochs + 1}: loss or weights are not finite"
    outside.note(failure)
    return failure


@dataclass(slots=True, eq=False)
class Keeper:
    """Writes a trial's states: where others may go on from them, and where a kill would cost much."""

    task: Task
    outside: Outside
    pace: Pace
    longest: int  # epochs of the longest state that is safe

    @classmethod
    def of(cls, task: Task, found: State | None, outside: Outside) -> Keeper:
        """For a trial of which this state was found."""
        longest = found.epochs if found is not None else 0
        return cls(task, outside, Pace(task.save_seconds, outside.clock), longest)

    def keep(self, state: State, at_once: bool) -> None:
        """Write the state if it is time to, or at once; a longer one that was found stays."""
        is_last = self.task.keep and is_over(state, self.task)
        if state.epochs > self.longest and (at_once or is_last or self.pace.is_due()):
            self.pace.write(lambda: save_state(self.task, state, self.outside))
            self.longest = state.epochs


def trained_state(task: Task, seen: SearchGraph, state: State | None, keeper: Keeper) -> tuple[State, str]:
    """The state at the trial's end and why it ended; saved on the way, so that a kill costs little."""
    settings, outside = replace(task.settings, epochs=task.trial.epochs), keeper.outside

    def validate(model: Model) -> float:
        return valid_mrr(model, seen, task.settings)

    def watch(state: State) -> None:
        goes_on = outside.heard(state.curve[-1])
        keeper.keep(state, at_once=not goes_on)
        if not goes_on and not is_over(state, task):
            raise Stopped

    trained = train(
        seen.graph,
        task.trial.structure,
        settings,
        seed=task.trial.seed,
        clock=outside.clock,
        device=outside.device,
        validate=validate,
        watch=watch,
        state=state,
    )
    return trained.state, trained.ending


def valid_mrr(model: Model, seen: SearchGraph, settings: TrainingSettings) -> float:
    """The model's validation MRR, by which trials are compared."""
    return summarise(ranker_of(seen, settings.validation_candidates)(model)).mrr


@lru_cache(maxsize=1)  # a worker has one graph for all its trials
def ranker_of(seen: SearchGraph, candidates: int) -> Callable[[Model], Ranks]:
    return ranker(seen.graph.valid, seen.known, candidates)


def record_of(trial: Trial, state: State, failure: str, seconds: float) -> Record:
    """The best validation up to the trial's epochs; after divergence, what was reached before it counts."""
    epochs = state.curve[: trial.epochs]
    curve = tuple((epoch.number, epoch.valid_mrr) for epoch in epochs if epoch.valid_mrr is not None)
    if not curve:
        return Record(trial, 0.0, len(epochs), (), seconds, failure or "no epoch was validated")
    return Record(trial, max(mrr for _, mrr in curve), len(epochs), curve, seconds)


def is_over(state: State, task: Task) -> bool:
    """Whether the trial has nothing left to train."""
    return state.is_over(task.trial.epochs, task.settings.patience)


def can_serve(state: State, task: Task) -> bool:
    """Whether going on from the state, or cutting it short, is the same as training from the start.

    A trial that ends between two validations is validated at its end; a longer training was not.
    """
    return state.epochs < task.trial.epochs or ends_on_a_validation(task)


def ends_on_a_validation(task: Task) -> bool:
    return task.trial.epochs % task.settings.validate_every == 0


def save_state(task: Task, state: State, outside: Outside) -> None:
    """Write the checkpoint if others may go on from it; without one a trial is slower, not wrong."""
    if state.epochs == task.trial.epochs and not ends_on_a_validation(task):
        return
    path = Path(task.checkpoint)
    beside = path.with_name(f"{path.name}.{os.getpid()}")  # a dying worker of a killed driver has another
    try:
        save_checkpoint(beside, state, {**who(task), "checksum": checksum(state)})
        beside.replace(path)
        outside.saved(path)
    except (OSError, SafetensorError) as error:
        for left in path.parent.glob(f"{beside.name}*"):
            left.unlink(missing_ok=True)
        outside.note(f"no checkpoint: {error}")


def saved_state(task: Task, note: Callable[[str], None]) -> State | None:
    """The checkpoint's state, if there is one that can be trusted; another is deleted."""
    path = Path(task.checkpoint)
    if not path.exists():
        return None
    try:
        state = load_checkpoint(path, who(task))
        if checksum(state) != promised_checksum(path):
            raise UserError(f"{path.name}: its bytes have changed")
    except (UserError, KeyError, TypeError) as error:
        path.unlink(missing_ok=True)
        note(f"checkpoint deleted, training starts anew: {error}")
        return None
    return state


def who(task: Task) -> dict[str, Any]:
    return identity(task.graph, str(task.trial.structure), task.settings.as_dict(), task.trial.seed)


def promised_checksum(path: Path) -> int:
    with safe_open(path, "np") as file:
        return int(json.loads(file.metadata()["who"])["checksum"])


def checksum(state: State) -> int:
    """CRC-32 of all tensors: a safetensors file with changed bytes looks whole."""
    total = 0
    for _, tensor in sorted(tensors(state).items()):
        total = zlib.crc32(np.ascontiguousarray(tensor.cpu().numpy()).data, total)
    return total
