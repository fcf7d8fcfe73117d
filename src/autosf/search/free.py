"""Our search: known good structures first, then moves in any direction, with epochs spent where there is doubt.

A round is made of three kinds of trials, all decided by one posterior over structures' values (`surrogate`):

- new candidates, drawn as often as they may be the best (Thompson sampling), trained only as long as it takes
  to tell candidates apart on this graph (`fidelity`);
- promotions: candidates that may well beat the leader are trained to the full;
- repeats: the leader, and a runner-up that cannot be told from it, get another seed.

In the end the finalists are trained with fresh seeds, which took no part in choosing them (`verdict`).

The pool that candidates are chosen from is drawn while the round before is trained, which hides most of what a
search thinks; its parents are those that the posterior of one round earlier draws.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from autosf.algebra.constraints import cells_satisfy_c2
from autosf.algebra.invariance import canonical_cells
from autosf.algebra.structure import from_cells
from autosf.algebra.zoo import HUMAN
from autosf.search.fidelity import estimates, full_runs, highest_rungs, screening_rung, seed_variance
from autosf.search.moves import anywhere, neighbour
from autosf.search.record import OUT_OF_TIME, OutOfTime, Trial
from autosf.search.surrogate import fit_surrogate, scaled_features
from autosf.search.typical import known_good
from autosf.search.verdict import SEEDS_APART, fresh_seeds, is_human_designed

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure
    from autosf.search.moves import Within
    from autosf.search.record import Record, Round, Strategy
    from autosf.search.settings import SearchSettings
    from autosf.search.surrogate import Surrogate

TOLERANCE = 0.001  # of MRR: a smaller gain is none
IMPROBABLE, ROUNDS_IMPROBABLE = 0.05, 3  # a gain less likely, so many rounds in a row, ends the search
JUDGED = 32  # candidates that a gain is looked for among, however few of them are trained
ROUNDS_LOOKED = 4  # full rounds' worth of new structures before a surrogate that sees no hope is believed
SCREENED = 0.25  # share of a full training at which a round has as many candidates as the settings say
PROMOTED = 0.1  # least probability of beating the leader
CLOSE = 0.35  # least probability that the runner-up is better, for another seed to be worth it
SEEDS_AT_MOST = 3  # before the finals
FRUITLESS_DRAWS = 2000
DRAWS = 512  # from the posterior


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """All that the past says: structures tried to the full in order of their posterior, best first."""

    past: Sequence[Record]
    surrogate: Surrogate
    full: dict[Structure, list[Record]]
    ranking: tuple[Structure, ...]
    means: dict[Structure, float]

    @property
    def leader(self) -> Structure:
        return self.ranking[0]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Trials of structures that are known, those of new ones, and the chance that a new one is the best."""

    known: Round = ()
    new: Round = ()
    chance: float = 0.0


def free(settings: SearchSettings, within: Within = anywhere) -> Strategy:
    """Rounds until the trials, the time or the hope is used up; then the finals.

    Only classes that lie `within` a part of the space are tried, beside the known good ones.
    """
    past: list[Record] = []
    reason, hopeless = "", 0
    trials: Round = opening(settings)
    try:
        with ThreadPoolExecutor(1) as aside:
            ahead = aside.submit(first_pool, settings, within)
            while not reason:
                past += yield trials
                view = seen(past, settings)
                rng = Random(f"{settings.seed} {len(past)}")  # noqa: S311 - reproducible, not secret
                proposed = proposal(view, settings, rng, ahead, within)
                hopeless = hopeless + 1 if proposed.new and proposed.chance < IMPROBABLE else 0
                trials = [*proposed.known, *proposed.new]
                reason = ended(past, trials, hopeless, settings)
                if reason and proposed.known:  # those that may still be the best are heard first
                    trials, reason = proposed.known, ""
                tried = structures_of(past, trials)
                if not reason and at_most(1, tried, settings) > 0:
                    ahead = aside.submit(around, view, tried, settings, rng, within)
    except OutOfTime as end:
        past += end.records
        reason = OUT_OF_TIME
    if any(record.trial.epochs == settings.epochs for record in past):
        yield from last_round(finals(seen(past, settings), settings), late=reason == OUT_OF_TIME)
    return reason


def last_round(trials: list[Trial], *, late: bool) -> Generator[Round, Sequence[Record]]:
    """The finals, for which time was kept: that of the rounds may end meanwhile, a second word of it is meant
    for them."""
    try:
        yield trials
    except OutOfTime as end:
        if late:
            raise
        held = {record.trial for record in end.records}
        yield [trial for trial in trials if trial not in held]


def opening(settings: SearchSettings) -> list[Trial]:
    """Known good structures to be trained to the full: all, or as many as there is time for."""
    first = known_good()[: settings.opening]
    return [first_trial(structure, settings) for structure in first[: settings.trials]]


def known_left(past: Sequence[Record], settings: SearchSettings, epochs: int) -> list[Trial]:
    """The known good structures that the opening had no time for, to be screened as new ones are."""
    tried = {record.trial.structure for record in past}
    left = [structure for structure in known_good() if structure not in tried]
    room = len(left) if settings.trials is None else max(0, settings.trials - len(tried))
    return [Trial(structure, epochs, settings.seed * SEEDS_APART) for structure in left[:room]]


def first_trial(structure: Structure, settings: SearchSettings) -> Trial:
    return Trial(structure, settings.epochs, settings.seed * SEEDS_APART)


def proposal(
    view: View, settings: SearchSettings, rng: Random, ahead: Future[list[Structure]], within: Within
) -> Proposal:
    """The next round; new candidates are from the pool drawn ahead, if there is anything in it."""
    epochs = screening_rung(view.past, settings.epochs, settings.grain)
    late = known_left(view.past, settings, epochs)
    known = [*promotions(view, settings), *repeats(view, settings), *late]
    tried = structures_of(view.past, late)
    wanted = at_most(max(2, round(settings.chosen * SCREENED * settings.epochs / epochs)), tried, settings)
    if wanted <= 0:
        return Proposal(known)
    pool = ahead.result() or around(view, tried, settings, rng, within)
    return Proposal(known, *candidates(view, pool, settings, rng, epochs=epochs, wanted=wanted))


def structures_of(past: Sequence[Record], trials: Iterable[Trial]) -> set[Structure]:
    """All that have been tried or are about to be."""
    return {record.trial.structure for record in past} | {trial.structure for trial in trials}


def at_most(wanted: int, tried: AbstractSet[Structure], settings: SearchSettings) -> int:
    """As many new structures as are wanted, if the search may try so many more; none or less if it may not."""
    return wanted if settings.trials is None else min(wanted, settings.trials - len(tried))


def seen(past: Sequence[Record], settings: SearchSettings) -> View:
    """The past as a posterior. A structure's place is its posterior mean: a lucky seed alone leads nobody."""
    surrogate = fit_surrogate(estimates(past, settings.epochs))
    full = full_runs(past, settings.epochs)
    means, _ = surrogate.posterior(list(full))
    by_structure = dict(zip(full, means.tolist(), strict=True))
    ranking = sorted(full, key=lambda structure: -by_structure[structure])
    return View(past, surrogate, full, tuple(ranking), by_structure)


def candidates(
    view: View,
    pool: Sequence[Structure],
    settings: SearchSettings,
    rng: Random,
    *,
    epochs: int,
    wanted: int,
) -> tuple[list[Trial], float]:
    """Structures of the pool to be screened, and the probability that one of it beats the leader.

    The probability is of all that are judged, of which the first are wanted.
    """
    if not pool:
        return [], 0.0
    draws = posterior_draws(view, pool, rng)
    chosen = thompson(draws[:, 1:], max(wanted, JUDGED))
    gains = draws[:, [place + 1 for place in chosen]].max(1) - draws[:, 0]
    trials = [Trial(pool[place], epochs, settings.seed * SEEDS_APART) for place in chosen[:wanted]]
    return trials, float((gains > TOLERANCE).mean())


def first_pool(settings: SearchSettings, within: Within) -> list[Structure]:
    """New structures around the known good ones, any of which may be the best yet."""
    rng = Random(settings.seed)  # noqa: S311 - reproducible, not secret
    return drawn_around(known_good(), frozenset(known_good()), settings, rng, within)


def around(
    view: View,
    tried: AbstractSet[Structure],
    settings: SearchSettings,
    rng: Random,
    within: Within = anywhere,
) -> list[Structure]:
    """New structures around those that may be the best."""
    return drawn_around(parents(view, settings, rng), tried, settings, rng, within)


def drawn_around(
    sources: Sequence[Structure],
    tried: AbstractSet[Structure],
    settings: SearchSettings,
    rng: Random,
    within: Within,
) -> list[Structure]:
    """A pool of candidates; the features of all are at hand afterwards."""
    most = settings.most_blocks

    def may_be_tried(structure: Structure) -> bool:
        return (most is None or structure.blocks <= most) and within(structure)

    found = neighbours(sources, tried, settings.candidates, rng, may_be_tried)
    scaled_features([*sources, *found])
    return found


def parents(view: View, settings: SearchSettings, rng: Random) -> list[Structure]:
    """Structures to start from, each the best of those tried in one draw from the posterior."""
    tried = list(view.surrogate.structures)
    draws = posterior_draws(view, tried, rng, settings.parents)
    return [tried[place] for place in thompson(draws[:, 1:], settings.parents)]


def neighbours(
    sources: Sequence[Structure],
    tried: AbstractSet[Structure],
    count: int,
    rng: Random,
    within: Within = anywhere,
) -> list[Structure]:
    """Up to `count` classes around the sources that are new and satisfy C2, repeats counted up to sign."""
    found: list[Structure] = []
    parts = sources[0].parts
    met = {structure.cells for structure in tried}
    drawn_before = set()
    for _ in range(FRUITLESS_DRAWS + count):
        drawn = neighbour(sources, rng)
        if drawn in drawn_before:
            continue
        drawn_before.add(drawn)
        if not cells_satisfy_c2(drawn, parts, up_to_sign=True):  # all of its class alike, and cheaper to see
            continue
        form = canonical_cells(drawn, parts, "extended")
        if form in met:
            continue
        met.add(form)
        structure = from_cells(form)
        if within(structure):
            found.append(structure)
            if len(found) == count:
                break
    return found


def posterior_draws(
    view: View, pool: Sequence[Structure], rng: Random, count: int = DRAWS
) -> NDArray[np.float64]:
    """Joint draws of the values of the leader, in the first column, and of the pool. [draws, 1 + n]"""
    means, covariance = view.surrogate.posterior([view.leader, *pool])
    normal = np.random.default_rng(rng.getrandbits(64)).standard_normal((count, len(means)))
    drawn: NDArray[np.float64] = means + normal @ symmetric_root(covariance)
    return drawn


def symmetric_root(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The symmetric matrix whose square is the covariance.

    Vectors of equal eigenvalues, of which there are many here, turn with the last bits of a sum; this root does
    not, so that what is drawn by it is the same on all machines.
    """
    values, vectors = np.linalg.eigh(covariance)
    root: NDArray[np.float64] = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def thompson(draws: NDArray[np.float64], count: int) -> list[int]:
    """Places that are best in one draw each: the likelier to be best, the likelier chosen."""
    chosen: list[int] = []
    for draw in draws:
        for place in np.argsort(-draw, kind="stable").tolist():
            if place not in chosen:
                chosen.append(place)
                break
        if len(chosen) == min(count, draws.shape[1]):
            break
    return chosen


def promotions(view: View, settings: SearchSettings) -> list[Trial]:
    """Screened structures that are the likeliest to beat the leader, to be trained to the full."""
    paused = list(highest_rungs(view.past, settings.epochs))
    if not paused:
        return []
    chances = beating_leader(view, paused)
    order = sorted(range(len(paused)), key=lambda place: -chances[place])
    most = max(1, settings.chosen // 4)
    return [first_trial(paused[place], settings) for place in order[:most] if chances[place] >= PROMOTED]


def repeats(view: View, settings: SearchSettings) -> list[Trial]:
    """Another seed for the first two, to learn what a seed does here; then for the less known of them, as long as
    they can hardly be told apart."""
    pair = view.ranking[:2]
    if all(len(runs) == 1 for runs in view.full.values()):
        return [repeat(structure, view, settings) for structure in pair]
    if len(pair) < 2 or beating_leader(view, pair[1:])[0] < CLOSE:
        return []
    lesser = min(pair, key=lambda structure: len(view.full[structure]))
    return [repeat(lesser, view, settings)] if len(view.full[lesser]) < SEEDS_AT_MOST else []


def repeat(structure: Structure, view: View, settings: SearchSettings) -> Trial:
    return Trial(structure, settings.epochs, settings.seed * SEEDS_APART + len(view.full[structure]))


def beating_leader(view: View, structures: Sequence[Structure]) -> list[float]:
    """Probability that each structure's value is above the leader's."""
    means, covariance = view.surrogate.posterior([view.leader, *structures])
    deviations = np.sqrt(np.maximum(np.diag(covariance) + covariance[0, 0] - 2 * covariance[0], 1e-12))
    chances: list[float] = ndtr((means - means[0]) / deviations)[1:].tolist()
    return chances


def ended(past: Sequence[Record], trials: Sequence[Trial], hopeless: int, settings: SearchSettings) -> str:
    """Why there is no further round; empty if there is one."""
    tried = {record.trial.structure for record in past}
    if settings.trials is not None and len(tried) >= settings.trials and not trials:
        return f"all {settings.trials} structures are tried"
    looked_around = len(tried) - len(known_good()) >= ROUNDS_LOOKED * settings.chosen
    if hopeless >= ROUNDS_IMPROBABLE and looked_around:
        return f"a gain of more than {TOLERANCE} has become improbable"
    if not trials:
        return "no new structure is left around the best"
    return ""


def finals(view: View, settings: SearchSettings) -> list[Trial]:
    """The best structures and the human-designed ones that may be the best of those, with fresh seeds."""
    chosen = finalists(view.ranking, view.means, view.past, settings)
    return [  # seed by seed, so that finals which are cut short have as many of each
        Trial(structure, settings.epochs, seed) for seed in fresh_seeds(settings) for structure in chosen
    ]


def finalists(
    ranking: Sequence[Structure],
    means: Mapping[Structure, float],
    past: Sequence[Record],
    settings: SearchSettings,
) -> list[Structure]:
    """The first ones, and the human-designed ones that a seed may have kept from being the best of those."""
    human = [structure for structure in ranking if is_human_designed(structure)]
    noise = seed_variance(past, settings.epochs) ** 0.5
    rivals = [structure for structure in human if means[structure] > means[human[0]] - 2 * noise]
    return list(dict.fromkeys([*ranking[: settings.finalists], *rivals]))


def expected_finals(past: Sequence[Record], settings: SearchSettings) -> int:
    """How many trainings the finals would take if they began now, by plain means, which cost nothing; and one
    finalist more, whom the posterior may add."""
    runs = full_runs(past, settings.epochs)
    if not runs:
        return most_finals(settings)
    means = {one: fmean(run.valid_mrr for run in of_one) for one, of_one in runs.items()}
    ranking = sorted(means, key=lambda structure: -means[structure])
    expected = (len(finalists(ranking, means, past, settings)) + 1) * settings.fresh_seeds
    return min(expected, most_finals(settings))


def most_finals(settings: SearchSettings) -> int:
    """How many trainings the finals may take."""
    return (settings.finalists + len(HUMAN)) * settings.fresh_seeds
