"""Sec. III: the search problem and the unified representation of bilinear scoring functions."""

import cmath
import random
from math import isclose

import pytest

from autosf.algebra.constraints import relation_kinds, skew_symmetric, symmetric
from autosf.algebra.structure import Structure, split
from autosf.algebra.zoo import ZOO, named
from scoring import bilinear, block_matrix, flipped, negated, parts_of, random_vector, score, triple_dot

D = 12


@pytest.fixture(params=range(5))
def vectors(request):
    rng = random.Random(request.param)
    return tuple(random_vector(rng, D) for _ in range(3))


def as_complex(real, imaginary):
    return [complex(a, b) for a, b in zip(real, imaginary, strict=True)]


def hermitian(h, r, t):
    """Re(<h, r, conj(t)>) as Trouillon et al. write it."""
    return sum(a * b * c.conjugate() for a, b, c in zip(h, r, t, strict=True)).real


def test_distmult_is_the_triple_dot_product(vectors):
    assert isclose(score(named("distmult").structure, *vectors), triple_dot(*vectors))


@pytest.mark.parametrize("name", ["complex", "hole"])
def test_complex_is_the_real_part_of_the_hermitian_product(name, vectors):
    h, r, t = ([as_complex(v[0] + v[1], v[2] + v[3])] for v in (parts_of(v, 4) for v in vectors))
    # The paper's layout: parts 1 and 2 are real, parts 3 and 4 imaginary. Its equation for ComplEx has
    # + h_re r_im t_im - h_im r_im t_re, which is Re(<h, r, conj(t)>) exactly.
    assert isclose(score(named(name).structure, *vectors), hermitian(h[0], r[0], t[0]))


def test_hole_is_complex_by_circular_correlation():
    """HolE's r . (h correlated with t) is ComplEx after a Fourier transform (Hayashi and Shimbo)."""
    n, rng = 8, random.Random(3)
    h, r, t = (random_vector(rng, n) for _ in range(3))
    correlation = sum(r[k] * sum(h[i] * t[(i + k) % n] for i in range(n)) for k in range(n))
    spectra = [
        [sum(v[j] * cmath.exp(-2j * cmath.pi * j * k / n) for j in range(n)) for k in range(n)]
        for v in (h, r, t)
    ]
    fh, fr, ft = spectra

    def stacked(values):
        return [x.real for x in values] + [x.imag for x in values]

    # The correlation is the real number sum_k conj(Fh) Ft conj(Fr) / n, which is Re(<a, b, conj(c)>) / n with:
    a, b, c = ([x.conjugate() for x in v] for v in (fh, fr, ft))
    two_parts = Structure(((1, 2), (-2, 1)))
    assert isclose(score(two_parts, stacked(a), stacked(b), stacked(c)) / n, correlation)


def test_analogy_is_distmult_beside_complex(vectors):
    (h1, h2, h3, h4), (r1, r2, r3, r4), (t1, t2, t3, t4) = (parts_of(v, 4) for v in vectors)
    expected = triple_dot(h1 + h2, r1 + r2, t1 + t2)
    expected += hermitian(as_complex(h3, h4), as_complex(r3, r4), as_complex(t3, t4))
    assert isclose(score(named("analogy").structure, *vectors), expected)


@pytest.mark.parametrize("name", ["simple", "cp"])
def test_simple_crosses_two_embeddings(name, vectors):
    (hh, hb), (rh, rb), (th, tb) = (parts_of(v, 2) for v in vectors)
    expected = triple_dot(hh, rh, tb) + triple_dot(hb, rb, th)
    assert isclose(score(named(name).structure, *vectors), expected)


def hamilton(p, q):
    """Product of two quaternions."""
    a, b, c, d = p
    e, f, g, h = q
    return (
        a * e - b * f - c * g - d * h,
        a * f + b * e + c * h - d * g,
        a * g - b * h + c * e + d * f,
        a * h + b * g - c * f + d * e,
    )


def test_quate_is_the_hamilton_product_dotted_with_the_tail(vectors):
    h, r, t = (list(zip(*parts_of(v, 4), strict=True)) for v in vectors)
    expected = sum(
        sum(x * y for x, y in zip(hamilton(a, b), c, strict=True)) for a, b, c in zip(h, r, t, strict=True)
    )
    assert isclose(score(named("quate").structure, *vectors), expected)


# The searched functions, term by term from the authors' list, counted from one.
WRITTEN_OUT = {
    "autosf-fb15k237": "113 222 334 441",
    "autosf-fb15k": "114 223 332 441 122 231",
    "autosf-yago3-10": "111 222 333 444 -422 -234",
    "autosf-wn18": "114 223 332 441 -443 -314 122 231 -331 -123",
    "autosf-wn18rr": "112 221 333 444 242 141 -413 -324 -422 -214",
}


@pytest.mark.parametrize(("name", "terms"), WRITTEN_OUT.items())
def test_the_published_finds_have_the_terms_of_the_authors_list(name, terms, vectors):
    h, r, t = (parts_of(v, 4) for v in vectors)
    expected = 0.0
    for term in terms.split():
        sign, (i, k, j) = (-1 if term[0] == "-" else 1), (int(c) - 1 for c in term.lstrip("-"))
        expected += sign * triple_dot(h[i], r[k], t[j])
    assert isclose(score(named(name).structure, *vectors), expected)


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_every_function_is_h_times_g_of_r_times_t(known, vectors):
    h, r, t = vectors
    assert isclose(score(known.structure, h, r, t), bilinear(h, block_matrix(known.structure, r), t))


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
@pytest.mark.parametrize("factor", [2, 3])
def test_any_further_split_covers_the_same_functions(known, factor):
    """Sec. III-B3: any even number of parts k >= 4 can be used."""
    rng = random.Random(1)
    d = 8 * factor
    vectors = [random_vector(rng, d) for _ in range(3)]

    def regrouped(v):  # sub-part m of part i stands at i + 4m
        fine = parts_of(v, 4 * factor)
        return [x for i in range(4) for m in range(factor) for x in fine[i + 4 * m]]

    coarse = score(known.structure, *map(regrouped, vectors))
    assert isclose(score(split(known.structure, factor), *vectors), coarse)


# Table I, last column.
TABLE_I = {
    "distmult": {"symmetric"},
    "complex": {"symmetric", "anti-symmetric", "asymmetric", "inverse"},
    "analogy": {"symmetric", "anti-symmetric", "asymmetric", "inverse"},
    "simple": {"symmetric", "anti-symmetric", "asymmetric", "inverse"},
}


@pytest.mark.parametrize(("name", "kinds"), TABLE_I.items())
def test_table_1_relation_types(name, kinds):
    assert set(relation_kinds(named(name).structure)) == kinds


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_table_2_requirements_on_f_follow_from_those_on_g(known, vectors):
    h, free, t = vectors
    structure = known.structure
    for family, sign in ((symmetric(structure), 1), (skew_symmetric(structure), -1)):
        if family.possible:
            r = [x for value in family.vector(free[:4]) for x in (value, 2 * value, -value)]
            g = block_matrix(structure, r)
            assert any(any(row) for row in g)
            assert flipped(g) == (g if sign > 0 else negated(g))
            assert isclose(score(structure, t, r, h), sign * score(structure, h, r, t), abs_tol=1e-12)


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_table_2_f_is_asymmetric_where_g_is(known, vectors):
    h, r, t = vectors
    g = block_matrix(known.structure, r)
    is_asymmetric = "asymmetric" in relation_kinds(known.structure)
    assert (flipped(g) != g) == is_asymmetric
    backward, forward = score(known.structure, t, r, h), score(known.structure, h, r, t)
    assert isclose(backward, forward, abs_tol=1e-12) == (not is_asymmetric)


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_table_2_two_relations_are_inverse_where_g_of_one_is_the_transpose_of_the_other(known, vectors):
    """r and r' are the sum and the difference of one that makes g symmetric and one that makes it skew."""
    h, free, t = vectors
    even, odd = symmetric(known.structure).vector(free[:4]), skew_symmetric(known.structure).vector(free[4:8])
    one, other = ([a + sign * b for a, b in zip(even, odd, strict=True)] for sign in (1, -1))
    g = block_matrix(known.structure, one)
    assert flipped(g) == block_matrix(known.structure, other)
    assert (flipped(g) != g) == ("inverse" in relation_kinds(known.structure))
    h, t = h[:4], t[:4]
    assert isclose(score(known.structure, t, one, h), score(known.structure, h, other, t), abs_tol=1e-12)
