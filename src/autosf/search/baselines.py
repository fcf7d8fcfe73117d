"""What the paper compares Alg. 2 with on f^6 (Sec. V-D): random search and Bayes, that is, TPE."""

from __future__ import annotations

import warnings
from random import Random
from typing import TYPE_CHECKING

from autosf.algebra.constraints import covers, satisfies_c2
from autosf.algebra.invariance import canonical
from autosf.algebra.structure import PARTS, from_cells
from autosf.search.moves import anywhere, with_random_terms
from autosf.search.settings import next_round, trials_done

if TYPE_CHECKING:
    from collections.abc import Callable

    import optuna

    from autosf.algebra.structure import Structure
    from autosf.search.moves import Within
    from autosf.search.record import Record, Strategy
    from autosf.search.settings import SearchSettings

    At = Callable[[optuna.Trial, int], Structure]  # what a point with so many blocks stands for

EMPTY = from_cells([0] * PARTS * PARTS)
VALUES = tuple(sign * label for sign in (1, -1) for label in range(1, PARTS + 1))
FRUITLESS_ASKS = 1000  # in a row: then the sampler is stuck where C2 fails


def random_search(settings: SearchSettings, within: Within = anywhere) -> Strategy:
    """Rounds of K2 structures drawn uniformly from all matrices with b blocks that satisfy C2.

    C2 bounds the space; there is no filter: equivalents are drawn, and paid for, again.
    """
    rng = Random(settings.seed)  # noqa: S311 - reproducible, not secret
    past: list[Record] = []
    while count := round_size(past, settings):
        drawn = [canonical(random_structure(settings.blocks, rng, within)) for _ in range(count)]
        past += yield next_round(drawn, past, settings)
    return trials_done(past)


def random_structure(blocks: int, rng: Random, within: Within = anywhere) -> Structure:
    """One of the matrices with that many blocks that satisfy C2, all equally probable."""
    while True:
        structure = with_random_terms(EMPTY, blocks, rng)
        if covers(structure) and is_admitted(structure, within):  # the first fails most and faster
            return structure


def is_admitted(structure: Structure, within: Within) -> bool:
    return satisfies_c2(structure) and (within is anywhere or within(canonical(structure, "extended")))


def structure_at(point: optuna.Trial, blocks: int, grown_from: Structure = EMPTY) -> Structure:
    """The structure a point stands for: one after the other, a cell among those still free, and its value.

    So every point has exactly b blocks. Choosing a value or zero for each of the 16 cells would rarely do.
    """
    cells = list(grown_from.cells)
    free = [place for place, value in enumerate(cells) if not value]
    for block in range(blocks - grown_from.blocks):
        place = free.pop(point.suggest_categorical(f"cell {block + 1}", range(len(free))))
        cells[place] = point.suggest_categorical(f"value {block + 1}", VALUES)
    return from_cells(cells)


def tpe_search(settings: SearchSettings, within: Within = anywhere, at: At = structure_at) -> Strategy:
    """Rounds of K2 structures with b blocks, asked of Optuna's TPE together.

    The sampler takes the open points of a round for bad ones, so that it does not ask for one point eight times.
    """
    study = tpe_study(settings.seed)
    past: list[Record] = []
    while count := round_size(past, settings):
        asked = [feasible(study, settings.blocks, within, at) for _ in range(count)]
        if None in asked:
            return "TPE proposes no more structures that satisfy C2"
        points = [point for point in asked if point is not None]
        records = yield next_round([canonical(structure) for _, structure in points], past, settings)
        for (point, _), record in zip(points, records, strict=True):
            study.tell(point, record.valid_mrr)
        past += records
    return trials_done(past)


def tpe_study(seed: int) -> optuna.Study:
    """An empty study in memory that says nothing."""
    import optuna  # slow to import, and only this strategy needs it

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # Before Optuna 5, `constant_liar` warns of being an experiment.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32, constant_liar=True)
    return optuna.create_study(direction="maximize", sampler=sampler)


def feasible(
    study: optuna.Study, blocks: int, within: Within, at: At
) -> tuple[optuna.Trial, Structure] | None:
    """The next point that satisfies C2; those that do not are told to have an MRR of 0, untrained."""
    for _ in range(FRUITLESS_ASKS):
        point = study.ask()
        structure = at(point, blocks)
        if is_admitted(structure, within):
            return point, structure
        study.tell(point, 0.0)
    return None


def round_size(past: list[Record], settings: SearchSettings) -> int:
    """How many trials the next round has: K2, fewer in the last, none at the end.

    Without a number of trials there are as many as Alg. 2 has for one b.
    """
    whole = settings.trials or settings.rounds * settings.chosen
    return min(settings.chosen, whole - len(past))
