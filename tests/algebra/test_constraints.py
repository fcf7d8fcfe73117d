"""C1 with its assignments, C2 with its reasons, and what Alg. 2 can reach."""

from itertools import permutations, product

from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.constraints import (
    c2_reasons,
    can_be_inverse,
    covers,
    inverting_names,
    is_reachable,
    permanent,
    relation_kinds,
    satisfies_c1,
    satisfies_c2,
    skew_symmetric,
    symmetric,
    transversals,
)
from autosf.algebra.invariance import renamed, transposed
from autosf.algebra.space import reachable_classes
from autosf.algebra.structure import Structure, from_cells
from autosf.algebra.zoo import named
from scoring import block_matrix, flipped, negated
from strategies import structures, twin_of


@given(structures(), st.lists(st.integers(-5, 5).filter(bool), min_size=4, max_size=4, unique_by=abs))
def test_assignments_solve_their_equation(structure, free):
    for family, turned in ((symmetric(structure), lambda g: g), (skew_symmetric(structure), negated)):
        g = block_matrix(structure, family.vector(free))
        assert flipped(g) == turned(g)
        assert any(map(any, g)) == family.possible


@given(structures())
def test_assignments_miss_no_solution(structure):
    """Every small r that makes g symmetric or skew-symmetric is of the family's form."""
    for family, turned in ((symmetric(structure), lambda g: g), (skew_symmetric(structure), negated)):
        for r in product((-1, 0, 1, 2), repeat=4):
            g = block_matrix(structure, list(map(float, r)))
            if flipped(g) == turned(g):
                free = {abs(v): (1 if v > 0 else -1) * x for v, x in zip(family.values, r, strict=True)}
                expected = [0 if not v else (1 if v > 0 else -1) * free[abs(v)] for v in family.values]
                assert list(r) == expected


@given(structures())
def test_inverse_is_found_exactly_when_a_small_pair_exists(structure):
    """Brute force over r, r' in {-1, 0, 1}: a pair with g(r)^T = g(r') != g(r)."""
    matrices = {
        tuple(tuple(r[abs(c) - 1] * (1 if c > 0 else -1) if c else 0 for c in row) for row in structure.rows)
        for r in product((-1, 0, 1), repeat=4)
    }
    turned = ((g, tuple(zip(*g, strict=True))) for g in matrices)
    assert any(t in matrices and t != g for g, t in turned) == can_be_inverse(structure)


@given(structures(blocks=(0, 8)))
def test_inverting_names_are_found_exactly_when_renaming_transposes(structure):
    """Brute force over all 384 signed permutations of the relation parts."""
    turned = transposed(structure)
    signed = [
        tuple(s * k for s, k in zip(signs, order, strict=True))
        for order in permutations(range(1, 5))
        for signs in product((1, -1), repeat=4)
    ]
    solving = [names for names in signed if renamed(structure, names) == turned]
    names = inverting_names(structure)
    assert (names in solving) if solving else names is None


def test_inverting_names_of_the_human_designed():
    found = {name: inverting_names(named(name).structure) for name in ("distmult", "complex", "simple")}
    assert found == {"distmult": (1, 2, 3, 4), "complex": (1, 2, -3, -4), "simple": (3, 4, 1, 2)}
    assert inverting_names(named("autosf-fb15k237").structure) is None


def test_assignments_read_in_words():
    assert str(symmetric(named("distmult").structure)) == "always"
    assert str(skew_symmetric(named("distmult").structure)) == "never"
    assert str(skew_symmetric(named("autosf-wn18rr").structure)) == "r2 = -r1, r3 = 0, r4 = 0"


def test_the_winner_of_fb15k237_cannot_model_inverses():
    assert relation_kinds(named("autosf-fb15k237").structure) == ("symmetric", "asymmetric")


@given(structures(), st.data())
def test_c1_and_c2_do_not_depend_on_the_representative(structure, data):
    paper, extended = data.draw(twin_of(structure, "paper")), data.draw(twin_of(structure, "extended"))
    assert satisfies_c1(extended) == satisfies_c1(structure)
    assert satisfies_c2(paper) == satisfies_c2(structure)
    assert satisfies_c2(extended, up_to_sign=True) == satisfies_c2(structure, up_to_sign=True)
    assert covers(extended) == covers(structure)


@given(structures(), st.booleans())
def test_c2_in_short_and_in_words_agree(structure, up_to_sign):
    assert satisfies_c2(structure, up_to_sign) == (not c2_reasons(structure, up_to_sign))


def test_repeats_up_to_sign_need_the_extended_reading():
    opposite = Structure(((1, 2, 0, 0), (-1, -2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 4)))
    assert satisfies_c2(opposite)
    assert c2_reasons(opposite, up_to_sign=True) == ["rows 1 and 2 are opposite"]


@given(structures(blocks=(6, 16)))
def test_c2_implies_cover(structure):
    assert covers(structure) or not satisfies_c2(structure)


@given(structures(), st.data())
def test_transversals_do_not_depend_on_the_representative(structure, data):
    assert transversals(data.draw(twin_of(structure, "extended"))) == transversals(structure)


@given(structures())
def test_ways_to_choose_cells_are_those_of_the_plain_definition(structure):
    plain = [[structure.rows[i][j] for i, j in enumerate(order)] for order in permutations(range(4))]
    assert permanent(structure) == sum(map(all, plain))
    assert transversals(structure) == sum(sorted(map(abs, cells)) == [1, 2, 3, 4] for cells in plain)


def test_one_f4_is_found_where_there_are_too_many_to_count():
    assert is_reachable(from_cells([(i ^ j) + 1 for i in range(16) for j in range(16)]))


def test_reachable_is_what_grows_from_an_f4():
    assert all(map(is_reachable, reachable_classes(5)))
    assert transversals(named("distmult").structure) == 1
    assert transversals(named("quate").structure) == 8  # the transversals of Klein's Latin square
