"""Each move changes what it says and nothing else; together they lead where Alg. 2 cannot."""

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.constraints import inverting_names, is_reachable, satisfies_c2
from autosf.algebra.invariance import are_equivalent, canonical, permuted, renamed, transposed
from autosf.algebra.space import five_f4
from autosf.algebra.structure import Structure, from_cells
from autosf.algebra.zoo import named
from autosf.search.moves import (
    cross,
    invert,
    neighbour,
    random_inversion,
    relabel,
    remove,
    resign,
    swap,
    with_random_terms,
)
from strategies import structures

DISTMULT = named("distmult").structure
COMPLEX = named("complex").structure
some_blocks = structures(blocks=(1, 16))
rngs = st.integers(0, 2**32).map(Random)


def moved(structure, move, *arguments):
    """The structure after a move on its cells."""
    cells = list(structure.cells)
    move(cells, *arguments)
    return from_cells(cells)


def neighbours(parents, rng, count):
    return [from_cells(neighbour(parents, rng)) for _ in range(count)]


def changes(one, other):
    """(before, after) of every cell that differs."""
    return [(a, b) for a, b in zip(one.cells, other.cells, strict=True) if a != b]


@given(structures(blocks=(0, 12)), st.integers(0, 4), rngs)
def test_adding_fills_exactly_so_many_empty_cells(structure, count, rng):
    changed = changes(structure, with_random_terms(structure, count, rng))
    assert len(changed) == count
    assert all(before == 0 and after != 0 for before, after in changed)


@given(some_blocks, st.integers(0, 3), rngs)
def test_removing_empties_exactly_so_many_cells_as_far_as_there_are_blocks(structure, count, rng):
    changed = changes(structure, moved(structure, remove, count, rng))
    assert len(changed) == min(count, structure.blocks)
    assert all(after == 0 for _, after in changed)


@given(some_blocks, rngs)
def test_relabelling_changes_one_label_and_keeps_its_sign(structure, rng):
    [(before, after)] = changes(structure, moved(structure, relabel, 4, rng))
    assert abs(before) != abs(after)
    assert before * after > 0


@given(some_blocks, rngs)
def test_resigning_turns_one_sign(structure, rng):
    [(before, after)] = changes(structure, moved(structure, resign, rng))
    assert before == -after != 0


@given(some_blocks, rngs)
def test_swapping_moves_one_block_and_keeps_what_the_cells_hold(structure, rng):
    image = moved(structure, swap, rng)
    changed = changes(structure, image)
    assert Counter(structure.cells) == Counter(image.cells)
    assert not changed or [before for before, _ in changed] == [after for _, after in reversed(changed)]
    assert len(changed) in (0, 2)  # none where both cells hold the same


@given(structures(blocks=(0, 16)), rngs)
def test_crossing_with_nothing_keeps_whole_rows(structure, rng):
    empty = Structure(((0,) * 4,) * 4)
    child = moved(structure, cross, empty.cells, 4, rng)
    assert all(row in (kept, (0,) * 4) for row, kept in zip(child.rows, structure.rows, strict=True))


@given(structures(parts=2), structures(parts=2), rngs)
def test_rows_of_a_crossing_come_from_one_or_from_one_equivalent_of_the_other(one, other, rng):
    """With two parts all 2 * 8 equivalents can be listed."""
    child = moved(one, cross, other.cells, 2, rng)
    names = [(s * a, t * b) for a, b in ((1, 2), (2, 1)) for s in (1, -1) for t in (1, -1)]
    twins = [renamed(permuted(other, order), name) for order in ((1, 2), (2, 1)) for name in names]
    assert any(
        all(row in pair for row, *pair in zip(child.rows, one.rows, twin.rows, strict=True)) for twin in twins
    )


def test_a_crossing_mixes_both_parents():
    rng = Random(0)
    children = {moved(DISTMULT, cross, COMPLEX.cells, 4, rng).blocks for _ in range(200)}
    assert children == {4, 5, 6, 7, 8}


@given(structures(blocks=(0, 16)), rngs)
def test_what_is_made_to_invert_is_transposed_by_its_names(structure, rng):
    names = random_inversion(4, rng)
    image = moved(structure, invert, names, rng)
    assert renamed(image, names) == transposed(image)


@given(some_blocks, rngs)
def test_what_inverts_already_stays(structure, rng):
    names = random_inversion(4, rng)
    image = moved(structure, invert, names, rng)
    assert moved(image, invert, names, rng) == image


@given(st.sampled_from([2, 4, 6]), rngs)
def test_inversions_undo_themselves_and_may_be_of_any_kind(parts, rng):
    names = random_inversion(parts, rng)
    assert sorted(map(abs, names)) == list(range(1, parts + 1))
    assert all(names[abs(name) - 1] * (1 if name > 0 else -1) == part for part, name in enumerate(names, 1))


def test_about_half_of_the_neighbours_invert():
    rng = Random(0)
    odd = named("autosf-fb15k237").structure
    for parent in (odd, COMPLEX):
        found = sum(inverting_names(near) is not None for near in neighbours([parent], rng, 400))
        assert 150 < found < 300


@given(st.lists(some_blocks, min_size=1, max_size=3), rngs)
def test_a_neighbour_has_blocks(parents, rng):
    assert all(near.blocks for near in neighbours(parents, rng, 10))


def test_neighbours_have_up_to_four_blocks_more_or_fewer_odd_numbers_included():
    rng = Random(0)
    found = Counter(near.blocks for near in neighbours([COMPLEX], rng, 3000))
    assert set(range(4, 13)) <= set(found)
    assert found[7] > 100
    assert found[9] > 100


TO_ANALOGY = (
    DISTMULT,
    Structure(((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 4), (0, 0, 0, 4))),
    Structure(((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 4), (0, 0, -4, 4))),
    named("analogy").structure,
)
TO_COMPLEX = (
    *TO_ANALOGY,
    Structure(((1, 2, 0, 0), (0, 2, 0, 0), (0, 0, 3, 4), (0, 0, -4, 3))),
    Structure(((1, 2, 0, 0), (-2, 2, 0, 0), (0, 0, 3, 4), (0, 0, -4, 3))),
    Structure(((1, 2, 0, 0), (-2, 1, 0, 0), (0, 0, 3, 4), (0, 0, -4, 3))),
)


@pytest.mark.parametrize("walk", [TO_ANALOGY, TO_COMPLEX], ids=["analogy", "complex"])
def test_what_alg_2_cannot_reach_is_few_moves_from_an_f4(walk):
    """Every step is one neighbour, and all on the way would pass the search's filter."""
    rng = Random(1)
    assert canonical(walk[0]) in map(canonical, five_f4())
    assert not is_reachable(walk[-1])
    for start, end in pairwise(walk):
        assert satisfies_c2(end, up_to_sign=True)
        assert any(are_equivalent(from_cells(neighbour([start], rng)), end, "extended") for _ in range(5000))
    assert are_equivalent(walk[-1], named("analogy" if walk is TO_ANALOGY else "complex").structure)
