"""What short trainings are worth: learned from the curves of the full ones, graph by graph.

On some graphs an eighth of the epochs orders structures as well as all of them, on others it is worth
nothing: which it is shows in the curves that a search has anyway. A short training's MRR is extrapolated by
the line that fits those curves, with their scatter as its uncertainty.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from autosf.search.surrogate import Estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record

    Array = NDArray[np.float64]

FRACTIONS = (1 / 8, 1 / 4, 1 / 2)  # of the full epochs, as rungs
ENOUGH = 6  # full curves before short trainings are trusted
PRIOR_WEIGHT = 4  # repeats that the prior of the seeds' spread counts for
PRIOR_SPREAD = 0.3  # of the seeds, in units of the structures'
BATCH = 4  # full trainings' worth of epochs for which the best rung is chosen


@dataclass(frozen=True, slots=True)
class Line:
    """Full MRR = intercept + slope * short MRR, give or take; `correlation` over the full curves."""

    intercept: float
    slope: float
    variance: float
    correlation: float


def rungs(full: int, grain: int) -> list[int]:
    """Short fidelities in epochs: multiples of the grain, below the full one."""
    rounded = {max(grain, round(full * fraction / grain) * grain) for fraction in FRACTIONS}
    return sorted(epochs for epochs in rounded if epochs < full)


def full_runs(past: Sequence[Record], full: int) -> dict[Structure, list[Record]]:
    """The records of full trainings, by structure."""
    runs: dict[Structure, list[Record]] = defaultdict(list)
    for record in past:
        if record.trial.epochs == full:
            runs[record.trial.structure].append(record)
    return runs


def seed_variance(past: Sequence[Record], full: int) -> float:
    """Variance of a full training's MRR over seeds, pooled over structures that have several."""
    runs = [[run.valid_mrr for run in of_one if not run.failed] for of_one in full_runs(past, full).values()]
    means = [np.mean(values) for values in runs if values]
    low, high = np.quantile(means, [0.25, 0.75]) if means else (0.0, 0.01)
    prior = max(PRIOR_SPREAD * float(high - low) / 1.35, 1e-4) ** 2
    squares = sum(float(np.var(values)) * len(values) for values in runs if len(values) > 1)
    freedom = sum(len(values) - 1 for values in runs if len(values) > 1)
    return (PRIOR_WEIGHT * prior + squares) / (PRIOR_WEIGHT + freedom)


def value_at(record: Record, epochs: int) -> float:
    """The best validation within the first `epochs`."""
    return max((mrr for epoch, mrr in record.curve if epoch <= epochs), default=0.0)


def extrapolation(past: Sequence[Record], epochs: int, full: int) -> Line:
    """From the MRR after some epochs to that after all, by the full curves so far."""
    runs = [run for of_one in full_runs(past, full).values() for run in of_one if not run.failed]
    short = np.array([value_at(run, epochs) for run in runs])
    whole = np.array([run.valid_mrr for run in runs])
    if len(runs) < ENOUGH or short.std() == 0 or whole.std() == 0:
        gain = float((whole - short).mean()) if len(runs) else 0.0
        return Line(gain, 1.0, float(whole.var()) if len(runs) else 1e-3, 0.5)
    low, middle = np.quantile(whole, [0.25, 0.5])
    kept = whole >= low - 2 * (middle - low)
    short, whole = short[kept], whole[kept]
    correlation = shrunk_correlation(short, whole)
    slope = correlation * float(whole.std() / max(short.std(), 1e-9))
    intercept = float(whole.mean() - slope * short.mean())
    scatter = float(whole.var()) * (1 - correlation**2) * len(whole) / max(len(whole) - 2, 1)
    return Line(intercept, slope, max(scatter, 1e-10), correlation)


def shrunk_correlation(one: Array, other: Array) -> float:
    """Correlation, drawn towards nothing as if three further pairs had shown none; never below 0."""
    if one.std() == 0 or other.std() == 0:
        return 0.0
    return max(0.0, float(np.corrcoef(one, other)[0, 1]) * len(one) / (len(one) + 3))


def screening_rung(past: Sequence[Record], full: int, grain: int) -> int:
    """The fidelity at which a fixed number of epochs is expected to find the best candidate.

    With epochs for n candidates and a correlation c, the one that looks best is c * (mean maximum of n
    normals) above the average: short trainings see more candidates, long ones see better.
    """
    choices = [(full, 1.0)]
    if sum(not run.failed for of_one in full_runs(past, full).values() for run in of_one) >= ENOUGH:
        choices += [(epochs, extrapolation(past, epochs, full).correlation) for epochs in rungs(full, grain)]
    return max(choices, key=lambda choice: choice[1] * mean_maximum(BATCH * full / choice[0]))[0]


def mean_maximum(count: float) -> float:
    """About the mean of the largest of `count` standard normals (Blom)."""
    return NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def estimates(past: Sequence[Record], full: int) -> dict[Structure, Estimate]:
    """What is known of every structure tried: full trainings averaged, short ones extrapolated.

    A training that failed says nothing of a structure that others have measured: a worker may be killed for
    want of memory. A structure that has come to nothing but failures is worth nothing. A short training's scatter
    is that around one full training of the same seed; around the mean over seeds it is no smaller, as a seed that
    is lucky for a while is lucky to the end.
    """
    noise = seed_variance(past, full)
    found = {}
    for structure, of_one in full_runs(past, full).items():
        values = [run.valid_mrr for run in of_one if not run.failed] or [0.0]
        found[structure] = Estimate(float(np.mean(values)), noise / len(values))
    lines: dict[int, Line] = {}
    for structure, record in highest_rungs(past, full).items():
        if structure in found:
            continue
        if record.failed:
            found[structure] = Estimate(0.0, noise)
            continue
        epochs = record.trial.epochs
        if epochs not in lines:
            lines[epochs] = extrapolation(past, epochs, full)
        line = lines[epochs]
        found[structure] = Estimate(line.intercept + line.slope * record.valid_mrr, line.variance)
    return found


def highest_rungs(past: Sequence[Record], full: int) -> dict[Structure, Record]:
    """The longest training of every structure that has only short ones."""
    longest: dict[Structure, Record] = {}
    for record in past:
        known = longest.get(record.trial.structure)
        if known is None or record.trial.epochs > known.trial.epochs:
            longest[record.trial.structure] = record
    return {structure: record for structure, record in longest.items() if record.trial.epochs < full}
