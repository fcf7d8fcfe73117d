"""What a greedy step of Alg. 2 costs beside training: filter, features and predictor of 8,192 candidates."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

from autosf.algebra.features import srf
from autosf.algebra.invariance import canonical, leading
from autosf.algebra.space import five_f4
from autosf.search.greedy import alg_2, highest, sampled
from autosf.search.predictor import HIDDEN, encoded, features, fit_predictor
from autosf.search.record import Record, Round, Trial, search
from autosf.search.settings import SearchSettings
from benchmarks.measured import Measured

if TYPE_CHECKING:
    from autosf.algebra.structure import Structure

PAPER = SearchSettings()  # 32 rounds of 256 candidates, 8 trained in each


def trained(trials: Round) -> list[Record]:
    """Records with made-up scores, at no cost."""
    return [Record(trial, Random(str(trial.structure)).random(), trial.epochs) for trial in trials]


def recorded(structures: list[Structure]) -> list[Record]:
    return trained([Trial(structure, epochs=1, seed=0) for structure in structures])


def run() -> list[Measured]:
    """The whole step as a search runs it, and the same work in three parts."""
    fit_predictor(recorded(list(five_f4())), srf, HIDDEN["srf"], 0)  # scikit-learn's import is not the step's
    forget()
    started = time.perf_counter()
    records, _ = search(alg_2(PAPER), trained)
    whole = time.perf_counter() - started
    forget()
    parts = split()
    note = f"{len(records)} trained; the paper: 16 minutes for the filter, 2 for the predictor"
    return [
        Measured("a greedy step without training: f^6 of the paper's search", whole, "s", 5, note),
        *(Measured(f"  of this, measured apart: {name}", value, "s") for name, value in parts.items()),
    ]


def forget() -> None:
    """Empty the caches, so that every measurement starts as a search does."""
    leading.cache_clear()
    encoded.cache_clear()


def split() -> dict[str, float]:
    """Seconds of filter (steps 2 to 6), features, and predictor (steps 7 and 11) over all rounds of f^6."""
    spent = {"filter": 0.0, "features": 0.0, "predictor": 0.0}
    parents = [canonical(structure) for structure in five_f4()]
    past, rng = recorded(parents), Random(0)
    for _ in range(PAPER.rounds):
        times = [time.perf_counter()]
        seen = {record.trial.structure for record in past}
        candidates = sampled(parents, PAPER.candidates, seen, rng)
        times.append(time.perf_counter())
        features(candidates, srf)
        times.append(time.perf_counter())
        predict = fit_predictor(past, srf, HIDDEN["srf"], PAPER.seed)
        chosen = highest(candidates, predict(candidates).tolist(), PAPER.chosen)
        times.append(time.perf_counter())
        past += recorded(chosen)
        for name, start, end in zip(spent, times, times[1:], strict=False):
            spent[name] += end - start
    return spent
