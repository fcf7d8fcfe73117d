"""`free` without rounds: trials are proposed whenever there is room for one, from the records there are.

A round waits for its slowest trial, and has no work for more workers than it has trials. Here nobody waits: what
is still being trained is left out of the pool, and Thompson sampling spreads the rest. The price is that what is
known when a trial is proposed depends on which others have ended by then, so that no two searches are alike.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from autosf.search.fidelity import ENOUGH, screening_rung
from autosf.search.free import (
    IMPROBABLE,
    Proposal,
    around,
    at_most,
    candidates,
    ended,
    finals,
    known_left,
    opening,
    promotions,
    repeats,
    seen,
    structures_of,
)
from autosf.search.record import OUT_OF_TIME, OutOfTime, Round
from autosf.search.verdict import fresh_seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from autosf.search.record import Record, Trial
    from autosf.search.settings import SearchSettings

MOST_AT_ONCE = 128  # new candidates from one posterior: their joint draws grow with the cube of their number


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Records that have come in since the last ones, in any order, and for how many more trials there is room."""

    records: Sequence[Record]
    room: int


# Yields trials to be begun beside those under way, few or none, and is sent what has arrived when something has,
# or when there is more room than it has left. The first arrivals are a run's whole past.
Asynchronous = Generator[Round, Arrivals, str]


def search_asynchronously(
    strategy: Asynchronous, exchange: Callable[[Round], Arrivals]
) -> tuple[list[Record], str]:
    """Run a strategy to its end: all records in the order they arrived, and why it ended."""
    records: list[Record] = []
    try:
        trials = next(strategy)
        while True:
            try:
                arrived = exchange(trials)
            except OutOfTime as end:
                records += end.records
                trials = strategy.throw(end)
            else:
                records += arrived.records
                trials = strategy.send(arrived)
    except StopIteration as end:
        return records, end.value
    except OutOfTime:
        return records, OUT_OF_TIME


def asynchronous_free(settings: SearchSettings) -> Asynchronous:
    """Trials until their number, the time or the hope is used up; then the finals."""
    past: list[Record] = []
    pending: set[Trial] = set()
    trials: list[Trial] = []
    reason, fruitless = "", 0
    try:
        while pending or not reason:
            arrived = yield trials
            past += arrived.records
            pending -= {record.trial for record in arrived.records}
            trials = []
            if not reason:
                choosing = [record for record in past if not is_fresh(record.trial, settings)]
                proposed = proposal_beside(choosing, pending, arrived.room, settings)
                trials = [*proposed.known, *proposed.new]
                fruitless = (
                    0 if proposed.new and proposed.chance >= IMPROBABLE else fruitless + len(proposed.new)
                )
                pending |= set(trials)
                reason = ended(choosing, list(pending), fruitless // settings.chosen, settings)
    except OutOfTime as end:
        past += end.records
        reason = OUT_OF_TIME
    yield from finals_of(past, settings, late=reason == OUT_OF_TIME)
    return reason


def proposal_beside(
    past: Sequence[Record], pending: AbstractSet[Trial], room: int, settings: SearchSettings
) -> Proposal:
    """What to begin now: the known good structures first, then what the posterior over the records says."""
    first = opening(settings)
    asked = {record.trial for record in past} | pending
    missing = [trial for trial in first if trial not in asked]
    if missing or not room:
        return Proposal(known=missing[:room])
    if sum(record.trial.epochs == settings.epochs for record in past) < min(ENOUGH, len(first)):
        return Proposal()
    view = seen(past, settings)
    busy = {trial.structure for trial in pending}
    known_room, new_room = rooms(past, pending, room)
    longer = [*promotions(view, settings), *repeats(view, settings)]
    known = [trial for trial in longer if trial.structure not in busy][:known_room]
    wanted = min(room - len(known), new_room)
    epochs = screening_rung(past, settings.epochs, settings.grain)
    late = [trial for trial in known_left(past, settings, epochs) if trial.structure not in busy][:wanted]
    tried = structures_of(past, [*pending, *late])
    known += late
    wanted = at_most(wanted - len(late), tried, settings)
    if wanted <= 0:
        return Proposal(known)
    rng = Random(f"{settings.seed} {len(past)} {len(pending)}")  # noqa: S311 - no secret
    pool = around(view, tried, settings, rng)
    return Proposal(known, *candidates(view, pool, settings, rng, epochs=epochs, wanted=wanted))


def rooms(past: Sequence[Record], pending: AbstractSet[Trial], room: int) -> tuple[int, int]:
    """How many more trials of known and of new structures may begin.

    Known ones have at most half of all room. New ones are never more under way than structures are known: with
    more workers than that a search would not be faster but blind.
    """
    tried = {record.trial.structure for record in past}
    known = sum(trial.structure in tried for trial in pending)
    for_known = max(1, (len(pending) + room) // 2) - known
    for_new = min(len(tried) - (len(pending) - known), MOST_AT_ONCE)
    return max(0, min(room, for_known)), max(0, for_new)


def finals_of(
    past: Sequence[Record], settings: SearchSettings, *, late: bool
) -> Generator[Round, Arrivals, None]:
    """The finals, as far as they have not been held yet; fresh seeds take no part in choosing who is in them.

    Time was kept for them: only a second word of its end, or the first if that came `late`, cuts them.
    """
    choosing = [record for record in past if not is_fresh(record.trial, settings)]
    if not any(record.trial.epochs == settings.epochs for record in choosing):
        return
    held = {record.trial for record in past}
    trials = [trial for trial in finals(seen(choosing, settings), settings) if trial not in held]
    pending = trials
    while pending:
        try:
            records, stopped = (yield trials).records, False
        except OutOfTime as end:
            if late:
                raise
            records, stopped, late = end.records, True, True
        held = {record.trial for record in records}
        pending = [trial for trial in pending if trial not in held]
        trials = pending if stopped else []


def is_fresh(trial: Trial, settings: SearchSettings) -> bool:
    """Whether it is a trial of the finals."""
    return trial.seed in fresh_seeds(settings)
