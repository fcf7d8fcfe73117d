"""The canonical form is the same for every image, and different for inequivalent structures."""

from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autosf.algebra.disguise import BY_PAPER, BY_SIGNS, BY_TRANSPOSITION, SAME, twins
from autosf.algebra.invariance import (
    Group,
    are_equivalent,
    canonical,
    entity_flipped,
    equivalents,
    images,
    leading,
    named_and_signed,
    named_in_order,
    permuted,
    renamed,
    transposed,
)
from autosf.algebra.labelling import best_order
from autosf.algebra.structure import Structure, from_cells, split
from autosf.algebra.zoo import ZOO, named
from autosf.errors import UserError
from strategies import structures, twin_of

GROUPS: list[Group] = ["paper", "extended"]
ORDER = {"paper": 9_216, "extended": 9_216 * 8}  # the sign flip of all entity parts at once changes nothing


@pytest.mark.parametrize("group", GROUPS)
@given(st.data())
def test_every_image_has_the_same_canonical_form(group, data):
    parts = data.draw(st.sampled_from([2, 4, 6]))
    structure = data.draw(structures(parts))
    assert canonical(data.draw(twin_of(structure, group)), group) == canonical(structure, group)


@pytest.mark.parametrize("group", GROUPS)
@given(st.data())
def test_the_canonical_form_is_itself_an_image(group, data):
    structure = data.draw(structures(2))
    assert canonical(structure, group) in equivalents(structure, group)


@pytest.mark.parametrize("group", GROUPS)
@settings(max_examples=6)
@given(structures(4, blocks=(4, 9)), st.randoms(use_true_random=False))
def test_equal_forms_mean_equivalent_checked_against_the_listed_orbit(group, structure, rng):
    """Close relatives (two cells exchanged) share a form if and only if one is in the other's orbit."""
    orbit = {image.rows for image in images(structure, group)}
    assert ORDER[group] % len(orbit) == 0
    for _ in range(60):
        cells = list(structure.cells)
        one, other = rng.randrange(16), rng.randrange(16)
        cells[one], cells[other] = cells[other], rng.choice((1, -1)) * cells[one]
        relative = from_cells(cells)
        assert (canonical(relative, group) == canonical(structure, group)) == (relative.rows in orbit)


@pytest.mark.parametrize("group", GROUPS)
def test_on_two_parts_forms_and_orbits_agree_for_all_625_structures(group):
    everything = [Structure(((a, b), (c, d))) for a, b, c, d in product(range(-2, 3), repeat=4)]
    by_form = {}
    for structure in everything:
        by_form.setdefault(canonical(structure, group), set()).add(structure)
    assert all(members == equivalents(form, group) for form, members in by_form.items())


@given(structures(4))
def test_signing_few_orders_gives_the_form_that_signing_all_of_them_does(structure):
    """Runs keep forms in their ledgers: a faster way must lead to the same ones."""
    cells = structure.cells
    plain = [named_and_signed(pick(cells), 4) for pick in leading(tuple(map(bool, cells)), 4)]
    assert canonical(structure, "extended").cells == max(plain)


@pytest.mark.parametrize("signed", [named_in_order, named_and_signed])
@settings(max_examples=40)
@given(st.data())
def test_the_search_over_orders_agrees_with_listing_them(signed, data):
    """Two structures share the searched form exactly when they share the listed one."""
    group = "paper" if signed is named_in_order else "extended"
    one = data.draw(structures(4))
    other = data.draw(st.one_of(twin_of(one, group), structures(4)))
    same = best_order(one.cells, 4, lambda c: signed(c, 4)) == best_order(
        other.cells, 4, lambda c: signed(c, 4)
    )
    assert same == are_equivalent(one, other, group)


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
@pytest.mark.parametrize("factor", [2, 4])
def test_large_structures_have_forms_too(known, factor):
    """8 and 16 parts, highly symmetric: 16! orders could not be listed."""
    wide = split(known.structure, factor)
    size = wide.parts
    order = [*range(2, size + 1, 2), *range(1, size + 1, 2)]
    twin = renamed(permuted(wide, order), [-k if k % 3 else k for k in reversed(range(1, size + 1))])
    assert twin != wide
    assert are_equivalent(twin, wide)
    flipped = entity_flipped(twin, [(-1) ** (k // 3) for k in range(size)])
    assert are_equivalent(flipped, wide, "extended")


@settings(max_examples=30)
@given(structures(8, blocks=(8, 20)), st.data())
def test_eight_parts_random(structure, data):
    assert canonical(data.draw(twin_of(structure, "extended")), "extended") == canonical(
        structure, "extended"
    )


@given(structures())
def test_transposition_twice_is_nothing(structure):
    assert transposed(transposed(structure)) == structure


def test_transposition_is_not_in_the_group():
    one_way = Structure(((1, 2, 0, 0), (0, 3, 0, 0), (0, 0, 4, 0), (0, 0, 3, 1)))
    other = named("autosf-wn18").structure
    assert any(not are_equivalent(s, transposed(s), "extended") for s in (one_way, other))


def test_the_extended_group_joins_what_the_paper_keeps_apart():
    complex_ = named("complex").structure
    turned = entity_flipped(complex_, (1, 1, -1, 1))
    assert are_equivalent(turned, complex_, "extended")
    classes = {
        canonical(entity_flipped(named("autosf-wn18").structure, (1, a, b, c)))
        for a in (1, -1)
        for b in (1, -1)
        for c in (1, -1)
    }
    assert len(classes) > 1


class TestTwins:
    def test_itself(self):
        assert [(t.known.name, t.how) for t in twins(named("analogy").structure)] == [("analogy", SAME)]

    def test_by_the_papers_invariances(self):
        turned = renamed(permuted(named("complex").structure, (2, 4, 1, 3)), (3, -1, 4, 2))
        assert [(t.known.name, t.how) for t in twins(turned)] == [("complex", BY_PAPER)]

    def test_by_entity_signs(self):
        found = named("autosf-wn18").structure
        turned = next(
            image
            for signs in ((1, 1, 1, -1), (1, 1, -1, 1), (1, -1, 1, 1))
            if not are_equivalent(image := entity_flipped(found, signs), found)
        )
        assert [(t.known.name, t.how) for t in twins(turned)] == [("autosf-wn18", BY_SIGNS)]

    def test_by_transposition(self):
        lopsided = [k for k in ZOO if not are_equivalent(k.structure, transposed(k.structure), "extended")]
        assert lopsided
        for known in lopsided:
            assert [(t.known.name, t.how) for t in twins(transposed(known.structure))] == [
                (known.name, BY_TRANSPOSITION)
            ]

    def test_two_parts_are_recognised_too(self):
        assert [t.known.name for t in twins(Structure(((1, 2), (-2, 1))))] == ["complex"]

    def test_a_stranger_has_none(self):
        assert twins(Structure(((1, 0, 0, 0), (0, 2, 0, 0), (0, 3, 3, 0), (0, 0, 0, 4)))) == []


def test_a_large_structure_that_only_signs_tell_apart_is_refused_in_time():
    rng = Random(0)
    alike = from_cells([rng.choice((1, -1)) for _ in range(64)])
    with pytest.raises(UserError, match="8 parts so alike"):
        canonical(alike, "extended")
