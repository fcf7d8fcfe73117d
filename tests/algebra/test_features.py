"""Features are constant on each class and tell classes apart."""

from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.features import ENCODERS, cases, invariant_names, invariants, one_hot, srf
from autosf.algebra.space import reachable_classes
from autosf.algebra.zoo import named
from strategies import structures, twin_of


@given(st.sampled_from([2, 4, 6]).flatmap(structures), st.data())
def test_invariants_are_constant_on_each_class_of_the_extended_group(structure, data):
    assert invariants(data.draw(twin_of(structure, "extended"))) == invariants(structure)


def test_invariants_are_named():
    values = dict(zip(invariant_names(4), invariants(named("complex").structure), strict=True))
    assert values["blocks"] == 8
    assert values["opposite pairs"] == 2
    assert values["symmetric dimension"] == 2
    assert values["diagonal cells"] == 4
    assert values["transversals"] == 0
    kinds = [values[f"parts {how} by inversion"] for how in ("kept", "exchanged", "turned")]
    assert kinds == [2, 0, 2]


def test_invariants_are_finer_than_srfs():
    """27 SRFs cover all reachable f^6 classes, so they cannot order them finely."""
    listed = reachable_classes(6)
    assert len({srf(structure) for structure in listed}) == 27
    extended = reachable_classes(6, "extended")
    assert len({invariants(structure) for structure in extended}) > 600


@given(structures())
def test_one_hot_decodes_to_the_structure(structure):
    code = one_hot(structure)
    cells = []
    for start in range(0, 96, 6):
        label = sum(k * bit for k, bit in enumerate(code[start : start + 4], 1))
        cells.append(label * (code[start + 4] - code[start + 5]))
    assert tuple(cells) == structure.cells


def test_cases_grow_with_the_number_of_parts():
    assert [len(cases(parts)) for parts in (2, 4, 6, 8)] == [3, 11, 29, 66]


def test_every_encoder_has_a_name():
    sizes = {name: len(encode(named("simple").structure)) for name, encode in ENCODERS.items()}
    assert sizes == {"srf": 22, "one-hot": 96, "invariants": len(invariant_names(4))}
