"""The ledger is a run's state: every finished trial is a row, every failed attempt and turn of events another.

SQLite with a write-ahead log: a row that was added survives a kill at any moment, and readers come and go
while the one writer writes. Adding a row twice changes nothing. Only a power cut may cost the last rows, which are
then trained again to the same bits; to wait for the disk would take 4 ms a row instead of 0.25.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from autosf.algebra.structure import from_json
from autosf.errors import UserError, shown
from autosf.runs.task import DIVERGED, Key, curve_of
from autosf.search.record import Record, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

APPLICATION = 0x41534654  # what says in the file's header that it is a ledger
VERSION = 2
SCHEMA = f"""
BEGIN;
CREATE TABLE trials (
    graph TEXT NOT NULL, structure TEXT NOT NULL, settings TEXT NOT NULL,
    epochs INTEGER NOT NULL, seed INTEGER NOT NULL,
    valid_mrr REAL NOT NULL, trained_epochs INTEGER NOT NULL, curve TEXT NOT NULL, seconds REAL NOT NULL,
    failure TEXT NOT NULL, attempts INTEGER NOT NULL, finished_at REAL NOT NULL,
    began_at REAL,
    UNIQUE (graph, structure, settings, epochs, seed)
);
CREATE TABLE attempts (
    structure TEXT NOT NULL, epochs INTEGER NOT NULL, seed INTEGER NOT NULL,
    reason TEXT NOT NULL, at REAL NOT NULL
);
CREATE TABLE events (what TEXT NOT NULL, detail TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE sessions (seconds REAL NOT NULL);
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {VERSION};
COMMIT;
"""
SINCE_VERSION_1 = f"""
BEGIN IMMEDIATE;
ALTER TABLE trials ADD COLUMN began_at REAL;
PRAGMA user_version = {VERSION};
COMMIT;
"""
RECORDS = "SELECT structure, epochs, seed, valid_mrr, trained_epochs, curve, seconds, failure FROM trials "
ASKED = "asked"  # an event
OF_KEY = "WHERE graph = ? AND structure = ? AND settings = ? AND epochs = ? AND seed = ?"


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling of a run: what, with its detail, and when, in seconds since 1970."""

    what: str
    detail: str
    at: float


class Ledger:
    """Owns the connection to a run's ledger; `now` tells the time of day that rows are stamped with."""

    def __init__(self, path: Path, connection: sqlite3.Connection, now: Callable[[], float]) -> None:
        self._path, self._connection, self._now = path, connection, now
        self._session: int | None = None

    def close(self) -> None:
        self._connection.close()

    def add(self, key: Key, record: Record, attempts: int = 1, elapsed: float | None = None) -> None:
        """Keep what a trial came to, `elapsed` seconds after it was begun; a key that is there already stays."""
        now = self._now()
        began = None if elapsed is None else now - elapsed
        result = (record.valid_mrr, record.epochs, json.dumps(record.curve), record.seconds, record.failure)
        self._write(
            "INSERT INTO trials VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
            (*astuple(key), *result, attempts, now, began),
        )

    def add_attempt(self, trial: Trial, reason: str) -> None:
        """Keep why an attempt at a trial failed, or what was odd about it."""
        self._write(
            "INSERT INTO attempts VALUES (?,?,?,?,?)",
            (str(trial.structure), trial.epochs, trial.seed, reason, self._now()),
        )

    def add_event(self, what: str, detail: str) -> None:
        self._write("INSERT INTO events VALUES (?,?,?)", (what, detail, self._now()))

    def ask(self, wish: Mapping[str, Any]) -> None:
        """Keep what a run is asked for now in place of what its plan says."""
        self.add_event(ASKED, json.dumps(wish))

    def asked(self) -> dict[str, Any]:
        """What was asked for since the run began, of each name the last."""
        wishes = [event.detail for event in self.events() if event.what == ASKED]
        try:
            return {name: value for wish in wishes for name, value in json.loads(wish).items()}
        except (ValueError, AttributeError) as error:
            raise UserError(
                f"{shown(self._path)}: expected what was asked for, found a damaged row ({error})"
            ) from None

    def forget_failures(self) -> int:
        """Let trials be tried again that failed without diverging, which would be the same; how many there are."""
        condition = "failure != '' AND failure NOT LIKE ? || '%'"
        ((count,),) = self._read(f"SELECT count(*) FROM trials WHERE {condition}", (DIVERGED,))  # noqa: S608
        self._write(f"DELETE FROM trials WHERE {condition}", (DIVERGED,))  # noqa: S608 - the condition is ours
        return int(count)

    def spend(self, seconds: float) -> None:
        """Keep how long this session has run so far."""
        if self._session is None:
            self._session = self._write("INSERT INTO sessions VALUES (0)", ())
        self._write("UPDATE sessions SET seconds = ? WHERE rowid = ?", (seconds, self._session))

    def known(self, keys: Iterable[Key]) -> dict[Key, Record]:
        """The records of those keys that have one."""
        found = {}
        for key in keys:
            for row in self._read(RECORDS + OF_KEY, astuple(key)):
                found[key] = self._record(row)
        return found

    def records(self) -> list[Record]:
        """All records in the order they were added, each with its canonical structure."""
        return [self._record(row) for row in self._read(RECORDS + "ORDER BY rowid")]

    def attempts(self) -> list[tuple[Trial, str]]:
        """Every failed attempt with its reason, in order."""
        rows = self._read("SELECT structure, epochs, seed, reason FROM attempts ORDER BY rowid")
        return [(Trial(from_json(structure), epochs, seed), why) for structure, epochs, seed, why in rows]

    def events(self) -> list[Event]:
        return [Event(*row) for row in self._read("SELECT what, detail, at FROM events ORDER BY rowid")]

    def spans(self) -> list[tuple[float, float]]:
        """When each trial's last attempt began and ended, in seconds since 1970, in the order they ended.

        Older ledgers do not tell when: there a trial has taken as long as its own seconds, its share of a stack's.
        """
        ((version,),) = self._read("PRAGMA user_version")
        began = "finished_at - seconds" if version < VERSION else "coalesce(began_at, finished_at - seconds)"
        rows = self._read(f"SELECT {began}, finished_at FROM trials ORDER BY rowid")  # noqa: S608 - ours
        return [(float(began), float(ended)) for began, ended in rows]

    def seconds_spent(self) -> float:
        """How long all sessions have run so far, this one included."""
        ((seconds,),) = self._read("SELECT coalesce(sum(seconds), 0.0) FROM sessions")
        return float(seconds)

    def _record(self, row: tuple[Any, ...]) -> Record:
        """The row's record; one that nobody of ours has written is told."""
        try:
            return record_of(row)
        except (ValueError, TypeError, UserError) as error:
            raise UserError(
                f"{shown(self._path)}: expected a trial's row, found a damaged one ({error})"
            ) from error

    def _write(self, statement: str, values: tuple[object, ...]) -> int | None:
        with told(self._path):
            return self._connection.execute(statement, values).lastrowid

    def _read(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with told(self._path):
            return self._connection.execute(statement, values).fetchall()


def create_ledger(path: Path) -> None:
    """Make an empty ledger."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(SCHEMA)
    except sqlite3.Error as error:
        raise UserError(f"{shown(path)}: cannot write the ledger ({error})") from error


@contextmanager
def opened_ledger(path: Path, now: Callable[[], float], writes: bool = False) -> Iterator[Ledger]:
    """The ledger, to be read by anyone at any time, or written by the one driver that holds the run."""
    if not path.is_file():
        raise UserError(f"{shown(path)}: there is no ledger; name the folder of a run")
    with told(path, writes):
        connection = connected(path, writes)
    ledger = Ledger(path, connection, now)
    try:
        with told(path, writes):
            version = refuse_foreign(path, connection)
            if writes and version < VERSION:
                connection.executescript(SINCE_VERSION_1)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA query_only = {0 if writes else 1}")
        yield ledger
    finally:
        ledger.close()


def connected(path: Path, writes: bool) -> sqlite3.Connection:
    """A connection to the file.

    Even to read, SQLite writes an index beside it. Where it may not, as in an archive or a folder of somebody
    else's, the file is read as it is, if all rows are in it.
    """
    try:
        return connected_as(path, "")
    except sqlite3.OperationalError:
        if writes:
            raise
        log = path.with_name(f"{path.name}-wal")
        has_log = log.is_file() and log.stat().st_size > 0
        return connected_as(path, "?mode=ro" if has_log else "?mode=ro&immutable=1")


def connected_as(path: Path, way: str) -> sqlite3.Connection:
    """A connection that has read something; without an isolation level each statement is a transaction."""
    place = f"{path.resolve().as_uri()}{way}"
    connection = sqlite3.connect(place, uri=True, isolation_level=None, timeout=30)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def refuse_foreign(path: Path, connection: sqlite3.Connection) -> int:
    """The ledger's version, if the file says that it is one this program reads, and SQLite finds it whole."""
    ((application,),) = connection.execute("PRAGMA application_id").fetchall()
    ((version,),) = connection.execute("PRAGMA user_version").fetchall()
    if application != APPLICATION:
        raise UserError(f"{shown(path)}: expected a ledger of autosf, found another database")
    if version > VERSION:
        raise UserError(f"{shown(path)}: written by a newer autosf (version {version}); update autosf")
    ((verdict,),) = connection.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise sqlite3.DatabaseError(" ".join(str(verdict).split()))
    return int(version)


@contextmanager
def told(path: Path, writes: bool = True) -> Iterator[None]:
    """Faults of the file or the disk as one line; whatever was added before is safe."""
    try:
        yield
    except sqlite3.OperationalError as error:
        cure = (
            "cannot go on ({}); all rows before are safe: mend it, then resume the run"
            if writes
            else "cannot be read ({}); if its folder cannot be written to, copy the run elsewhere"
        )
        raise UserError(f"{shown(path)}: {cure.format(error)}") from error
    except sqlite3.DatabaseError as error:
        raise UserError(
            f"{shown(path)}: expected a ledger, found a damaged or other file ({error})"
        ) from error


def record_of(row: tuple[Any, ...]) -> Record:
    structure, epochs, seed, valid_mrr, trained, curve, seconds, failure = row
    trial = Trial(from_json(structure), epochs, seed)
    return Record(trial, float(valid_mrr), trained, curve_of(json.loads(curve)), float(seconds), failure)


@contextmanager
def held(path: Path, what: str = "search") -> Iterator[None]:
    """Be the only driver: the lock is the process's own, so that it ends with it, however it ends."""
    with path.open("a+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(20).decode(errors="replace") or "unknown"
            raise UserError(
                f"{shown(path.parent)}: a {what} is running here already, as process {holder};"
                " let it end, or stop it first"
            ) from None
        file.truncate(0)
        with suppress(OSError):  # on a full disk the lock still holds, only nameless
            file.write(str(os.getpid()).encode())
        yield


def is_held(path: Path) -> bool:
    """Whether a driver is at work. Its number is looked at first, so that asking disturbs nobody who starts."""
    try:
        with path.open("rb") as file:
            os.kill(int(file.read(20)), 0)
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except PermissionError:  # of another user, whose driver it may be
        return True
    except (OSError, ValueError):
        return False
    return False
