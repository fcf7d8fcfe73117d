"""Structures as a search meets them: those it starts from, and how much features vary around them."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from autosf.algebra.constraints import satisfies_c2
from autosf.algebra.invariance import canonical
from autosf.algebra.space import five_f4
from autosf.algebra.structure import PARTS, from_cells
from autosf.algebra.zoo import ZOO
from autosf.search.many_invariants import many_invariants
from autosf.search.moves import neighbour

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure

POPULATION = 64  # structures that features are measured on


@cache
def known_good() -> tuple[Structure, ...]:
    """The zoo, which holds the paper's five winners, and the five f^4; one of each class."""
    structures = [known.structure for known in ZOO] + list(five_f4())
    return tuple(dict.fromkeys(canonical(s, "extended") for s in structures if s.parts == PARTS))


@cache
def feature_spread() -> NDArray[np.float64]:
    """The standard deviation of each feature among structures some moves away from the known good ones.

    Labels are few at first, and near each other: by their own spread, features that hardly vary among them would
    count as much as those that tell structures apart.
    """
    rng, population = Random(0), list(known_good())  # noqa: S311 - reproducible, not secret
    while len(population) < POPULATION:
        form = canonical(from_cells(neighbour(population, rng)), "extended")
        if satisfies_c2(form, up_to_sign=True):
            population.append(form)
    spread = many_invariants(population).std(0)
    return np.where(spread > 0, spread, 1.0)
