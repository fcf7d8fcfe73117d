"""What a user chooses about a search, and how structures become a round of trials under it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.algebra.invariance import canonical
from autosf.algebra.structure import PARTS
from autosf.errors import UserError
from autosf.search.record import Trial
from autosf.search.verdict import SEEDS_APART

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record

AT_LEAST_ONE = (
    "epochs", "trials", "parents", "candidates", "chosen", "rounds", "grain", "opening", "finalists",
    "fresh_seeds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of every strategy; the defaults are the paper's (Sec. V-A3).

    The paper names no B. Its curves and comparisons are all of f^6 (Sec. V-D, V-E), hence 6; three of its five
    finds have 4 or 6 blocks, the other two have 10.
    """

    strategy: str = "free"
    epochs: int = 50  # each trial's fidelity
    seed: int = 0
    trials: int | None = None  # at most so many over the whole search; of `free` structures, not trainings
    blocks: int = 6  # B: the largest b of Alg. 2, the only b of `random` and `tpe`
    parents: int = 8  # K1: how many of the best f^(b-2) are built upon
    candidates: int = 256  # N: candidates per round
    chosen: int = 8  # K2: trials per round
    rounds: int = 32  # for each b above 4; 16 for YAGO3-10 in the paper
    grain: int = 5  # epochs between validations, of which short trainings of `free` are multiples
    opening: int | None = None  # known structures that `free` trains to the full at first; None is all
    finalists: int = 3  # of `free`, beside the best human-designed structure
    fresh_seeds: int = 3  # for each finalist
    most_blocks: int | None = None  # of new structures that `free` tries; None is any number
    asynchronous: bool = False  # `free` proposes whenever there is room, and what it proposes depends on when

    def __post_init__(self) -> None:
        for name in AT_LEAST_ONE:
            value = getattr(self, name)
            refuse_outside(name, 1 if value is None else value, least=1)
        # The seeds of all its trials have to fit into the ledger.
        refuse_outside("seed", self.seed, least=0, most=2**63 // SEEDS_APART - 1)
        for blocks in (self.blocks, PARTS if self.most_blocks is None else self.most_blocks):
            refuse_outside("blocks", blocks, least=PARTS, most=PARTS * PARTS)


def refuse_outside(name: str, value: int, *, least: int, most: float = float("inf")) -> None:
    """Raise a UserError that names the setting unless its value lies in the range."""
    if not least <= value <= most:
        shown = f"from {least}" if most == float("inf") else f"from {least} to {most}"
        raise UserError(f"search setting {name}: expected a number {shown}, found {value}")


def next_round(
    structures: Sequence[Structure], past: Iterable[Record], settings: SearchSettings
) -> list[Trial]:
    """A trial for each structure, as far as the search's trials go. Structures are canonical.

    The n-th repeat of a class is trained with the settings' seed + n. Otherwise it would be the trial that is
    already on record and cost nothing, while a search without a filter pays for its repeats. A class here is one
    of the extended group, as on record: the paper's group tells twins by entity signs apart.
    """
    visits = Counter(canonical(record.trial.structure, "extended") for record in past)
    left = len(structures) if settings.trials is None else max(0, settings.trials - visits.total())
    trials = []
    for structure in structures[:left]:
        form = canonical(structure, "extended")
        trials.append(Trial(structure, settings.epochs, settings.seed + visits[form]))
        visits[form] += 1
    return trials


def all_asked(past: Sequence[Record], settings: SearchSettings) -> bool:
    """Whether the search has had all its trials."""
    return settings.trials is not None and len(past) >= settings.trials


def trials_done(past: Sequence[Record]) -> str:
    """Why a search ended that had its trials."""
    return f"all {len(past)} trials are done"
