"""Hyper-parameters for a structure (Sec. V-A2): Optuna's TPE over trainings, judged by validation MRR.

The finished trials of a study are its state: the next trial follows from them and the seed alone. So a
tuning that was cut anywhere goes on with the trial that was cut, and no test triple is ever seen.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.exceptions import TrialPruned
from optuna.trial import TrialState

from autosf.embedding.settings import TrainingSettings, refuse_odd_dimension
from autosf.embedding.training import train
from autosf.errors import UserError
from autosf.evaluation.metrics import summarise
from autosf.evaluation.sampled_ranking import ranker
from autosf.graph.known_answers import known_answers
from autosf.runs.ranges import OneOf, distribution, starts, tuning_ranges, with_values
from autosf.runs.shared_graph import without_test
from autosf.runs.study import finished_trials, open_study

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from optuna.trial import FrozenTrial, Trial

    from autosf.algebra.structure import Structure
    from autosf.embedding.model import Model
    from autosf.embedding.state import State
    from autosf.embedding.training import Trained
    from autosf.evaluation.ranking import Ranks
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.ranges import Range

SAMPLED_AT_RANDOM = 8  # trials before TPE has enough to go by
NEVER_STOPPED = 4  # trials whose curves must be there before another is measured by them
WARM_UP = 0.2  # of the epochs, in which no trial is stopped


@dataclass(frozen=True, slots=True)
class Attempt:
    """A trial that was trained to its end."""

    trial: int  # its number in the study, as the dashboard shows it
    settings: TrainingSettings
    valid_mrr: float
    epochs: int
    best_epoch: int


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best trial; `trials` counts the finished ones, `stopped` those of them that were stopped early."""

    best: Attempt
    trials: int
    stopped: int
    ending: str  # "all trials" or "out of time"

    @property
    def settings(self) -> TrainingSettings:
        return self.best.settings


@dataclass(frozen=True, slots=True)
class Progress:
    """A tuning after an epoch of its current trial; without a current one, at its start or after a trial."""

    trials: int
    best: Attempt | None
    settings: TrainingSettings | None = None  # of the current trial
    epoch: int = 0
    valid_mrr: float | None = None  # the current trial's last


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """What all trials share."""

    graph: KnowledgeGraph  # without a test split
    ranked: Callable[[Model], Ranks]
    structure: Structure
    settings: TrainingSettings
    ranges: Mapping[str, Range]
    seed: int
    device: str
    clock: Callable[[], float]
    out_of_time: Callable[[], bool]
    watch: Callable[[Progress], None]

    def identity(self) -> dict[str, Any]:
        """What must be the same for a study to be continued."""
        return {
            "graph": self.graph.digest,
            "structure": str(self.structure),
            "settings": self.settings.as_dict(),
            "ranges": {name: asdict(wanted) for name, wanted in self.ranges.items()},
            "seed": self.seed,
        }

    def validate(self, model: Model) -> float:
        return summarise(self.ranked(model)).mrr


class _OutOfTimeError(Exception):
    """The budget ended within a trial."""


def tune(
    graph: KnowledgeGraph,
    structure: Structure,
    settings: TrainingSettings,
    *,
    seed: int,
    clock: Callable[[], float],
    trials: int | None = None,
    ranges: Mapping[str, Range] | None = None,
    study_file: Path | None = None,
    out_of_time: Callable[[], bool] = lambda: False,
    watch: Callable[[Progress], None] = lambda _: None,
    device: str = "cpu",
) -> Tuned:
    """The settings with the highest validation MRR among `trials` finished ones, or as many as time allows.

    The first trial is `settings`, the second the defaults of what is tuned. With a file the study is kept
    there and, if one is there already, continued; what was cut within a trial starts that trial again.
    """
    seen = without_test(graph)
    chosen = tuning_ranges(settings, {}) if ranges is None else ranges
    refuse_untunable(seen, structure, settings, chosen)
    ranked = ranker(seen.valid, known_answers(seen), settings.validation_candidates)
    task = _Task(seen, ranked, structure, settings, chosen, seed, device, clock, out_of_time, watch)
    with open_study(study_file, task.identity()) as study:
        study.pruner = optuna.pruners.MedianPruner(NEVER_STOPPED, round(WARM_UP * settings.epochs))
        ending = "all trials"
        watch(Progress(len(finished_trials(study)), best_attempt(study)))
        while trials is None or len(finished_trials(study)) < trials:
            if out_of_time():
                ending = "out of time"
                break
            run_trial(study, task)
        done = finished_trials(study)
        best = best_attempt(study) or untried(task, len(done))
    return Tuned(best, len(done), sum(trial.state == TrialState.PRUNED for trial in done), ending)


def untried(task: _Task, trials: int) -> Attempt:
    """What to go by when time was too short for one trial: the start. If trials failed, it is no good."""
    if trials:
        raise UserError("tuning: no trial's loss stayed finite; lower the range of learning_rate")
    return Attempt(0, starts(task.settings, task.ranges)[0].settings, 0.0, 0, 0)


def refuse_untunable(
    graph: KnowledgeGraph, structure: Structure, settings: TrainingSettings, ranges: Mapping[str, Range]
) -> None:
    """A tuning needs triples to validate on, and validations."""
    if not len(graph.valid):
        raise UserError(f"{graph.name}: expected validation triples to tune by, found none")
    if not settings.validate_every or not settings.epochs:
        raise UserError("tuning needs validations: expected validate_every and epochs from 1, found 0")
    dimensions = ranges.get("dimension", OneOf((settings.dimension,)))
    for dimension in dimensions.values if isinstance(dimensions, OneOf) else ():
        refuse_odd_dimension(dimension, structure.parts)


def run_trial(study: optuna.Study, task: _Task) -> None:
    """Ask for a trial, train it and tell what it came to."""
    trial, settings = next_trial(study, task)
    with told_if_cut(study, trial):
        trained = train(
            task.graph,
            task.structure,
            settings,
            seed=task.seed,
            clock=task.clock,
            device=task.device,
            validate=task.validate,
            watch=follower(study, trial, settings, task),
        )
        tell(study, trial, trained)
    done = finished_trials(study)
    task.watch(Progress(len(done), best_attempt(study)))


def next_trial(study: optuna.Study, task: _Task) -> tuple[Trial, TrainingSettings]:
    """The trial that follows from the finished ones and the seed: a start, or what TPE samples."""
    number, first = len(finished_trials(study)), starts(task.settings, task.ranges)
    own_seed = int(np.random.SeedSequence((task.seed, number)).generate_state(1)[0])
    study.sampler = optuna.samplers.TPESampler(n_startup_trials=SAMPLED_AT_RANDOM, seed=own_seed)
    if number < len(first):
        study.enqueue_trial(first[number].point)
    trial = study.ask({name: distribution(wanted) for name, wanted in task.ranges.items()})
    settings = first[number].settings if number < len(first) else with_values(task.settings, trial.params)
    trial.set_user_attr("settings", settings.as_dict())
    return trial, settings


def follower(
    study: optuna.Study, trial: Trial, settings: TrainingSettings, task: _Task
) -> Callable[[State], None]:
    """What sees every epoch of a trial, and ends it when it is out of time or behind the others."""
    trials, best = len(finished_trials(study)), best_attempt(study)

    def follow(state: State) -> None:
        epoch = state.curve[-1]
        last = next((e.valid_mrr for e in reversed(state.curve) if e.valid_mrr is not None), None)
        task.watch(Progress(trials, best, settings, epoch.number, last))
        if epoch.valid_mrr is not None:
            trial.report(epoch.valid_mrr, epoch.number)
            if trial.should_prune():
                raise TrialPruned
        if task.out_of_time() and epoch.number < settings.epochs:
            raise _OutOfTimeError

    return follow


@contextmanager
def told_if_cut(study: optuna.Study, trial: Trial) -> Iterator[None]:
    """A trial that is stopped as a bad one counts; one that time or Ctrl-C cut does not, and comes again."""
    try:
        yield
    except TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
    except _OutOfTimeError:
        study.tell(trial, state=TrialState.FAIL)
    except KeyboardInterrupt:
        study.tell(trial, state=TrialState.FAIL, skip_if_finished=True)
        raise


def tell(study: optuna.Study, trial: Trial, trained: Trained) -> None:
    """A training's best validation to the study; one that diverged is a bad trial."""
    best = trained.state.best
    if trained.ending == "interrupted":
        raise KeyboardInterrupt
    if trained.ending == "diverged" or best is None:
        raise TrialPruned
    trial.set_user_attr("epochs", trained.state.epochs)
    trial.set_user_attr("best_epoch", best.number)
    trial.set_user_attr("train_seconds", trained.train_seconds)
    study.tell(trial, best.valid_mrr)


def best_attempt(study: optuna.Study) -> Attempt | None:
    """The finished trial with the highest MRR, the first among equals; None before one has ended."""
    done: list[FrozenTrial] = [t for t in finished_trials(study) if t.state == TrialState.COMPLETE]
    if not done:
        return None
    best = max(done, key=lambda trial: trial.values[0])
    facts = best.user_attrs
    settings = TrainingSettings().changed(facts["settings"])
    return Attempt(best.number, settings, best.values[0], facts["epochs"], facts["best_epoch"])
