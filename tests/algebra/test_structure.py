"""One notation: rows as JSON, read exactly or refused with the cell's place."""

import json

import pytest
from hypothesis import given

from autosf.algebra.structure import (
    Structure,
    Term,
    from_cells,
    from_json,
    from_published,
    from_terms,
    split,
    to_json,
)
from autosf.algebra.zoo import FINDS, ZOO, named, structure_from
from autosf.errors import UserError
from strategies import structures


@given(structures(parts=6))
def test_json_round_trip(structure):
    assert from_json(to_json(structure)) == structure


@given(structures())
def test_terms_and_cells_are_the_structure(structure):
    assert from_terms(structure.terms()) == structure
    assert from_cells(structure.cells) == structure
    assert len(structure.terms()) == structure.blocks


def test_structures_are_hashable_ordered_and_frozen():
    one, other = Structure(((1, 0), (0, 2))), Structure(((1, 0), (2, 0)))
    assert len({one, Structure(((1, 0), (0, 2))), other}) == 2
    assert one < other
    with pytest.raises(AttributeError):
        one.rows = other.rows


def test_a_term_reads_like_the_paper():
    assert str(Term(-1, 3, 4, 1)) == "- <h3, r4, t1>"


MISTAKES = {
    "[[1,0],[0,3]]": 'structure, row 2, column 2: expected an integer from -2 to 2, found "3"',
    "[[1,0],[0,1.5]]": 'structure, row 2, column 2: expected an integer from -2 to 2, found "1.5"',
    "[[1,0],[0,true]]": 'structure, row 2, column 2: expected an integer from -2 to 2, found "true"',
    '[[1,"x"],[0,1]]': r'structure, row 1, column 2: expected an integer from -2 to 2, found ""x""',
    "[[1,0],[0]]": "structure, row 2: expected 2 cells, found 1",
    "[[1,0],7]": 'structure, row 2: expected a list of cells, found "7"',
    "[[1,0,0],[0,1,0],[0,0,1]]": "structure: expected an even number of rows from 2, found 3",
    "[]": "structure: expected an even number of rows from 2, found 0",
    "{}": 'structure: expected rows such as [[1,0],[0,2]], found "{}"',
    "[1,2,3,0]": "found a flat list (the released code's lists are read with --published)",
    "[[1,0],[0,": "(Expecting value at character 11)",
    "[" * 100_000: "expected JSON rows",
    "[[" + "9" * 5000 + "]]": "expected JSON rows",
    "[[NaN,0],[0,1]]": "row 1, column 1: expected an integer",
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.items(), ids=lambda value: str(value)[:20])
def test_a_mistake_is_told_with_its_place(text, message):
    with pytest.raises(UserError) as caught:
        from_json(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_the_published_list_of_fb15k():
    structure = from_published([3, 2, 1, 0, 1, 0, 1, 1, 2, 1, 0, 1])
    assert structure.rows == ((0, 2, 0, 1), (3, 0, 2, 0), (0, 3, 0, 0), (4, 0, 0, 0))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([0, 1, 2], "expected 4 numbers and then groups of four, found 3 numbers"),
        ([0, 1, 2, 3, 1], "groups of four"),
        ([0, 1, 2, 4], "expected its first numbers from 0 to 3"),
        ([0, 1, 2, 3, 0, 0, 1, 2], "number 8: expected a sign 1 or -1, found 2"),
        ([0, 1, 2, 3, 0, 0, 0, 1], "row 1, column 1: expected one term in this cell, found two"),
        ([0, 1, 2, 3, 0, 0, 9, 1], "expected a tail part from 1 to 4, found 10"),
    ],
)
def test_a_wrong_published_list_is_refused(numbers, message):
    with pytest.raises(UserError, match=r"list|row|term") as caught:
        from_published(numbers)
    assert message in str(caught.value)


def test_names_are_found_in_any_case_and_punctuation():
    assert structure_from("ComplEx") == structure_from(" HolE ") == named("complex").structure
    assert named("AutoSF_FB15k-237").name == "autosf-fb15k237"
    assert len(FINDS) == 5
    assert len({name for known in ZOO for name in known.names}) == 12


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UserError, match='unknown structure "simpl"; did you mean "simple"'):
        structure_from("simpl")


def test_splitting_complex_in_two_parts_gives_the_papers_four():
    assert split(Structure(((1, 2), (-2, 1))), 2).blocks == 8
    assert json.loads(to_json(split(Structure(((1, 0), (0, 2))), 2))) == [
        [1, 0, 0, 0],
        [0, 2, 0, 0],
        [0, 0, 3, 0],
        [0, 0, 0, 4],
    ]
