"""The structures of a run, best first, as a table for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from autosf.algebra.invariance import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record


@dataclass(frozen=True, slots=True)
class Standing:
    """A structure at the highest fidelity it was tried at: mean and spread over seeds, and what it cost."""

    structure: Structure
    valid_mrr: float
    spread: float | None  # standard deviation over seeds; none with one seed
    seeds: int
    epochs: int  # trained in all; a trial that goes on from another adds the difference
    trial_epochs: int  # asked of each of its longest trainings, which may have stopped early


def leaderboard(records: Iterable[Record]) -> list[Standing]:
    """One standing for each class of structures with a record that did not fail, by mean MRR alone.

    A longer training or more seeds do not put a structure first by themselves, though they make its place
    more certain: whoever names a winner looks at `seeds` and `spread`, too.
    """
    by_structure: dict[Structure, list[Record]] = {}
    for record in records:
        if not record.failed:
            by_structure.setdefault(canonical(record.trial.structure, "extended"), []).append(record)
    standings = [standing(structure, some) for structure, some in by_structure.items()]
    return sorted(standings, key=lambda row: (-row.valid_mrr, row.structure))


def standing(structure: Structure, records: list[Record]) -> Standing:
    """The standing of one structure from all its records."""
    highest = max(record.trial.epochs for record in records)
    by_seed = {record.trial.seed: record.valid_mrr for record in records if record.trial.epochs == highest}
    values = [by_seed[seed] for seed in sorted(by_seed)]
    longest: dict[int, int] = {}
    for record in records:
        longest[record.trial.seed] = max(record.epochs, longest.get(record.trial.seed, 0))
    return Standing(
        structure=structure,
        valid_mrr=fmean(values),
        spread=stdev(values) if len(values) > 1 else None,
        seeds=len(values),
        epochs=sum(longest.values()),
        trial_epochs=highest,
    )
