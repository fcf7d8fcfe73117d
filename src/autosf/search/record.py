"""What a search asks for and what it gets back: the seam between Alg. 2 and training.

A strategy is a generator: it yields rounds of trials, is sent their records in the same order, and ends by
returning why it ended. It holds no other state, so that resuming a search is running its strategy again over
the records of the past; any number of workers may serve a round without changing what comes next.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.algebra.structure import Structure


@dataclass(frozen=True, slots=True)
class Trial:
    """One structure to be trained to a fidelity: so many epochs from the start, with this seed."""

    structure: Structure
    epochs: int
    seed: int


@dataclass(frozen=True, slots=True)
class Record:
    """What a trial came to. A failed one has an MRR of 0 and the reason."""

    trial: Trial
    valid_mrr: float  # the best validation up to the trial's epochs
    epochs: int  # trained in fact, from the start: fewer than asked where training stopped early
    curve: tuple[tuple[int, float], ...] = ()  # (epoch, validation MRR)
    seconds: float = 0.0  # training and validation of this trial alone
    failure: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.failure)


OUT_OF_TIME = "the time is used up"


class OutOfTime(Exception):  # noqa: N818 - no error, but a way to end
    """Thrown into a strategy in place of a round it has asked for: with the records there are of that round."""

    def __init__(self, records: Sequence[Record] = ()) -> None:
        super().__init__(OUT_OF_TIME)
        self.records = records


Round = Sequence[Trial]
Strategy = Generator[Round, Sequence[Record], str]


def search(strategy: Strategy, evaluate: Callable[[Round], Sequence[Record]]) -> tuple[list[Record], str]:
    """Run a strategy to its end: all records in the order they were asked for, and why it ended.

    Where `evaluate` raises OutOfTime the strategy hears of it and may ask for a last round.
    """
    records: list[Record] = []
    try:
        trials = next(strategy)
        while True:
            try:
                answers = evaluate(trials)
            except OutOfTime as end:
                records += end.records
                trials = strategy.throw(end)
            else:
                records += answers
                trials = strategy.send(answers)
    except StopIteration as end:
        return records, end.value
    except OutOfTime:
        return records, OUT_OF_TIME
