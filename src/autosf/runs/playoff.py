"""How a play-off comes out: what leads on a sample, trained on all of the graph, a figure at a time.

First every contestant is trained once. A seed does as much as the difference between good structures, and so
those who may still be the best are trained with further seeds, as long as there are two of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from autosf.algebra.structure import from_rows, to_json
from autosf.errors import UserError
from autosf.runs.task import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from autosf.algebra.structure import Structure
    from autosf.runs.run import Run

DOUBT = 1.5  # standard errors behind the best mean, up to which a contestant may still be the best


@dataclass(frozen=True, slots=True)
class Played:
    """A structure's validation MRR on all of the graph, seed by seed: 0 if a training diverged, none if there was
    no time for one. `is_cut` where there was none for more."""

    structure: Structure
    values: tuple[float, ...] = ()
    seconds: float = 0.0  # of all its trainings
    is_cut: bool = False

    @property
    def valid_mrr(self) -> float | None:
        """The mean; of one that has diverged, 0."""
        return fmean(self.values) if self.values and all(self.values) else 0.0 if self.values else None

    @property
    def spread(self) -> float | None:
        return stdev(self.values) if len(self.values) > 1 else None

    @property
    def order(self) -> float:
        """What the contestants are sorted by, the best highest."""
        return -1.0 if self.valid_mrr is None else self.valid_mrr

    def first(self, count: int) -> Played:
        """With its first values only."""
        return replace(self, values=self.values[:count])


@dataclass(frozen=True, slots=True)
class Rules:
    """At most so many seeds of each, and what one seed did to an MRR on the sample: a standard deviation."""

    seeds: int = 1
    noise: float = 0.0


def to_play(
    figures: Mapping[Structure, Played], contestants: Sequence[Structure], rules: Rules
) -> list[Structure]:
    """Who is to be trained once more; nobody once it is decided. What is trained meanwhile changes no one else's
    turn, so that a play-off that was cut goes on as it would have."""
    missing = [structure for structure in contestants if structure not in figures]
    for seeds in range(1, rules.seeds):
        if missing:
            break
        doubtful = in_doubt([figures[structure].first(seeds) for structure in contestants], rules.noise)
        missing = [
            structure
            for structure in doubtful
            if len(figures[structure].values) <= seeds and not figures[structure].is_cut
        ]
    return missing


def in_doubt(played: Sequence[Played], noise: float) -> list[Structure]:
    """Those who may be the best by what is known; nobody where that is one alone."""
    measured = [one for one in played if one.valid_mrr]
    if not measured:
        return []
    best = max(measured, key=lambda one: one.order)
    spread = spread_there(measured, noise)

    def error(one: Played) -> float:
        return float(spread * (1 / len(one.values) + 1 / len(best.values)) ** 0.5)

    close = [one.structure for one in measured if best.order - one.order <= DOUBT * error(one)]
    return close if len(close) > 1 else []


def spread_there(played: Sequence[Played], noise: float) -> float:
    """What a seed does on the whole graph, where it is often less than on the sample, whose noise counts as much
    as one more seed of one contestant."""
    several = [(one.spread, len(one.values) - 1) for one in played if one.spread is not None]
    return pooled_spread([(noise, 1), *several])


def pooled_spread(several: Sequence[tuple[float, int]]) -> float:
    """One standard deviation of several, each with its degrees of freedom; 0 where there are none."""
    freedom = sum(own for _, own in several)
    return float((sum(spread**2 * own for spread, own in several) / freedom) ** 0.5) if freedom else 0.0


def kept_figures(run: Run) -> dict[Structure, Played]:
    """All that has been played so far, also by contestants of an earlier end of the search."""
    try:
        found = map(played_of, json.loads(playoff_file(run).read_bytes()))
        return {one.structure: one for one in found}
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return {}


def played_of(row: Mapping[str, object]) -> Played:
    """A row of the file; older ones have one figure each, or none."""
    structure, seconds = from_rows(row["structure"]), row["seconds"]
    values = row.get("values", [] if row["valid_mrr"] is None else [row["valid_mrr"]])
    if not isinstance(values, list) or not isinstance(seconds, int | float):
        raise TypeError("expected numbers")
    return Played(structure, tuple(map(float, values)), float(seconds), bool(row.get("is_cut")))


def figures_as_text(played: Iterable[Played]) -> str:
    """What the file says."""
    rows = [
        {
            "structure": one.structure.rows,
            "valid_mrr": one.valid_mrr,
            "seconds": one.seconds,
            "values": one.values,
            "is_cut": one.is_cut,
        }
        for one in played
    ]
    return json.dumps(rows, indent=1) + "\n"


def kept_playoff(run: Run, contestants: Sequence[Structure], rules: Rules) -> tuple[Played, ...]:
    """The play-off between these, best first; nothing as long as one of them has a turn."""
    figures = kept_figures(run) if contestants else {}
    if to_play(figures, contestants, rules):
        return ()
    return tuple(sorted((figures[structure] for structure in contestants), key=lambda one: -one.order))


def playoff_file(run: Run) -> Path:
    return run.folder / "playoff.json"


def playoff_folder(run: Run) -> Path:
    """Where contestants' models are until one of them has won."""
    return run.folder / "playoff"


def contestant_folder(run: Run, structure: Structure, seed: int = 0) -> Path:
    """The folder of a contestant's training with that seed; the first seed's model stays if it wins."""
    name = digest({"structure": to_json(structure)})[:16]
    return playoff_folder(run) / (f"{name}-{seed}" if seed else name)
