"""The scoring function as a plain sum over terms, and g(r) as a plain matrix: the definition, for tests."""

import random
from collections.abc import Sequence

from autosf.algebra.structure import Structure

Vector = list[float]


def parts_of(vector: Sequence[float], parts: int) -> list[Vector]:
    width = len(vector) // parts
    return [list(vector[k * width : (k + 1) * width]) for k in range(parts)]


def triple_dot(a: Sequence[float], b: Sequence[float], c: Sequence[float]) -> float:
    return sum(x * y * z for x, y, z in zip(a, b, c, strict=True))


def score(structure: Structure, h: Sequence[float], r: Sequence[float], t: Sequence[float]) -> float:
    """Sum of the signed terms (Definition 2)."""
    hs, rs, ts = (parts_of(v, structure.parts) for v in (h, r, t))
    return sum(
        term.sign * triple_dot(hs[term.head - 1], rs[term.relation - 1], ts[term.tail - 1])
        for term in structure.terms()
    )


def block_matrix(structure: Structure, r: Sequence[float]) -> list[Vector]:
    """g(r) written out: d x d, block (i, j) = diag of the signed part."""
    parts, d = structure.parts, len(r)
    width = d // parts
    g = [[0.0] * d for _ in range(d)]
    for i, row in enumerate(structure.rows):
        for j, cell in enumerate(row):
            for k in range(width) if cell else ():
                value = r[(abs(cell) - 1) * width + k]
                g[i * width + k][j * width + k] = value if cell > 0 else -value
    return g


def bilinear(h: Sequence[float], g: list[Vector], t: Sequence[float]) -> float:
    """h^T g t."""
    return sum(x * sum(m * y for m, y in zip(row, t, strict=True)) for x, row in zip(h, g, strict=True))


def flipped(g: list[Vector]) -> list[Vector]:
    return [list(column) for column in zip(*g, strict=True)]


def negated(g: list[Vector]) -> list[Vector]:
    return [[-x for x in row] for row in g]


def random_vector(rng: random.Random, d: int) -> Vector:
    return [rng.gauss(0, 1) for _ in range(d)]
