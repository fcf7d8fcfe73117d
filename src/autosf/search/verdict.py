"""Who won, and how surely: from trainings whose seeds took no part in choosing the finalists.

The best of many noisy figures is a lucky one. A mean over fresh seeds is not, and the spread over seeds says
how probable it is that one structure is really better than another.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import exp, log, pi, prod, tan
from statistics import fmean, pstdev, stdev
from typing import TYPE_CHECKING

from scipy.special import stdtr

from autosf.algebra.invariance import canonical
from autosf.algebra.zoo import HUMAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record
    from autosf.search.settings import SearchSettings

SEEDS_APART = 10_000  # between the seeds of two searches by `free`, so that no two share a training
FRESH = 5_000  # from a search's first seed to those of its finals
FAR = 6.0  # standard errors of a difference behind the first

# How much the true values of finalists may differ, in units of what a seed does: even shares of a half-Cauchy.
SPREADS = tuple(tan(pi / 2 * (place + 0.5) / 64) for place in range(64))


@dataclass(frozen=True, slots=True)
class Finalist:
    """A structure with its mean and standard deviation over fresh seeds, which one seed has none of."""

    structure: Structure
    valid_mrr: float
    spread: float | None
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The winner, and the probabilities that it is better than the runner-up and the best human-designed one."""

    winner: Finalist
    runner_up: Finalist | None
    beats_runner_up: float | None
    human: Finalist | None
    beats_human: float | None  # nothing where the winner is the human-designed one
    finalists: tuple[Finalist, ...]  # best first; those with too few seeds last


def fresh_seeds(settings: SearchSettings) -> list[int]:
    """Seeds of the finals."""
    return [settings.seed * SEEDS_APART + FRESH + number for number in range(settings.fresh_seeds)]


def is_human_designed(structure: Structure) -> bool:
    """Whether people have designed it, up to equivalence: QuatE too, which the paper does not have."""
    return canonical(structure, "extended") in human_designed()


@cache
def human_designed() -> frozenset[Structure]:
    """The representatives of their classes."""
    return frozenset(canonical(known.structure, "extended") for known in HUMAN)


def verdict(past: Sequence[Record], settings: SearchSettings) -> Verdict | None:
    """The outcome of the finals, or None where they have not compared anybody.

    Who has fewer seeds than two others have, as finals were cut or a training was lost, does not win by them.
    """
    seeds = set(fresh_seeds(settings))
    values: dict[Structure, list[float]] = {}
    chosen_from: set[Structure] = set()
    for record in past:
        if record.trial.epochs == settings.epochs and not record.failed:
            if record.trial.seed in seeds:
                values.setdefault(record.trial.structure, []).append(record.valid_mrr)
            else:
                chosen_from.add(record.trial.structure)
    if len(values) < min(2, max(1, len(chosen_from))):
        return None
    enough = sorted(map(len, values.values()))[-2:][0]
    finalists = sorted(
        (finalist(structure, of_one) for structure, of_one in values.items()),
        key=lambda one: (len(one.values) < enough, -one.valid_mrr),
    )
    winner, *others = finalists
    human = next((f for f in finalists if is_human_designed(f.structure)), None)
    runner_up = others[0] if others else None
    return Verdict(
        winner,
        runner_up,
        chance_better(winner, runner_up, finalists) if runner_up else None,
        human,
        chance_better(winner, human, finalists) if human and human is not winner else None,
        tuple(finalists),
    )


def finalist(structure: Structure, values: Sequence[float]) -> Finalist:
    spread = stdev(values) if len(values) > 1 else None
    return Finalist(structure, fmean(values), spread, tuple(values))


def chance_better(one: Finalist, other: Finalist, finalists: Sequence[Finalist]) -> float | None:
    """Probability that one's true value is above the other's.

    The highest of several means is in part the luckiest: values of finalists are taken for draws around a common
    centre, so that means are pulled towards it, the more the less they differ beside what a seed does. How much
    values differ is not known: chances are averaged over possible answers, each as likely as it makes the means.
    Who is far behind the first, as a human-designed structure may be, tells nothing of how the leaders differ.
    """
    freedom = sum(len(f.values) - 1 for f in finalists)
    if not freedom:
        return None
    within = sum(pstdev(f.values) ** 2 * len(f.values) for f in finalists)
    if not within:
        return 1.0 if one.valid_mrr > other.valid_mrr else 0.5
    reach = finalists[0].valid_mrr - FAR * (2 * within / freedom / len(finalists[0].values)) ** 0.5
    finalists = [f for f in finalists if f.valid_mrr >= reach or f in (one, other)]
    freedom += len(finalists) - 1
    likelihoods, chances = [], []  # logarithms of the former: where seeds hardly differ they overflow
    for spread in SPREADS:
        precisions = {f.structure: 1 / (spread**2 + 1 / len(f.values)) for f in finalists}
        whole = sum(precisions.values())
        centre = sum(precisions[f.structure] * f.valid_mrr for f in finalists) / whole
        squares = within + sum(precisions[f.structure] * (f.valid_mrr - centre) ** 2 for f in finalists)
        likelihoods.append((log(prod(precisions.values()) / whole) + freedom * log(within / squares)) / 2)
        a, b = (spread**2 * precisions[f.structure] for f in (one, other))  # kept of the way to the centre
        gap = a * (one.valid_mrr - centre) - b * (other.valid_mrr - centre)
        variance = a / len(one.values) + b / len(other.values) + (a - b) ** 2 / whole
        chances.append(float(stdtr(freedom, gap / (squares / freedom * variance) ** 0.5)))
    weights = [exp(likelihood - max(likelihoods)) for likelihood in likelihoods]
    return sum(w * chance for w, chance in zip(weights, chances, strict=True)) / sum(weights)
