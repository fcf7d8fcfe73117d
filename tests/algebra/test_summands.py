"""A structure's summands share no part, cover all its terms, and are as small as can be."""

from hypothesis import given

from autosf.algebra.structure import Structure
from autosf.algebra.summands import Summand, belonging_together, summands
from autosf.algebra.zoo import named
from strategies import structures


def zoo(name: str) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(each) for each in summands(named(name).structure)]


def test_the_known_ones_are_sums_over_reals_complex_numbers_and_quaternions():
    assert zoo("distmult") == [((k,), (k,), (k,)) for k in (1, 2, 3, 4)]
    assert zoo("complex") == [((1, 3),) * 3, ((2, 4),) * 3]
    assert zoo("analogy") == [((1,),) * 3, ((2,),) * 3, ((3, 4),) * 3]
    assert zoo("quate") == [((1, 2, 3, 4),) * 3]


def test_a_part_is_another_thing_as_head_and_as_tail():
    assert zoo("simple") == [((1,), (1,), (3,)), ((2,), (2,), (4,)), ((3,), (3,), (1,)), ((4,), (4,), (2,))]


def test_terms_that_meet_later_are_joined():
    structure = Structure(((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 0), (-1, 2, 0, 0)))
    assert summands(structure) == (Summand((1, 2, 4), (1, 2), (1, 2)), Summand((3,), (3,), (3,)))
    assert belonging_together(structure, "tail") == ((1, 2), (3,), (4,))


@given(structures())
def test_summands_are_apart_and_every_term_lies_in_one(structure):
    found = summands(structure)
    for role in ("head", "relation", "tail"):
        groups = belonging_together(structure, role)
        assert sorted(part for group in groups for part in group) == list(range(1, structure.parts + 1))
    for term in structure.terms():
        inside = [
            each
            for each in found
            if term.head in each.head and term.relation in each.relation and term.tail in each.tail
        ]
        assert len(inside) == 1


@given(structures())
def test_no_summand_can_be_cut_in_two(structure):
    """From any of its terms all others are reached, from term to term with a part in common."""
    for each in summands(structure):
        rest = [term for term in structure.terms() if term.head in each.head]
        reached = [rest.pop()]
        while near := [t for t in rest if any(meets(t, other) for other in reached)]:
            reached += near
            rest = [t for t in rest if t not in near]
        assert not rest


def meets(one, other) -> bool:
    return one.head == other.head or one.relation == other.relation or one.tail == other.tail
