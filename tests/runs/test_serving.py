"""Whatever is killed, a resumed run comes to the records of one that nobody touched, and leaves no process."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.small_search import SETTINGS, STRUCTURES, halving, run_search, small_run, workers_of

from autosf.algebra.structure import from_cells
from autosf.algebra.zoo import ZOO, named
from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.runs.ledger import opened_ledger
from autosf.runs.run import Plan, create_run, open_run
from autosf.runs.serving import Outer, Service, full_training_seconds, serve, serve_asynchronously, timed
from autosf.runs.task import Task, task_as_json
from autosf.runs.worker_process import WorkerProcess
from autosf.runs.workers import Crew, Ears, Place, Workers
from autosf.search.asynchronous import asynchronous_free
from autosf.search.record import OUT_OF_TIME, OutOfTime, Record, Trial
from autosf.search.settings import SearchSettings
from autosf.search.verdict import verdict
from run_rows import failures, has_rows, rows, rows_of_untouched, wait_until

ROOT = Path(__file__).parents[2]
COLUMNS = {"head": 3000, "relation": 40, "tail": 3000}


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> dict:
    return rows_of_untouched(tmp_path_factory.mktemp("expected") / "run")


def begun(folder: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "benchmarks.small_search", str(folder), "seeds=1", *options]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def ended(driver: subprocess.Popen) -> str:
    """What a driver that was left alone said at its end."""
    return driver.communicate(timeout=120)[1]


def served(folder: Path, strategy, crew: Crew, **ears):
    run = open_run(folder) if (folder / "run.json").exists() else small_run(folder)
    service = Service(crew, keep=True, save_seconds=0.0)
    return serve(run, strategy, service, Outer(time.monotonic, time.time, **ears))


def test_a_killed_driver_leaves_no_process_and_changes_no_row(tmp_path, expected):
    folder = tmp_path / "run"
    driver = begun(folder, "workers=1")
    wait_until(lambda: has_rows(folder, 3))
    with pytest.raises(UserError, match=f"process {driver.pid};"):
        run_search(folder, workers=1)
    driver.kill()
    driver.communicate()
    wait_until(lambda: not workers_of(folder), 1.0)
    assert ended(begun(folder, "workers=1")) == ""
    assert rows(folder) == expected
    assert not workers_of(folder)
    assert list((folder / "checkpoints").iterdir()) == []


def test_only_short_trials_leave_a_state_for_others_to_go_on_from(tmp_path):
    folder, states = tmp_path / "run", []
    first, second = (named(name).structure for name in ("complex", "simple"))

    def rounds():
        yield [Trial(first, 2, 0), Trial(second, 2, 0)]
        yield [Trial(first, SETTINGS.epochs, 0)]
        return "both rounds"

    def finished(record):
        states.append((record.trial.epochs, len(list((folder / "checkpoints").glob("*.safetensors")))))

    served(folder, rounds(), Crew(1), finished=finished)
    assert states == [(2, 2), (2, 2), (SETTINGS.epochs, 1)]


def test_trials_side_by_side_are_all_under_way_from_their_common_beginning(tmp_path):
    """A trial's own seconds are its share; by the clock on the wall one worker took at least their sum."""

    def one_round():
        yield [Trial(named(name).structure, 40, 0) for name in STRUCTURES]
        return "one round"

    records, _ = served(tmp_path / "run", one_round(), Crew(1))
    with opened_ledger(tmp_path / "run" / "ledger.sqlite", time.time) as ledger:
        spans = ledger.spans()
    earliest, latest = min(began for began, _ in spans), max(ended for _, ended in spans)
    assert max(began for began, _ in spans) - earliest < 0.2 * (latest - earliest)
    assert latest - earliest >= sum(record.seconds for record in records)


@pytest.mark.slow
def test_five_kills_of_workers_and_of_the_driver_at_random_moments_change_no_row(tmp_path):
    folder, rng = tmp_path / "run", random.Random(5)
    for _ in range(5):
        driver = begun(folder, f"workers={rng.choice([1, 2])}", "attempts=9", "epochs=16")
        time.sleep(rng.uniform(0.3, 3.5))
        for worker in workers_of(folder)[:1]:
            os.kill(worker, signal.SIGKILL)
        time.sleep(rng.uniform(0.0, 2.0))
        driver.kill()
        driver.communicate()
        wait_until(lambda: not workers_of(folder), 1.0)
    assert ended(begun(folder, "workers=2", "epochs=16")) == ""
    assert rows(folder) == rows_of_untouched(tmp_path / "untouched", epochs=16)


@pytest.mark.slow
def test_a_stopped_worker_is_a_hang_and_is_replaced(tmp_path, expected):
    folder, stopped = tmp_path / "run", []

    def progress(_):
        if not stopped:
            stopped.extend(workers_of(folder))
            os.kill(stopped[0], signal.SIGSTOP)

    _, reason = served(folder, halving(seeds=1), Crew(1, hang_seconds=1.0), progress=progress)
    assert reason == "all rounds"
    assert rows(folder) == expected
    assert "was silent for" in failures(folder)[0]
    assert not Path(f"/proc/{stopped[0]}").exists()


@pytest.mark.slow
def test_a_first_validation_that_takes_longer_than_all_epochs_before_is_no_hang(tmp_path):
    rng = np.random.default_rng(0)
    triples = {
        split: pl.DataFrame({name: rng.integers(0, most, count) for name, most in COLUMNS.items()}).cast(
            pl.String
        )
        for split, count in {"train": 200, "valid": 200_000}.items()
    }
    columns = {split: tuple(frame.unique().get_columns()) for split, frame in triples.items()}
    graph = KnowledgeGraph.from_columns("slow to validate", columns)
    run = create_run(tmp_path / "run", graph, Plan(replace(SETTINGS, validate_every=3), {"strategy": "one"}))

    def one():
        yield [Trial(named("simple").structure, 6, 0)]
        return "done"

    patient = Service(Crew(1, hang_seconds=1.0), save_seconds=60.0)
    (record,), _ = serve(run, one(), patient, Outer(time.monotonic, time.time))
    assert (record.failure, record.epochs, failures(tmp_path / "run")) == ("", 6, [])


@pytest.mark.slow
def test_a_trial_whose_workers_die_twice_has_failed_and_the_search_goes_on(tmp_path, expected):
    folder, killed = tmp_path / "run", []

    def progress(told):
        if told.trial.seed == 99:
            killed.extend(workers_of(folder))
            os.kill(killed[-1], signal.SIGKILL)

    def strategy():
        poison, fine = Trial(named("complex").structure, 500, 99), Trial(named("simple").structure, 4, 0)
        records = yield [poison, fine, poison]
        assert [record.failed for record in records] == [True, False, True]
        return "the end"

    records, reason = served(folder, strategy(), Crew(1), progress=progress)
    assert reason == "the end"
    assert "was killed (SIGKILL" in records[0].failure
    assert len(set(killed)) == len(failures(folder)) == 2
    assert records[1].valid_mrr in {row[0] for row in expected.values()}
    assert len(rows(folder)) == 2


@pytest.mark.slow
def test_an_exception_in_a_trial_is_told_by_its_message(tmp_path):
    folder = tmp_path / "run"

    def strategy():
        (record,) = yield [Trial(from_cells([1, *[0] * 35]), 4, 0)]
        return record.failure

    _, failure = served(folder, strategy(), Crew(1))
    assert "multiple of the structure's 6 parts" in failure
    assert len(failures(folder)) == 2


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_an_error_with_its_reason(tmp_path):
    run = small_run(tmp_path / "run")
    (run.graph_folder / "train.npy").unlink()
    with pytest.raises(UserError, match=r"worker 0 cannot start: .*exit code 1.*train\.npy: missing"):
        served(run.folder, halving(seeds=1), Crew(1))


@pytest.mark.slow
def test_ctrl_c_ends_all_workers_and_changes_no_row(tmp_path, expected):
    folder = tmp_path / "run"
    driver = begun(folder, "workers=2")
    wait_until(lambda: has_rows(folder, 2))
    driver.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in ended(driver)
    assert not workers_of(folder)
    assert ended(begun(folder, "workers=2")) == ""
    assert rows(folder) == expected
    with opened_ledger(folder / "ledger.sqlite", time.time) as ledger:
        told = [(event.what, event.detail) for event in ledger.events()]
    assert told == [("began", ""), ("stopped", "interrupted"), ("began", ""), ("ended", "all rounds")]


def test_out_of_time_a_trial_stops_after_its_epoch_and_the_rest_of_the_budget_goes_on_from_there(tmp_path):
    run, epochs = small_run(tmp_path / "run", replace(SETTINGS, patience=0)), []

    def clock() -> float:
        return time.monotonic() + (1_000 if max(epochs, default=0) >= 5 else 0)

    def strategy():
        yield [Trial(named("simple").structure, 2, 0)]
        yield [Trial(named("complex").structure, 400, 0)]
        return "the end"

    outer = Outer(clock, time.time, progress=lambda told: epochs.append(told.epoch))
    service = Service(Crew(1), save_seconds=1e9)  # no checkpoint but that of the stop
    records, reason = serve(run, strategy(), replace(service, budget=900.0), outer)
    assert (len(records), reason) == (1, OUT_OF_TIME)
    assert not workers_of(run.folder)
    first = list(epochs)
    with opened_ledger(run.ledger, time.time) as ledger:
        assert 1_000 < ledger.seconds_spent() < 1_100
    assert serve(run, strategy(), replace(service, budget=900.0), outer) == (records, OUT_OF_TIME)
    assert epochs == first, "nothing is begun without time"
    (_, record), reason = serve(run, strategy(), replace(service, budget=1e6), outer)
    assert reason == "the end"
    assert record.epochs == 400
    assert epochs[len(first)] > first[-1], "no epoch is trained twice"
    assert epochs[2:] == sorted(set(epochs[2:])), "no epoch is trained twice"


def test_who_is_stopped_as_the_time_ends_goes_on_with_the_last_trials(tmp_path):
    """A new worker would take seconds to start, which the finals of a short budget do not have."""
    run, epochs, records = small_run(tmp_path / "run"), [], []
    settings = replace(SETTINGS, patience=0)
    long, last = (
        Task(Trial(structure, count, 0), run.graph, settings, str(run.folder / name))
        for structure, count, name in ((ZOO[0].structure, 100_000, "long"), (ZOO[1].structure, 4, "last"))
    )
    ears = Ears(lambda _task, record, *_: records.append(record), progress=epochs.append)
    with Workers(Place(run.graph_folder, run.logs, together=8), Crew(2), ears, time.monotonic) as workers:
        workers.add([long])
        while len(epochs) < 3:
            workers.turn()
        staff = workers_of(run.folder)
        workers.stop()
        assert (workers.open_tasks(), workers_of(run.folder)) == (0, staff)
        assert Path(long.checkpoint).is_file()
        workers.stop()  # of nobody
        workers.add([last])
        while workers.open_tasks():
            workers.turn()
        assert workers_of(run.folder) == staff
    assert [(record.trial, record.epochs, record.failure) for record in records] == [(last.trial, 4, "")]
    assert not workers_of(run.folder)


def test_a_worker_ends_with_its_pipe_where_no_kernel_ends_it(tmp_path):
    run, task = small_run(tmp_path / "run"), Trial(named("complex").structure, 100_000, 0)
    worker = WorkerProcess(0, run.graph_folder, 1, run.logs / "log")
    settings = replace(SETTINGS, patience=0)
    told = [task_as_json(Task(task, run.graph, settings, str(run.folder / "state")))]
    worker.send({"number": 1, "tasks": told})
    heard = []
    while not any("epoch" in message for message in heard):
        arrived = worker.messages()
        assert arrived is not None, worker.last_words()
        heard += arrived
    assert worker.leave(2.0) == 0


def test_without_rounds_an_interrupted_search_goes_on_and_trains_nothing_twice(tmp_path):
    run, ended = small_run(tmp_path / "run"), []
    settings = SearchSettings(epochs=4, grain=2, trials=14, candidates=8, fresh_seeds=1, asynchronous=True)

    def interrupt(record):
        ended.append(record.trial)
        if len(ended) == 5:
            raise KeyboardInterrupt

    service = Service(Crew(2), keep=True)
    outer = Outer(time.monotonic, time.time, finished=interrupt)
    with pytest.raises(KeyboardInterrupt):
        serve_asynchronously(run, asynchronous_free(settings), service, outer)
    before = rows(run.folder)
    assert 5 <= len(before) < 10
    records, reason = serve_asynchronously(run, asynchronous_free(settings), service, outer)
    assert reason == "all 14 structures are tried"
    assert before.items() <= rows(run.folder).items()
    assert len(records) == len(rows(run.folder)) == len(ended)
    assert len({record.trial.structure for record in records}) == 14
    assert verdict(records, settings) is not None


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 300 kB, and a function that makes it larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(options: str) -> int:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
        return subprocess.run(command, check=False, capture_output=True).returncode

    if os.geteuid() or mount("size=300k"):
        pytest.skip("only root may mount a small disk")
    yield place, lambda: mount("remount,size=8m")
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_is_told_in_a_line_and_the_run_resumes_when_there_is_room(small_disk, expected):
    place, enlarge = small_disk
    folder = place / "run"
    said = ended(begun(folder, "workers=2"))
    assert said.count("\n") == 1
    assert "safe" in said
    assert not workers_of(folder)
    assert rows(folder).items() <= expected.items()
    assert enlarge() == 0
    assert ended(begun(folder, "workers=2")) == ""
    assert rows(folder) == expected


def test_each_end_of_a_budget_is_told_once_and_counts_what_earlier_sessions_spent(tmp_path):
    now, told = 0.0, []
    with opened_ledger(small_run(tmp_path / "run").ledger, time.time, writes=True) as ledger:
        ledger.add_event("began", "")
        with timed(ledger, (lambda: 10.0, lambda: 20.0), lambda: now) as tick:
            for now in (5.0, 11.0, 12.0, 19.0, 21.0, 50.0):
                try:
                    tick()
                except OutOfTime:
                    told.append(now)
        assert told == [11.0, 21.0]
        assert ledger.seconds_spent() == 50.0


def test_what_a_promotion_adds_is_what_its_seconds_are_of():
    simple, complex_ = named("simple").structure, named("complex").structure
    short = Record(Trial(simple, 25, 0), 0.1, 25, seconds=25.0)
    promoted = Record(Trial(simple, 50, 0), 0.2, 50, seconds=25.0)
    assert full_training_seconds([short, promoted]) == 50.0
    assert full_training_seconds([Record(Trial(complex_, 40, 0), 0.1, 40, seconds=80.0)]) == 80.0
    assert full_training_seconds([]) == 0.0


def test_however_long_the_last_trials_may_take_the_first_ones_have_half_of_the_time(tmp_path):
    def strategy():
        for name in ("simple", "complex", "distmult"):
            yield [Trial(named(name).structure, 2, 0)]
        return "the end"

    service = Service(Crew(1), budget=600.0, last_trials=lambda _: 1_000_000)
    records, reason = serve(
        small_run(tmp_path / "run"), strategy(), service, Outer(time.monotonic, time.time)
    )
    assert (len(records), reason) == (3, "the end")
