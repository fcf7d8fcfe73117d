"""Random steps from a structure to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.algebra.constraints import inverting_names, mirrored
from autosf.algebra.invariance import permuted, renamed
from autosf.algebra.structure import Structure, from_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    Within = Callable[
        [Structure], bool
    ]  # whether a class, in its form under the extended group, may be tried

INVERTED = 0.5  # share of the neighbours in which every relation has an inverse


def anywhere(_: Structure) -> bool:
    """The whole space."""
    return True


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


def without_random_terms(structure: Structure, count: int, rng: Random) -> Structure:
    """The structure with `count` blocks fewer."""
    cells = list(structure.cells)
    for place in rng.sample(taken(cells), min(count, structure.blocks)):
        cells[place] = 0
    return from_cells(cells)


def relabelled(structure: Structure, rng: Random) -> Structure:
    """The structure with another relation part in one of its blocks."""
    cells = list(structure.cells)
    place = rng.choice(taken(cells))
    others = [part for part in range(1, structure.parts + 1) if part != abs(cells[place])]
    cells[place] = rng.choice(others) * (1 if cells[place] > 0 else -1)
    return from_cells(cells)


def resigned(structure: Structure, rng: Random) -> Structure:
    """The structure with one block's sign turned."""
    cells = list(structure.cells)
    cells[rng.choice(taken(cells))] *= -1
    return from_cells(cells)


def swapped(structure: Structure, rng: Random) -> Structure:
    """The structure with one block exchanged with another cell, empty or not."""
    cells = list(structure.cells)
    one = rng.choice(taken(cells))
    other = rng.choice([place for place in range(len(cells)) if place != one])
    cells[one], cells[other] = cells[other], cells[one]
    return from_cells(cells)


def crossed(one: Structure, other: Structure, rng: Random) -> Structure:
    """Some rows of one, the rest of an equivalent of the other drawn at random."""
    parts = range(1, one.parts + 1)
    turned = permuted(other, rng.sample(parts, len(parts)))
    named = renamed(turned, [rng.choice((1, -1)) * part for part in rng.sample(parts, len(parts))])
    rows = tuple(rng.choice(pair) for pair in zip(one.rows, named.rows, strict=True))
    return Structure(rows)


def inverting(structure: Structure, names: Sequence[int], rng: Random) -> Structure:
    """The structure changed so that the names transpose it.

    Of two mirrored cells one, drawn at random, decides about the other; on the diagonal only parts that keep their
    names may stand.
    """
    cells, under_names = list(structure.cells), renamed(structure, names).cells
    kept = [part for part, name in enumerate(names, 1) if name == part]
    for one, other in mirrored(structure.parts):
        if one == other:
            if cells[one] and abs(cells[one]) not in kept:
                cells[one] = rng.choice(kept) if kept else 0
            continue
        decides, follows = rng.sample((one, other), 2)
        cells[follows] = under_names[decides]
    return from_cells(cells)


def random_inversion(parts: int, rng: Random) -> tuple[int, ...]:
    """Names that undo themselves: some pairs of parts exchange theirs, the others keep them or turn their sign."""
    shuffled = rng.sample(range(1, parts + 1), parts)
    names = {part: rng.choice((1, -1)) * part for part in shuffled}
    for pair in range(rng.randint(0, parts // 2)):
        one, other = shuffled[2 * pair : 2 * pair + 2]
        names[one], names[other] = other, one
    return tuple(names[part] for part in range(1, parts + 1))


def taken(cells: list[int]) -> list[int]:
    """Places of the blocks."""
    return [place for place, cell in enumerate(cells) if cell]


def neighbour(parents: Sequence[Structure], rng: Random) -> Structure:
    """A structure one random move, sometimes two, away from one of the parents, every other one made to invert.

    Structures in which every relation has an exact inverse are a fiftieth of AutoSF-Bench, and a tenth or more of
    the best hundred on each of its graphs; few random moves lead from one of them to another (docs/notes/010).
    """
    parent = structure = rng.choice(parents)
    for _ in range(1 if rng.random() < 0.7 else 2):
        if not structure.blocks:
            break
        moves = [
            lambda s: with_random_terms(s, min(rng.choice((1, 2)), s.parts**2 - s.blocks), rng),
            lambda s: without_random_terms(s, rng.choice((1, 2)), rng),
            lambda s: relabelled(s, rng),
            lambda s: resigned(s, rng),
            lambda s: swapped(s, rng),
            lambda s: crossed(s, rng.choice(parents), rng),
        ]
        structure = rng.choice(moves)(structure)
    if rng.random() < INVERTED:
        names = inverting_names(parent) or random_inversion(parent.parts, rng)
        structure = inverting(structure, names, rng)
    return structure if structure.blocks else parent
