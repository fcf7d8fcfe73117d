"""A trainer that needs no training: every structure has a known score, so that a search takes milliseconds."""

from random import Random

from autosf.algebra.features import srf
from autosf.algebra.structure import Structure
from autosf.search.record import Record, Round, Strategy, Trial


def known_score(structure: Structure) -> float:
    """Partly in the structure's symmetries, partly its own."""
    return round(0.2 + 0.02 * sum(srf(structure)) + 0.1 * Random(str(structure)).random(), 6)


def trained(trials: Round) -> list[Record]:
    return [Record(trial, known_score(trial.structure), trial.epochs) for trial in trials]


def record_of(structure: Structure, mrr: float, failure: str = "") -> Record:
    return Record(Trial(structure, epochs=5, seed=0), mrr, epochs=5, failure=failure)


def rounds_of(strategy: Strategy, past: list[Record] | None = None) -> list[list[Trial]]:
    """All rounds a strategy asks for, the first ones answered from records of the past."""
    known = {record.trial: record for record in past or []}
    rounds = []
    try:
        asked = next(strategy)
        while True:
            rounds.append(list(asked))
            asked = strategy.send([known.get(trial) or trained([trial])[0] for trial in asked])
    except StopIteration:
        return rounds
