"""What a run of the small search has found, and what it finds if nobody touches it."""

import time
from dataclasses import replace
from pathlib import Path

from benchmarks.small_search import FIRST_EPOCHS, SETTINGS, halving, small_run

from autosf.algebra.invariance import canonical
from autosf.runs.ledger import opened_ledger
from autosf.runs.shared_graph import shared
from autosf.runs.task import Task
from autosf.runs.trial import Outside
from autosf.runs.trials import run_trial
from autosf.search.record import search


def rows(folder: Path) -> dict:
    """What a run has found, without what depends on the hour."""
    with opened_ledger(folder / "ledger.sqlite", time.time) as ledger:
        records = ledger.records()
        found = {
            record.trial: (record.valid_mrr, record.epochs, record.curve, record.failure)
            for record in records
        }
    assert len(found) == len(records), "no row is there twice"
    return found


def failures(folder: Path) -> list[str]:
    with opened_ledger(folder / "ledger.sqlite", time.time) as ledger:
        return [why for _, why in ledger.attempts()]


def rows_of_untouched(folder: Path, epochs: int = FIRST_EPOCHS) -> dict:
    """The rows of the small search with one seed, trained in this process one by one, each from the start."""
    run = small_run(folder)
    seen = shared(run.graph_folder)
    found = {}

    def evaluate(trials):
        records = []
        for trial in trials:
            same = replace(trial, structure=canonical(trial.structure, "extended"))
            task = Task(same, run.graph, SETTINGS, str(run.folder / "none"))
            record = run_trial(task, seen, Outside(time.perf_counter))
            found[same] = (record.valid_mrr, record.epochs, record.curve, record.failure)
            records.append(replace(record, trial=trial))
        return records

    search(halving(1, epochs), evaluate)
    return found


def wait_until(condition, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def has_rows(folder: Path, count: int) -> bool:
    return (folder / "run.json").exists() and len(rows(folder)) >= count
