"""How a search came to what it found: its best against what it had spent, from the records alone."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

from autosf.search.verdict import fresh_seeds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record
    from autosf.search.settings import SearchSettings


def added_epochs(records: Iterable[Record]) -> list[int]:
    """Epochs that each record has cost; one that goes on from another costs what it adds."""
    trained: dict[tuple[Structure, int], int] = defaultdict(int)
    costs = []
    for record in records:
        key = (record.trial.structure, record.trial.seed)
        costs.append(max(0, record.epochs - trained[key]))
        trained[key] = max(trained[key], record.epochs)
    return costs


def trained_epochs(records: Iterable[Record]) -> list[int]:
    """Epochs trained in all after each record."""
    return list(accumulate(added_epochs(records)))


def search_curve(records: Sequence[Record], settings: SearchSettings) -> list[tuple[int, float]]:
    """(epochs trained so far, best validation MRR of a full training): where it rose, and the end (Fig. 6).

    The finals' fresh seeds take no part: they judge what was found.
    """
    fresh = set(fresh_seeds(settings))
    before = [record for record in records if record.trial.seed not in fresh]
    points: list[tuple[int, float]] = []
    best, total = 0.0, 0
    for record, total in zip(before, trained_epochs(before), strict=True):
        if record.trial.epochs == settings.epochs and record.valid_mrr > best:
            best = record.valid_mrr
            points.append((total, best))
    return [*points, (total, best)] if points and points[-1][0] < total else points
