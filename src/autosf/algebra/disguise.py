"""Which known scoring function a structure is, in whatever dress."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import lcm

from autosf.algebra.invariance import Group, canonical, transposed
from autosf.algebra.structure import PARTS, Structure, split
from autosf.algebra.turning import turned
from autosf.algebra.zoo import ZOO, Named


@dataclass(frozen=True, slots=True)
class Twin:
    """A known scoring function that the structure equals, and in which sense."""

    known: Named
    how: str


SAME = "the same rows"
BY_PAPER = "by the paper's invariances"
BY_SIGNS = "by flipping signs of entity parts as well"
BY_TRANSPOSITION = "by exchanging head and tail"
BY_TURNING = "after a turn of entity parts, with which it is not trained alike"


def twins(structure: Structure) -> list[Twin]:
    """Members of the zoo that are this very function, each with the mildest way to see it."""
    size = lcm(structure.parts, PARTS)
    dressed = split(structure, size // structure.parts)
    found = [Twin(known, how) for known in ZOO if (how := likeness(dressed, known, size))]
    return found or turned_twins(dressed)


def turned_twins(structure: Structure) -> list[Twin]:
    """The same after an orthogonal turn of the entity parts, for structures of the zoo's size."""
    if structure.parts != PARTS:
        return []
    forms = {canonical(form, "extended") for form in turned(structure)}
    return [Twin(known, BY_TURNING) for known in ZOO if known_form(known, PARTS, "extended") in forms]


def likeness(dressed: Structure, known: Named, size: int) -> str:
    """How the structure, cut to `size` parts, is the known one; empty if it is not."""
    if dressed.blocks * PARTS != known.structure.blocks * size:  # cheap, and most often decides
        return ""
    if dressed == split(known.structure, size // PARTS):
        return SAME
    if canonical(dressed) == known_form(known, size, "paper"):
        return BY_PAPER
    if canonical(dressed, "extended") == known_form(known, size, "extended"):
        return BY_SIGNS
    if canonical(transposed(dressed), "extended") == known_form(known, size, "extended"):
        return BY_TRANSPOSITION
    return ""


@cache
def known_form(known: Named, size: int, group: Group) -> Structure:
    return canonical(split(known.structure, size // PARTS), group)
