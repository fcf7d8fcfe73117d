"""Random steps from a structure to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.algebra.structure import from_cells

if TYPE_CHECKING:
    from random import Random

    from autosf.algebra.structure import Structure


def with_random_terms(structure: Structure, count: int, rng: Random) -> Structure:
    """The structure with `count` more blocks: terms s <h_i, r_j, t_k> with i, j, k and s drawn at random.

    A term on a taken cell would not add a block and is drawn again, which is the same as drawing (i, k) among
    the free cells.
    """
    cells = list(structure.cells)
    free = [place for place, cell in enumerate(cells) if not cell]
    for place in rng.sample(free, count):
        cells[place] = rng.choice((1, -1)) * rng.randint(1, structure.parts)
    return from_cells(cells)
