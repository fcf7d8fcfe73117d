"""Counting and listing agree."""

from math import comb

import pytest

from autosf.algebra.burnside import class_counts
from autosf.algebra.invariance import canonical
from autosf.algebra.space import classes, five_f4, reachable_classes, space
from autosf.errors import UserError


@pytest.mark.parametrize("group", ["paper", "extended"])
@pytest.mark.parametrize("constraint", ["cover", pytest.param("c2", marks=pytest.mark.slow)])
@pytest.mark.parametrize("blocks", [4, 5, 6])
def test_burnside_counts_what_is_listed(group, constraint, blocks):
    assert class_counts(group, constraint)[blocks] == len(classes(blocks, group, constraint))


def test_burnside_on_two_parts_agrees_with_listing_all_structures():
    from itertools import product

    from autosf.algebra.constraints import covers
    from autosf.algebra.structure import Structure

    found = {}
    for cells in product(range(-2, 3), repeat=4):
        structure = Structure((cells[:2], cells[2:]))
        if covers(structure):
            found.setdefault(structure.blocks, set()).add(canonical(structure))
    assert class_counts("paper", "cover", parts=2) == tuple(len(found.get(b, ())) for b in range(5))


def test_the_largest_space_is_counted():
    """All sixteen cells filled with all four parts: nearly every class has all its 9,216 images."""
    structures = sum((-1) ** k * comb(4, k) * (8 - 2 * k) ** 16 for k in range(5))
    assert 1 <= class_counts("paper", "cover")[16] * 9_216 / structures < 1.001


def test_listed_classes_are_canonical_sorted_and_distinct():
    listed = classes(5)
    assert listed == sorted(set(map(canonical, listed)))


def test_reachable_classes_are_classes():
    assert set(reachable_classes(5, "extended", "c2")) <= set(classes(5, "extended", "c2"))


def test_fewer_blocks_than_parts_leave_nothing():
    assert space(3).classes == 0
    assert space(3, reachable=True).classes == 0


def test_more_than_seven_blocks_are_counted_without_c1():
    count = space(8)
    assert (count.classes, count.c1_classes) == (10_292_842, None)


@pytest.mark.parametrize(("blocks", "reachable"), [(0, False), (17, False), (8, True)])
def test_impossible_questions_are_the_users_mistake(blocks, reachable):
    with pytest.raises(UserError, match="blocks: expected"):
        space(blocks, reachable=reachable)


def test_two_parts_have_two_smallest_structures():
    assert len(five_f4(2)) == 2
