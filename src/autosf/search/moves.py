"""Random steps from a structure to another.

Moves work on a list of cells in reading order and change it: a search draws some hundred neighbours between two
rounds, most of which it has met before, and makes structures of the new ones alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.algebra.constraints import inverting_names, mirrored
from autosf.algebra.invariance import renamed_cells
from autosf.algebra.structure import Structure, from_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    # Whether a class, in its form under the extended group, may be tried.
    Within = Callable[[Structure], bool]

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
    add(cells, structure.parts, count, rng)
    return from_cells(cells)


def add(cells: list[int], parts: int, count: int, rng: Random) -> None:
    """`count` more blocks."""
    for place in rng.sample(empty(cells), count):
        cells[place] = rng.choice((1, -1)) * rng.randint(1, parts)


def remove(cells: list[int], count: int, rng: Random) -> None:
    """`count` blocks fewer, as far as there are any."""
    blocks = taken(cells)
    for place in rng.sample(blocks, min(count, len(blocks))):
        cells[place] = 0


def relabel(cells: list[int], parts: int, rng: Random) -> None:
    """Another relation part in one of the blocks."""
    place = rng.choice(taken(cells))
    others = [part for part in range(1, parts + 1) if part != abs(cells[place])]
    cells[place] = rng.choice(others) * (1 if cells[place] > 0 else -1)


def resign(cells: list[int], rng: Random) -> None:
    """One block's sign turned."""
    cells[rng.choice(taken(cells))] *= -1


def swap(cells: list[int], rng: Random) -> None:
    """One block exchanged with another cell, empty or not."""
    one = rng.choice(taken(cells))
    other = rng.choice([place for place in range(len(cells)) if place != one])
    cells[one], cells[other] = cells[other], cells[one]


def cross(cells: list[int], other: tuple[int, ...], parts: int, rng: Random) -> None:
    """Some rows kept, the rest those of an equivalent of the other drawn at random."""
    order = rng.sample(range(parts), parts)
    names = [rng.choice((1, -1)) * part for part in rng.sample(range(1, parts + 1), parts)]
    twin = renamed_cells([other[i * parts + j] for i in order for j in order], names)
    for start in range(0, len(cells), parts):
        row = slice(start, start + parts)
        cells[row] = rng.choice((cells[row], twin[row]))


def invert(cells: list[int], names: Sequence[int], rng: Random) -> None:
    """Changed so that the names transpose it.

    Of two mirrored cells one, drawn at random, decides about the other; on the diagonal only parts that keep their
    names may stand.
    """
    under_names = renamed_cells(cells, names)
    kept = [part for part, name in enumerate(names, 1) if name == part]
    for one, other in mirrored(len(names)):
        if one == other:
            if cells[one] and abs(cells[one]) not in kept:
                cells[one] = rng.choice(kept) if kept else 0
            continue
        decides, follows = rng.sample((one, other), 2)
        cells[follows] = under_names[decides]


def random_inversion(parts: int, rng: Random) -> tuple[int, ...]:
    """Names that undo themselves: some pairs of parts exchange theirs, the others keep them or turn their sign."""
    shuffled = rng.sample(range(1, parts + 1), parts)
    names = {part: rng.choice((1, -1)) * part for part in shuffled}
    for pair in range(rng.randint(0, parts // 2)):
        one, other = shuffled[2 * pair : 2 * pair + 2]
        names[one], names[other] = other, one
    return tuple(names[part] for part in range(1, parts + 1))


def taken(cells: Sequence[int]) -> list[int]:
    """Places of the blocks."""
    return [place for place, cell in enumerate(cells) if cell]


def empty(cells: Sequence[int]) -> list[int]:
    """Places without a block."""
    return [place for place, cell in enumerate(cells) if not cell]


def neighbour(parents: Sequence[Structure], rng: Random) -> tuple[int, ...]:
    """Cells one random move, sometimes two, away from one of the parents, every other time made to invert.

    Structures in which every relation has an exact inverse are a fiftieth of AutoSF-Bench, and a tenth or more of
    the best hundred on each of its graphs; few random moves lead from one of them to another (docs/notes/010).
    """
    parent = rng.choice(parents)
    cells, parts = list(parent.cells), parent.parts
    for _ in range(1 if rng.random() < 0.7 else 2):
        if any(cells):
            rng.choice(MOVES)(cells, parts, parents, rng)
    if rng.random() < INVERTED:
        invert(cells, inverting_names(parent) or random_inversion(parts, rng), rng)
    return tuple(cells) if any(cells) else parent.cells


MOVES: tuple[Callable[[list[int], int, Sequence[Structure], Random], None], ...] = (
    lambda cells, parts, _, rng: add(cells, parts, min(rng.choice((1, 2)), cells.count(0)), rng),
    lambda cells, _, __, rng: remove(cells, rng.choice((1, 2)), rng),
    lambda cells, parts, _, rng: relabel(cells, parts, rng),
    lambda cells, _, __, rng: resign(cells, rng),
    lambda cells, _, __, rng: swap(cells, rng),
    lambda cells, parts, parents, rng: cross(cells, rng.choice(parents).cells, parts, rng),
)
