"""The ledger keeps what it was given, once, whatever happens to the process or the disk."""

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autosf.algebra.invariance import images
from autosf.algebra.zoo import named
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.runs.ledger import create_ledger, held, is_held, opened_ledger
from autosf.runs.task import key_of
from autosf.search.record import Record, Trial

SETTINGS = TrainingSettings(dimension=8)
COMPLEX = named("complex").structure


def noon() -> float:
    return 43_200.0


def key(trial: Trial, settings=SETTINGS, graph="a graph"):
    return key_of(trial, graph, settings)


def recorded(epochs=10, seed=0, mrr=0.5) -> Record:
    return Record(Trial(COMPLEX, epochs, seed), mrr, epochs, ((epochs, mrr),), 1.5)


@pytest.fixture
def path(tmp_path):
    create_ledger(tmp_path / "ledger.sqlite")
    return tmp_path / "ledger.sqlite"


@given(mrrs=st.lists(st.floats(0, 1), min_size=1, max_size=4), order=st.randoms(use_true_random=False))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_come_back_to_the_bit_and_adding_again_changes_nothing(tmp_path, mrrs, order):
    path = Path(tempfile.mkdtemp(dir=tmp_path)) / "ledger.sqlite"
    create_ledger(path)
    records = [recorded(seed=seed, mrr=mrr) for seed, mrr in enumerate(mrrs)]
    with opened_ledger(path, noon, writes=True) as ledger:
        for record in records:
            ledger.add(key(record.trial), record)
        for record in order.sample(records, len(records)):
            ledger.add(key(record.trial), replace(record, valid_mrr=0.123, failure="another"))
        asked = [key(record.trial) for record in records]
        found = ledger.known([*asked, key(Trial(COMPLEX, 99, 0))])
        assert list(found) == asked
    with opened_ledger(path, noon) as ledger:
        for record, stored in zip(records, ledger.records(), strict=True):
            assert replace(stored, trial=record.trial) == record


def test_equivalent_structures_have_one_key_and_all_else_has_its_own():
    trial = Trial(COMPLEX, 10, 0)
    image = list(images(COMPLEX, "extended"))[12_345]
    assert image != COMPLEX
    assert key(replace(trial, structure=image)) == key(trial)
    assert key(trial, replace(SETTINGS, epochs=99)) == key(trial)
    others = [
        key(replace(trial, structure=named("simple").structure)),
        key(replace(trial, epochs=11)),
        key(replace(trial, seed=1)),
        key(trial, replace(SETTINGS, patience=1)),
        key(trial, graph="another"),
    ]
    assert len({key(trial), *others}) == 6


def test_a_row_that_was_added_survives_a_kill(path):
    script = f"""
import os, pathlib, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_ledger import key, noon, opened_ledger, recorded
with opened_ledger(pathlib.Path({str(path)!r}), noon, writes=True) as ledger:
    ledger.add(key(recorded().trial), recorded())
    os.kill(os.getpid(), 9)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -9
    with opened_ledger(path, noon) as ledger:
        assert len(ledger.records()) == 1


def test_readers_see_each_row_while_the_writer_goes_on(path):
    with opened_ledger(path, noon, writes=True) as writer, opened_ledger(path, noon) as reader:
        for seed in range(3):
            writer.add(key(Trial(COMPLEX, 10, seed)), recorded(seed=seed))
            assert len(reader.records()) == seed + 1


def test_a_reader_cannot_write(path):
    with opened_ledger(path, noon) as reader, pytest.raises(UserError, match="readonly"):
        reader.add_event("what", "detail")


def test_failed_attempts_events_and_time_are_kept(path):
    with opened_ledger(path, noon, writes=True) as ledger:
        ledger.add_attempt(Trial(COMPLEX, 10, 3), "was killed")
        ledger.add_event("stopped", "out of time")
        ledger.spend(2.0)
        ledger.spend(5.0)
    with opened_ledger(path, noon, writes=True) as ledger:
        ledger.spend(1.5)
        assert ledger.seconds_spent() == 6.5
        assert ledger.attempts() == [(Trial(COMPLEX, 10, 3), "was killed")]
        assert [(event.what, event.detail, event.at) for event in ledger.events()] == [
            ("stopped", "out of time", 43_200.0)
        ]


def test_a_trial_lies_between_its_beginning_and_its_end_however_small_its_share(path):
    with opened_ledger(path, noon, writes=True) as ledger:
        ledger.add(key(Trial(COMPLEX, 10, 0)), recorded(seed=0), elapsed=60.0)
        ledger.add(key(Trial(COMPLEX, 10, 1)), recorded(seed=1))
        assert ledger.spans() == [(43_140.0, 43_200.0), (43_198.5, 43_200.0)]
        assert [record.seconds for record in ledger.records()] == [1.5, 1.5]


def of_version_1(path: Path) -> None:
    """Make the ledger as it was before it knew when trials begin, with a record."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE trials DROP COLUMN began_at")
        connection.execute("PRAGMA user_version = 1")
        connection.execute(
            "INSERT INTO trials VALUES ('a graph', ?, '', 10, 0, 0.5, 10, '[]', 1.5, '', 1, 43200.0)",
            (str(COMPLEX),),
        )
        connection.commit()


def test_an_older_ledger_is_read_as_it_is_and_goes_on(path):
    of_version_1(path)
    with opened_ledger(path, noon) as before, opened_ledger(path, noon) as reader:
        assert before.spans() == [(43_198.5, 43_200.0)]
        records = before.records()
        with opened_ledger(path, noon, writes=True) as ledger:
            ledger.add(key(Trial(COMPLEX, 10, 1)), recorded(seed=1), elapsed=60.0)
        for one in (before, reader):
            assert one.spans() == [(43_198.5, 43_200.0), (43_140.0, 43_200.0)]
            assert one.records()[:1] == records


def test_failures_are_forgotten_but_for_divergence(path):
    reasons = [
        "",
        "worker 0 was killed (SIGKILL; out of memory?)",
        "diverged in epoch 2: the loss is not finite",
    ]
    with opened_ledger(path, noon, writes=True) as ledger:
        for seed, why in enumerate(reasons):
            ledger.add(key(Trial(COMPLEX, 10, seed)), replace(recorded(seed=seed), failure=why))
        assert ledger.forget_failures() == 1
        assert [record.trial.seed for record in ledger.records()] == [0, 2]
        assert ledger.forget_failures() == 0


def test_foreign_damaged_and_absent_files_are_refused_in_a_line(path, tmp_path):
    foreign = tmp_path / "foreign.sqlite"
    sqlite3.connect(foreign).execute("CREATE TABLE t (a)").connection.close()
    text = tmp_path / "text.sqlite"
    text.write_text("no database at all, but long enough to have a header of its own" * 50)
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * 4096 + whole[8192:])
    for file, words in (
        (foreign, "another database"),
        (text, "damaged or other file"),
        (path, "damaged or other file"),
        (tmp_path / "none", "no ledger"),
    ):
        with pytest.raises(UserError, match=words) as caught, opened_ledger(file, noon):
            pass
        assert "\n" not in str(caught.value)


@contextmanager
def no_file_above(size: int):
    """As a full disk: files cannot grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def add_many(ledger) -> None:
    for seed in range(1, 50):
        ledger.add(key(Trial(COMPLEX, 10, seed)), recorded(seed=seed))


def test_a_full_disk_is_told_in_a_line_and_later_rows_are_kept_when_there_is_room(path):
    with opened_ledger(path, noon, writes=True) as ledger:
        ledger.add(key(recorded().trial), recorded())
        with no_file_above(1 << 14), pytest.raises(UserError, match="all rows before are safe"):
            add_many(ledger)
        ledger.add(key(Trial(COMPLEX, 10, 99)), recorded(seed=99))
        seeds = [record.trial.seed for record in ledger.records()]
    assert seeds[0] == 0
    assert seeds[-1] == 99
    with opened_ledger(path, noon) as again:
        assert [record.trial.seed for record in again.records()] == seeds


def test_a_second_driver_is_refused_by_the_number_of_the_first(tmp_path):
    with held(tmp_path / "driver.lock"):
        for _ in range(2):
            with pytest.raises(UserError, match=f"process {os.getpid()};"), held(tmp_path / "driver.lock"):
                pass
    with held(tmp_path / "driver.lock"):
        pass


def test_whether_a_driver_is_at_work_can_be_asked_without_disturbing_it(tmp_path):
    lock = tmp_path / "driver.lock"
    assert not is_held(lock)
    with held(lock):
        assert is_held(lock)
        with pytest.raises(UserError, match="running here already"), held(lock):
            pass
    assert not is_held(lock)
    with held(lock):
        pass
