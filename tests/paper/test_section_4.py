"""Sec. IV: expressiveness, invariance, the filter's and the search's arithmetic."""

import random
from itertools import combinations
from math import comb, factorial, isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.burnside import Coincidence, component_shapes, fixed_structures
from autosf.algebra.constraints import (
    c2_reasons,
    is_reachable,
    satisfies_c1,
    satisfies_c2,
    skew_symmetric,
    symmetric,
)
from autosf.algebra.features import srf
from autosf.algebra.invariance import (
    are_equivalent,
    canonical,
    entity_flipped,
    equivalents,
    images,
    permuted,
    renamed,
)
from autosf.algebra.space import classes, five_f4, grown, reachable_classes, space
from autosf.algebra.structure import Structure
from autosf.algebra.zoo import HUMAN_DESIGNED_FOUR, PUBLISHED, ZOO, named
from autosf.search.baselines import EMPTY, VALUES
from scoring import block_matrix, flipped, negated, random_vector, score
from strategies import signs, structures, twin_of

SIMPLE = named("simple").structure
EXPRESSIVE = [known.structure for known in ZOO if satisfies_c1(known.structure)]


def combined(structure: Structure, w1: float, w2: float, rng: random.Random) -> list[float]:
    """w1 * r + w2 * r' with r making g symmetric and r' making it skew-symmetric."""
    even = symmetric(structure).vector(random_vector(rng, 4))
    odd = skew_symmetric(structure).vector(random_vector(rng, 4))
    return [w1 * a + w2 * b for a, b in zip(even, odd, strict=True)]


@pytest.mark.parametrize("structure", EXPRESSIVE, ids=str)
class TestProposition1:
    """If g can be symmetric for some r and skew-symmetric for some r', f is expressive. Its four cases."""

    def setup_method(self):
        self.rng = random.Random(0)
        self.h, self.t = random_vector(self.rng, 4), random_vector(self.rng, 4)

    def test_symmetric_relations(self, structure):
        r = combined(structure, 1, 0, self.rng)
        assert flipped(block_matrix(structure, r)) == block_matrix(structure, r)
        assert isclose(score(structure, self.t, r, self.h), score(structure, self.h, r, self.t))

    def test_anti_symmetric_relations(self, structure):
        r = combined(structure, 0, 1, self.rng)
        assert flipped(block_matrix(structure, r)) == negated(block_matrix(structure, r))
        assert isclose(score(structure, self.t, r, self.h), -score(structure, self.h, r, self.t))

    def test_general_asymmetric_relations_reach_any_pair_of_scores(self, structure):
        even, odd = combined(structure, 1, 0, self.rng), combined(structure, 0, 1, self.rng)
        forward, backward = 3.0, -1.25  # wished f(h, r, t) and f(t, r, h)
        w1 = (forward + backward) / 2 / score(structure, self.h, even, self.t)
        w2 = (forward - backward) / 2 / score(structure, self.h, odd, self.t)
        r = [w1 * a + w2 * b for a, b in zip(even, odd, strict=True)]
        assert isclose(score(structure, self.h, r, self.t), forward)
        assert isclose(score(structure, self.t, r, self.h), backward)

    def test_inverse_relations(self, structure):
        state = self.rng.getstate()
        one = combined(structure, 0.7, 1.3, self.rng)
        self.rng.setstate(state)
        other = combined(structure, 0.7, -1.3, self.rng)
        assert flipped(block_matrix(structure, one)) == block_matrix(structure, other)
        assert isclose(score(structure, self.t, one, self.h), score(structure, self.h, other, self.t))


def test_distmult_does_not_follow_proposition_1():
    assert not satisfies_c1(named("distmult").structure)


def test_c1_is_violated_by_two_published_winners():
    """So it must not be a hard filter: a remark of ours, from the paper's own finds."""
    violating = {known.name for known in PUBLISHED if not satisfies_c1(known.structure)}
    assert violating == {"autosf-fb15k237", "autosf-yago3-10"}


def test_c2_asks_for_no_zero_line_no_repeats_and_all_parts():
    bad = Structure(((1, 0, 0, 2), (1, 0, 0, 2), (0, 0, 3, 0), (0, 0, 0, 0)))
    assert c2_reasons(bad) == [
        "r4 is not used",
        "row 4 is zero",
        "rows 1 and 2 are equal",
        "column 2 is zero",
    ]


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_all_known_functions_satisfy_c2(known):
    assert satisfies_c2(known.structure)


class TestFigure2:
    """Its six examples, for SimplE."""

    def test_a_simple(self):
        assert SIMPLE.rows == ((0, 0, 1, 0), (0, 0, 0, 2), (3, 0, 0, 0), (0, 4, 0, 0))

    def test_b_symmetric_by_r3_equal_r1_and_r4_equal_r2(self):
        assert str(symmetric(SIMPLE)) == "r3 = r1, r4 = r2"

    def test_c_skew_symmetric_by_opposite_signs(self):
        """The running text of Sec. IV-A1 says r3 = -r2, r4 = -r1; the caption's r3 = -r1, r4 = -r2 is right."""
        assert str(skew_symmetric(SIMPLE)) == "r3 = -r1, r4 = -r2"
        wrong = block_matrix(SIMPLE, [1.0, 2.0, -2.0, -1.0])
        assert flipped(wrong) != negated(wrong)

    def test_d_permuting_entity_parts(self):
        turned = permuted(SIMPLE, (1, 3, 2, 4))
        assert turned.rows == ((0, 1, 0, 0), (3, 0, 0, 0), (0, 0, 0, 2), (0, 0, 4, 0))
        assert are_equivalent(turned, SIMPLE)

    def test_e_permuting_relation_parts(self):
        turned = renamed(SIMPLE, (1, 4, 2, 3))
        assert turned.rows == ((0, 0, 1, 0), (0, 0, 0, 4), (2, 0, 0, 0), (0, 3, 0, 0))
        assert are_equivalent(turned, SIMPLE)

    def test_f_flipping_signs_of_r2_and_r4(self):
        turned = renamed(SIMPLE, (1, -2, 3, -4))
        assert turned.rows == ((0, 0, 1, 0), (0, 0, 0, -2), (3, 0, 0, 0), (0, -4, 0, 0))
        assert are_equivalent(turned, SIMPLE)


@given(structures(), st.permutations(range(1, 5)), st.permutations(range(1, 5)), signs(4), signs(4))
def test_equivalent_structures_give_equal_scores_with_transformed_embeddings(
    structure, order, names, relation_signs, entity_signs
):
    """Sec. IV-A2: h^T g1(r) t = h'^T g2(r') t' with embeddings changed accordingly."""
    rng = random.Random(0)
    h, r, t = (random_vector(rng, 4) for _ in range(3))
    turned = renamed(permuted(structure, order), [s * k for s, k in zip(relation_signs, names, strict=True)])
    turned = entity_flipped(turned, entity_signs)
    h2, t2 = ([s * v[i - 1] for s, i in zip(entity_signs, order, strict=True)] for v in (h, t))
    r2 = [0.0] * 4
    for k, (name, sign) in enumerate(zip(names, relation_signs, strict=True)):
        r2[name - 1] = sign * r[k]
    assert isclose(score(turned, h2, r2, t2), score(structure, h, r, t), abs_tol=1e-9)


class TestFilter:
    """Sec. IV-B2."""

    def test_there_are_9216_images(self):
        assert factorial(4) * factorial(4) * 2**4 == 9216
        assert sum(1 for _ in images(named("complex").structure)) == 9216

    def test_some_images_coincide(self):
        """Sec. IV-C: "at most", as there may exist the same structures in this set."""
        sizes = {known.name: len(equivalents(known.structure)) for known in ZOO}
        assert all(9216 % size == 0 for size in sizes.values())  # an orbit's size divides the group's order
        assert sizes["distmult"] == 9216 // 24  # renaming undoes every one of the 24 entity permutations

    def test_five_f4_are_left(self):
        assert len(classes(4, "paper", "c2")) == 5
        expected = ["0123", "0132", "0231", "1032", "1230"]
        assert ["".join(str(row.index(i)) for i, row in enumerate(s.rows, 1)) for s in five_f4()] == expected

    def test_the_five_f4_hold_distmult_simple_and_the_winner_of_fb15k237(self):
        forms = {canonical(structure) for structure in five_f4()}
        assert {canonical(named(n).structure) for n in ("distmult", "simple", "autosf-fb15k237")} <= forms

    def test_two_of_the_five_satisfy_c1(self):
        assert sum(map(satisfies_c1, five_f4())) == 2

    def test_the_whole_f4_has_about_700k_structures(self):
        """Sec. IV-B2 writes A_16^4 * 2^4 = 698,880: the four parts in order on four of 16 cells, with signs.

        These are the matrices that use every part, as Burnside's lemma counts them for the identity.
        """
        identity = (1, 2, 3, 4)
        unforced = component_shapes(identity, [Coincidence(identity, (1, 1, 1, 1), weight=1)])
        assert fixed_structures(unforced, identity, parts=4)[4] == 698_880


class TestSearchComplexity:
    """Sec. IV-C."""

    def test_the_whole_space(self):
        """9^16: each of the 16 cells is zero or one of eight values."""
        assert (1 + len(VALUES)) ** len(EMPTY.cells) == 1_853_020_188_851_841

    def test_two_billion_f6(self):
        """C_16^6 * 4^6 * 2^6."""
        assert comb(len(EMPTY.cells), 6) * len(VALUES) ** 6 == 2_099_249_152

    def test_the_greedy_step_leaves_some_thousands(self):
        """The paper says approximately 3 * 10^4; its own formula gives 5 * 4,224 = 21,120, of which five occur
        twice: 21,115 matrices."""
        steps = list(grown(6))
        assert len(steps) == len(five_f4()) * 4_224
        assert len(set(steps)) == 21_115

    def test_the_filter_leaves_4294_of_them(self):
        assert len(reachable_classes(6)) == 4_294
        assert len(reachable_classes(6, "extended")) == 1_400


# Exact sizes of the space, which the paper does not give: (blocks, group, constraint, reachable) -> classes, C1.
SIZES = {
    (4, "paper", "cover", False): (5, 2),
    (4, "paper", "c2", False): (5, 2),
    (4, "extended", "c2", False): (5, 2),
    (6, "paper", "cover", False): (24_756, 3_560),
    (6, "paper", "c2", False): (23_664, 3_416),
    (6, "paper", "cover", True): (4_294, 659),
    (6, "paper", "c2", True): (4_284, 657),
    (6, "extended", "cover", True): (1_400, 241),
}


@pytest.mark.parametrize(("which", "expected"), SIZES.items(), ids=str)
def test_size_of_the_space(which, expected):
    count = space(*which)
    assert (count.classes, count.c1_classes) == expected


@pytest.mark.parametrize("name", ["complex", "analogy"])
def test_alg_2_cannot_reach_complex_and_analogy(name):
    """Every structure grown from an f^4 contains four cells in distinct rows, columns and relation parts."""
    terms = named(name).structure.terms()
    for four in combinations(terms, 4):
        roles = ({t.head for t in four}, {t.relation for t in four}, {t.tail for t in four})
        assert any(len(role) < 4 for role in roles)


def test_alg_2_reaches_the_other_known_functions():
    out = {known.name for known in ZOO if not is_reachable(known.structure)}
    assert out == {"complex", "analogy"}


class TestProposition2:
    """SRFs are invariant, and tell symmetric from skew-symmetric ability."""

    @given(structures(), st.data())
    def test_invariant_to_permutations_and_flips(self, structure, data):
        assert srf(data.draw(twin_of(structure, "extended"))) == srf(structure)

    @given(structures(blocks=(1, 16)).filter(lambda s: len({abs(c) for c in s.cells} - {0}) == 4))
    def test_some_feature_is_set_exactly_if_the_property_can_be_had(self, structure):
        features = srf(structure)
        assert any(features[::2]) == symmetric(structure).possible
        assert any(features[1::2]) == skew_symmetric(structure).possible


def test_human_designed_four_are_those_of_table_1():
    assert HUMAN_DESIGNED_FOUR == ("distmult", "complex", "analogy", "simple")
