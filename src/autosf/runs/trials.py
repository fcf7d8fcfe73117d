"""Several trials for one worker: side by side on a small graph, where a step is mostly its calls, else in turn.

A trial's record is the same bits whatever others are beside it, and however many: a single one goes the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from autosf.embedding.model import Model
from autosf.embedding.settings import refuse_odd_dimension, stack_size
from autosf.embedding.side_by_side import epoch_of_many
from autosf.embedding.training import averaged, has_diverged, moved, refuse_empty, start, validated
from autosf.runs.trial import (
    Keeper,
    Stopped,
    can_serve,
    divergence,
    is_over,
    record_of,
    run_alone,
    saved_state,
    valid_mrr,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from autosf.embedding.state import State
    from autosf.embedding.training import Weights
    from autosf.runs.shared_graph import SearchGraph
    from autosf.runs.task import Task
    from autosf.runs.trial import Outside
    from autosf.search.record import Record

    Asked = Sequence[tuple[Task, Outside]]


def run_trial(task: Task, seen: SearchGraph, outside: Outside) -> Record:
    """What one trial comes to, trained from the longest earlier state there is."""
    ((_, record),) = run_trials([(task, outside)], seen)
    return record


def run_trials(asked: Asked, seen: SearchGraph) -> Iterator[tuple[int, Record]]:
    """What each of some trials of the same settings and seed comes to, with its place, as it comes to it."""
    if stack_size(len(seen.graph.entities), asked[0][0].settings) > 1:
        yield from run_side_by_side(asked, seen)
    else:
        for place, (task, outside) in enumerate(asked):
            yield place, run_alone(task, seen, outside)


@dataclass(slots=True, eq=False)
class Training:
    """A trial under way: where it is, and what it has cost in seconds."""

    place: int
    task: Task
    outside: Outside
    state: State
    keeper: Keeper
    seconds: float = 0.0

    def rank(self) -> tuple[int, int]:
        """What the trainings of a stack have in common."""
        return self.state.epochs, self.task.trial.structure.parts

    def learn(self, after: State, seen: SearchGraph) -> bool:
        """Take on the state after another epoch; whether its loss and weights are finite."""
        if has_diverged(after):
            return False
        settings = replace(self.task.settings, epochs=self.task.trial.epochs)

        def validate(weights: Weights) -> float:
            return valid_mrr(Model(self.task.trial.structure, *weights, settings.reciprocal), seen, settings)

        self.state = validated(averaged(after, settings), settings, validate)
        return True

    def record(self, failure: str = "") -> Record:
        return record_of(self.task.trial, self.state, failure, self.seconds)


def run_side_by_side(asked: Asked, seen: SearchGraph) -> Iterator[tuple[int, Record]]:
    """The trials as a stack: those that have come least far go on until they are level with the others."""
    refuse_empty(seen.graph)
    first, outside = asked[0]
    began = outside.clock()
    under_way = [begun(place, task, outside, seen) for place, (task, outside) in enumerate(asked)]
    run = epoch_of_many(
        seen.graph,
        first.settings,
        seed=first.trial.seed,
        device=torch.device(outside.device),
        clock=outside.clock,
    )
    for training in under_way:
        training.seconds = (outside.clock() - began) / len(under_way)
    while True:
        over = [training for training in under_way if is_over(training.state, training.task)]
        for training in over:
            yield training.place, training.record()
        under_way = [training for training in under_way if training not in over]
        if not under_way:
            return
        began = outside.clock()
        least = min(training.rank() for training in under_way)
        some = [training for training in under_way if training.rank() == least]
        after = run(
            [training.task.trial.structure for training in some], [training.state for training in some]
        )
        well = [training.learn(state, seen) for training, state in zip(some, after, strict=True)]
        seconds = (outside.clock() - began) / len(some)
        for training, fine in zip(some, well, strict=True):
            training.seconds += seconds
            if not fine:
                under_way.remove(training)
                yield training.place, training.record(divergence(training.state, training.outside))
        some = [training for training in some if training in under_way]
        answers = [training.outside.heard(training.state.curve[-1]) for training in some]  # all are told
        goes_on = all(answers)
        for training in some:
            training.keeper.keep(training.state, at_once=not goes_on)
        if not goes_on and not all(is_over(training.state, training.task) for training in under_way):
            raise Stopped


def begun(place: int, task: Task, outside: Outside, seen: SearchGraph) -> Training:
    """The trial at its longest usable state, or at its start."""
    refuse_odd_dimension(task.settings.dimension, task.trial.structure.parts)
    found = saved_state(task, outside.note)
    usable = found is not None and can_serve(found, task)
    state = found if found is not None and usable else start(seen.graph, task.settings, task.trial.seed)
    return Training(
        place, task, outside, moved(state, torch.device(outside.device)), Keeper.of(task, found, outside)
    )
