"""An Optuna study of ours: in memory, or in an SQLite file that can be continued and that the dashboard opens."""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import optuna
from optuna.storages import InMemoryStorage, RDBStorage
from optuna.trial import TrialState
from sqlalchemy.exc import DatabaseError

from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError, quoted
from autosf.runs.ledger import held
from autosf.whole import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from optuna.trial import FrozenTrial

NAME, LOCK = "tuning", "tuning.lock"
# What is too long to be told.
TOO_LONG = {
    "graph": "another graph",
    "structure": "another structure",
    "ranges": "other ranges",
    "settings": "other settings",
}
FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


@contextmanager
def open_study(file: Path | None, identity: Mapping[str, Any]) -> Iterator[optuna.Study]:
    """The study of the file, or a new one; one of another identity, or that another process has open, is refused.

    Trials that a dead process left unfinished are marked as failed.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # else it tells every step on stderr
    if file is None:
        with in_storage(InMemoryStorage(), file, identity) as study:
            yield study
        return
    make_folder(file.parent)
    with held(file.with_name(LOCK), "tuning"), in_storage(opened(file), file, identity) as study:
        yield study


@contextmanager
def in_storage(
    storage: RDBStorage | InMemoryStorage, file: Path | None, identity: Mapping[str, Any]
) -> Iterator[optuna.Study]:
    """The storage's study, made where there is none."""
    try:
        study = optuna.create_study(
            storage=storage, study_name=NAME, direction="maximize", load_if_exists=True
        )
        refuse_other(file, study.user_attrs, identity)
        for name, value in identity.items():
            study.set_user_attr(name, value)
        for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)):
            storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
        yield study
    finally:
        if isinstance(storage, RDBStorage):
            storage.remove_session()
            storage.engine.dispose()


def opened(file: Path) -> RDBStorage:
    """The file's storage, made where there is none."""
    try:
        return RDBStorage(f"sqlite:///{file}", engine_kwargs={"creator": lambda: connected(file)})
    except DatabaseError as error:
        raise UserError(f"{quoted(file)}: expected an Optuna study, found {error.orig}") from error


def connected(file: Path) -> sqlite3.Connection:
    """A connection whose commits do not wait for the disk: what a killed process wrote is still there.

    A trial commits about 25 times; with SQLite's defaults these took 9 ms each, more than a small training.
    """
    connection = sqlite3.connect(file, timeout=60, check_same_thread=False)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = normal")
    return connection


def refuse_other(file: Path | None, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """A study goes on with what it began with."""
    for name, value in wanted.items():
        now = json.loads(json.dumps(value))
        then = found.get(name, now)
        if name == "settings":  # a setting that came later was its default until then
            then = TrainingSettings().as_dict() | then
        if then == now:
            continue
        raise UserError(
            f"{quoted(file)}: the tuning there began with {told_difference(name, then, now)};"
            " go on with what it began with, or choose another folder"
        )


def told_difference(name: str, then: Any, now: Any) -> str:
    """What a study began with and what is wanted now, where they differ, in words."""
    if name == "settings" and (key := next((key for key in now if then[key] != now[key]), "")):
        name, then, now = key, then[key], now[key]
    return TOO_LONG.get(name, f"{name} {then}, not {now}")


def finished_trials(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that count, in their order."""
    return study.get_trials(deepcopy=False, states=FINISHED)
