"""Trainings and searches told to TensorBoard or MLflow: one small interface, two that fill it, off by default.

A tracker that cannot be opened is the user's mistake and stops nothing but the start; one that fails later is
told once and left alone, since no hour of training is worth less than its curve.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.errors import UserError, did_you_mean, lacks_extra, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from autosf.embedding.state import State
    from autosf.search.record import Record

    Log = Callable[[int, Mapping[str, float | None]], None]

EXPERIMENT = "autosf"  # of MLflow, where runs of all graphs stand side by side


@dataclass(frozen=True, slots=True)
class Tracker:
    """Who is told: words that describe the work, numbers after each step, and at the end whether it came to it."""

    words: Callable[[Mapping[str, Any]], None]
    numbers: Log
    close: Callable[[bool], None]


NOBODY = Tracker(lambda _: None, lambda _, __: None, lambda _: None)


def tensorboard(folder: str, name: str) -> Tracker:
    """Event files in a folder of that name below `folder`."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise lacks_extra("tracking with TensorBoard", "tensorboard") from None

    try:
        writer = SummaryWriter(str(Path(folder) / name))
    except OSError as error:
        raise UserError(f"{quoted(folder)}: cannot write there ({error.strerror or error})") from None

    said: dict[str, Any] = {}

    def words(described: Mapping[str, Any]) -> None:
        said.update(described)
        rows = [f"| {key} | {value} |" for key, value in said.items()]
        writer.add_text("settings", "\n".join(["| | |", "| --- | --- |", *rows]), len(said))

    def numbers(step: int, values: Mapping[str, float | None]) -> None:
        for key, value in values.items():
            if value is not None:
                writer.add_scalar(key, value, step)
        writer.flush()

    return Tracker(words, numbers, lambda _: writer.close())


def mlflow(address: str, name: str) -> Tracker:
    """A run of that name in the experiment `autosf` of a tracking server or database."""
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise lacks_extra("tracking with MLflow", "mlflow") from None

    try:
        client = MlflowClient(tracking_uri=address)
        experiment = client.get_experiment_by_name(EXPERIMENT)
        place = experiment.experiment_id if experiment else client.create_experiment(EXPERIMENT)
        run = client.create_run(place, run_name=name).info.run_id
    except (MlflowException, OSError) as error:
        raise UserError(f"MLflow, {quoted(address)}: {quoted(error, 200)}") from None

    def words(described: Mapping[str, Any]) -> None:
        client.log_batch(run, params=[Param(key, str(value)[:6000]) for key, value in described.items()])

    def numbers(step: int, values: Mapping[str, float | None]) -> None:
        now = int(time.time() * 1000)
        told = {key: value for key, value in values.items() if value is not None and math.isfinite(value)}
        client.log_batch(run, [Metric(key, float(value), now, step) for key, value in told.items()])

    return Tracker(words, numbers, lambda done: client.set_terminated(run, "FINISHED" if done else "KILLED"))


TRACKERS: dict[str, Callable[[str, str], Tracker]] = {"tensorboard": tensorboard, "mlflow": mlflow}


def opened(wish: str, name: str) -> Tracker:
    """The tracker that the user names as KIND:PLACE."""
    kind, colon, place = wish.partition(":") if isinstance(wish, str) else ("", "", "")
    if kind not in TRACKERS or not colon or not place:
        hint = did_you_mean(kind, TRACKERS) if kind not in TRACKERS else ""
        raise UserError(f"track: expected tensorboard:FOLDER or mlflow:ADDRESS, found {quoted(wish)}{hint}")
    return TRACKERS[kind](place, name)


@contextmanager
def tracked(
    wishes: Sequence[str] | str,
    name: str,
    described: Mapping[str, Any],
    complain: Callable[[str], None] = lambda _: None,
) -> Iterator[Tracker]:
    """All trackers that were asked for as one, none of which can end the work; closed however that ends."""
    there: dict[str, Tracker] = {}

    def tell(act: Callable[[Tracker], None]) -> None:
        for wish, tracker in list(there.items()):
            try:
                act(tracker)
            except Exception as error:
                del there[wish]
                complain(f"{wish}: no longer tracked ({quoted(error, 200)})")

    whole = Tracker(
        words=lambda described: tell(lambda one: one.words(described)),
        numbers=lambda step, values: tell(lambda one: one.numbers(step, values)),
        close=lambda done: tell(lambda one: one.close(done)),
    )
    try:
        for wish in wishes if isinstance(wishes, Iterable) and not isinstance(wishes, str) else [wishes]:
            there[wish] = opened(wish, name)
        whole.words(described)
        yield whole
    except BaseException:
        whole.close(False)
        raise
    whole.close(True)


def epoch_log(
    tracker: Tracker, report: Callable[[State], None] = lambda _: None, prefix: str = ""
) -> Callable[[State], None]:
    """`report` of a training's states, which tells the tracker of the last epoch, too."""

    def both(state: State) -> None:
        report(state)
        last = state.curve[-1]
        values = {"loss": last.loss, "epoch_seconds": last.seconds, "valid_mrr": last.valid_mrr}
        tracker.numbers(last.number, {f"{prefix}{name}": value for name, value in values.items()})

    return both


def trial_log(
    tracker: Tracker, report: Callable[[Record], None] = lambda _: None, past: Sequence[Record] = ()
) -> Callable[[Record], None]:
    """`report` of a search's records, which tells the tracker, too: a step for each, those of the past counted."""
    values = [record.valid_mrr for record in past]

    def both(record: Record) -> None:
        report(record)
        values.append(record.valid_mrr)
        told = {
            "trial_valid_mrr": None if record.failed else record.valid_mrr,
            "best_valid_mrr": max(values),
            "trial_epochs": record.epochs,
            "trial_blocks": record.trial.structure.blocks,
            "trial_seconds": record.seconds,
        }
        tracker.numbers(len(values), told)

    return both
