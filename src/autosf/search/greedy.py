"""Alg. 2, the progressive greedy search (Sec. IV-B), whole or without its filter or predictor (Sec. V-E).

T, the records of the past, is all it knows: a step is a function of T and the settings. Structures are taken
in their canonical form under the paper's group; which of its equivalents a class is trained as, and which one
is built upon, makes no difference to the classes that follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from autosf.algebra.features import ENCODERS
from autosf.algebra.invariance import canonical
from autosf.algebra.space import five_f4
from autosf.algebra.structure import PARTS
from autosf.errors import UserError
from autosf.search.filter import passes_filter
from autosf.search.moves import with_random_terms
from autosf.search.predictor import HIDDEN, fit_predictor
from autosf.search.settings import all_asked, next_round, trials_done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record, Strategy
    from autosf.search.settings import SearchSettings

FRUITLESS_DRAWS = 1000  # in a row: then the surroundings of the parents count as exhausted


@dataclass(frozen=True, slots=True)
class Variant:
    """What Alg. 2 runs with: filter and predictor in the paper's search, one or none in its ablations."""

    filtered: bool = True  # without: what is drawn is what is trained, repeats included
    predictor: str | None = "srf"  # an encoder's name; without: K2 of H at random


WHOLE = Variant()


@dataclass(frozen=True, slots=True)
class Step:
    """One pass through steps 2 to 7: what was built upon, H^b, its predicted MRR, and the K2 to be trained."""

    parents: tuple[Structure, ...]
    candidates: tuple[Structure, ...]
    predicted: tuple[float, ...]  # empty without a predictor
    chosen: tuple[Structure, ...]


def alg_2(settings: SearchSettings, variant: Variant = WHOLE) -> Strategy:
    """The search for b = 4, 6, ..., B: all five f^4 first, then `rounds` greedy steps for each b."""
    if settings.blocks % 2:
        raise UserError(
            f"search setting blocks: Alg. 2 adds two at a time, expected an even number, found {settings.blocks}"
        )
    return progressive(settings, variant)


def progressive(settings: SearchSettings, variant: Variant) -> Strategy:
    """Steps 1 to 11."""
    past = list((yield next_round([canonical(f4) for f4 in five_f4()], [], settings)))
    for blocks in range(PARTS + 2, settings.blocks + 1, 2):
        for _ in range(settings.rounds):
            if all_asked(past, settings):
                return trials_done(past)
            step = greedy_step(past, blocks, settings, variant)
            if not step.chosen:
                break
            past += yield next_round(step.chosen, past, settings)
    if all_asked(past, settings):
        return trials_done(past)
    return f"every b up to {settings.blocks} is searched"


def greedy_step(past: Sequence[Record], blocks: int, settings: SearchSettings, variant: Variant) -> Step:
    """The next K2 structures with that many blocks, given all records so far; none if nothing new is left."""
    rng = Random(f"{settings.seed} {len(past)}")  # noqa: S311 - reproducible, not secret
    parents = best(with_blocks(past, blocks - 2), settings.parents)
    seen = {record.trial.structure for record in with_blocks(past, blocks)} if variant.filtered else None
    candidates = sampled(parents, settings.candidates, seen, rng)
    if variant.predictor is None or not candidates:
        chosen = rng.sample(candidates, min(settings.chosen, len(candidates)))
        return Step(tuple(parents), tuple(candidates), (), tuple(chosen))
    predict = fit_predictor(past, ENCODERS[variant.predictor], HIDDEN[variant.predictor], settings.seed)
    predicted = predict(candidates).tolist()
    chosen = highest(candidates, predicted, settings.chosen)
    return Step(tuple(parents), tuple(candidates), tuple(predicted), tuple(chosen))


def with_blocks(past: Sequence[Record], blocks: int) -> list[Record]:
    """T^b: the records of structures with b blocks."""
    return [record for record in past if record.trial.structure.blocks == blocks]


def best(records: Sequence[Record], count: int) -> list[Structure]:
    """The structures of the records with the highest validation MRR, the earlier of equals first.

    Without a filter a class may be among them twice.
    """
    ordered = sorted(records, key=lambda record: record.valid_mrr, reverse=True)
    return [record.trial.structure for record in ordered[:count]]


def sampled(
    parents: Sequence[Structure], count: int, seen: set[Structure] | None, rng: Random
) -> list[Structure]:
    """H^b (steps 2 to 6): so many canonical forms, each of a random parent with two random terms more.

    All pass the filter against `seen` and each other, or none is checked if `seen` is None. Fewer, when the
    surroundings of the parents hold no more.
    """
    found: list[Structure] = []
    barred = set(seen or ())
    fruitless = 0
    while parents and len(found) < count and fruitless < FRUITLESS_DRAWS:
        form = canonical(with_random_terms(rng.choice(parents), 2, rng))
        if seen is None or passes_filter(form, barred):
            found.append(form)
            barred.add(form)
            fruitless = 0
        else:
            fruitless += 1
    return found


def highest(candidates: Sequence[Structure], predicted: Sequence[float], count: int) -> list[Structure]:
    """The candidates with the highest predictions; of equals, and SRFs make many, the one drawn earlier."""
    ordered = sorted(range(len(candidates)), key=lambda place: -predicted[place])
    return [candidates[place] for place in ordered[:count]]
