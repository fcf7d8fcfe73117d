"""Turns of the entity parts: what comes out spans the same matrices, and known functions are recognised."""

import numpy as np
import pytest
from hypothesis import given

from autosf.algebra.disguise import BY_TURNING, twins
from autosf.algebra.structure import Structure, from_rows
from autosf.algebra.turning import turned, turns
from autosf.algebra.zoo import ZOO, named
from strategies import structures


def matrices(structure: Structure) -> np.ndarray:
    """The matrix of each used relation part, flattened. [parts, 16]"""
    cells = np.array(structure.cells)
    used = sorted({abs(cell) for cell in structure.cells if cell})
    return np.array([np.where(np.abs(cells) == part, np.sign(cells), 0) for part in used], float)


def test_turns_are_orthogonal_and_differ_by_more_than_orders_and_signs():
    seen = set()
    for turn in np.array(turns()):
        assert np.allclose(turn @ turn.T, np.eye(4))
        # The products of three columns' entries, row by row, do not hang on a row's sign; orders are sorted away.
        signs = sorted(tuple(np.round(row * np.sign(row[np.argmax(row != 0)]), 6)) for row in turn)
        seen.add(str(signs))
    assert len(seen) == len(turns()) == 6 + 3 + 2


@given(structures(parts=4))
def test_what_is_turned_spans_the_same_matrices(structure):
    """Numerically, by the ranks of the two spaces and of both together."""
    before = matrices(structure)
    spaces = [
        np.array([(turn @ one.reshape(4, 4) @ turn.T).ravel() for one in before])
        for turn in np.array(turns())
    ]
    for form in turned(structure):
        after = matrices(form)
        assert len(after) == len(before)
        assert any(
            np.linalg.matrix_rank(np.vstack([space, after]), tol=1e-6) == len(after) for space in spaces
        )


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([[1, 2, 0, 0], [2, 1, 0, 0], [0, 0, 3, 4], [0, 0, 4, 3]], "distmult"),
        ([[1, 2, 3, 4], [2, 1, 4, 3], [3, 4, 1, 2], [4, 3, 2, 1]], "distmult"),
        ([[1, 2, 0, 0], [2, 1, 0, 0], [0, 0, 3, 4], [0, 0, -4, 3]], "analogy"),
    ],
)
def test_a_known_function_is_recognised_after_a_turn(rows, name):
    assert [(twin.known.name, twin.how) for twin in twins(from_rows(rows))] == [(name, BY_TURNING)]


def test_the_zoo_is_known_by_milder_ways_and_most_structures_by_none():
    for known in ZOO:
        assert BY_TURNING not in {twin.how for twin in twins(known.structure)}
    assert twins(from_rows([[1, 2, 0, 0], [3, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]])) == []
    assert list(turned(named("complex").structure))
