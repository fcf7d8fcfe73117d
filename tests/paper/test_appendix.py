"""The Appendix: SRFs by Alg. 3, case by case."""

from itertools import permutations, product

import pytest
from hypothesis import given, settings

from autosf.algebra.features import cases, one_hot, srf
from autosf.algebra.structure import Structure
from autosf.algebra.zoo import ZOO, named
from strategies import structures

# S1 to S11, with the paper's example assignments.
EXAMPLES = [
    (1, 2, 3, 4),
    (1, 1, 2, 2),
    (1, 1, 2, 3),
    (1, 1, 1, 2),
    (1, 1, 1, 1),
    (0, 1, 2, 3),
    (0, 1, 1, 2),
    (0, 1, 1, 1),
    (0, 0, 1, 2),
    (0, 0, 1, 1),
    (0, 0, 0, 1),
]


def alg_3(structure: Structure) -> tuple[int, ...]:
    """SRF generation as the paper writes it: try every permutation and every choice of signs."""
    features = []
    for example in EXAMPLES:
        even = odd = 0
        for order in set(permutations(example)):
            for flips in product((1, -1), repeat=4):
                v = (0, *(s * x for s, x in zip(flips, order, strict=True)))
                g = [[v[c] if c >= 0 else -v[-c] for c in row] for row in structure.rows]
                transposed = [list(column) for column in zip(*g, strict=True)]
                even |= g == transposed
                odd |= g == [[-x for x in row] for row in transposed]
        features += [int(even), int(odd)]
    return tuple(features)


@settings(max_examples=60)
@given(structures())
def test_srf_equals_alg_3(structure):
    assert srf(structure) == alg_3(structure)


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_srf_of_the_zoo_equals_alg_3(known):
    assert srf(known.structure) == alg_3(known.structure)


def test_srf_has_22_entries():
    assert len(cases(4)) == 11
    assert len(srf(named("simple").structure)) == 22


def test_the_cases_come_in_the_papers_order():
    groups = [tuple(sorted((e.count(v) for v in set(e) - {0}), reverse=True)) for e in EXAMPLES]
    assert list(cases(4)) == groups


def test_one_hot_has_96_entries():
    encoded = one_hot(named("quate").structure)
    assert len(encoded) == 96
    assert sum(encoded) == 2 * 16  # a label and a sign for each of the sixteen cells


SRF_TABLE = {
    "distmult": "10 10 10 10 10 10 10 10 10 10 10",
    "analogy": "00 00 00 00 00 10 10 10 10 10 11",
    "complex": "00 00 00 00 00 00 00 00 11 11 11",
    "simple": "00 11 00 00 11 00 00 00 00 11 00",
    "autosf-wn18": "00 11 00 00 11 00 00 00 00 11 00",
    "autosf-fb15k": "00 11 00 00 11 00 00 00 00 11 00",
    "autosf-wn18rr": "00 10 10 10 10 00 10 10 10 11 10",
    "autosf-fb15k237": "00 00 00 00 00 00 00 00 00 00 10",
    "autosf-yago3-10": "00 10 10 10 10 00 10 10 10 10 10",
}


@pytest.mark.parametrize(("name", "expected"), SRF_TABLE.items())
def test_srf_table(name, expected):
    features = srf(named(name).structure)
    assert " ".join(f"{a}{b}" for a, b in zip(features[::2], features[1::2], strict=True)) == expected


def test_sec_5_b2_fb15k237_can_only_be_symmetric_under_s11():
    features = srf(named("autosf-fb15k237").structure)
    assert [i for i, bit in enumerate(features) if bit] == [20]


def test_sec_5_b2_the_finds_on_wn18_and_fb15k_have_the_same_srf():
    assert srf(named("autosf-wn18").structure) == srf(named("autosf-fb15k").structure)
