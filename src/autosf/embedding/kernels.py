"""One contraction carries the house: the trilinear form f(h, r, t) with one role left out.

    contract(terms, head=h, relation=r)      the tail query:     f(h, r, t) = <query, t>
    contract(terms, relation=r, tail=t)      the head query:     f(h, r, t) = <query, h>
    contract(terms, head=h, tail=t)          the relation query: f(h, r, t) = <query, r>

f is linear in each role, so that these are also its gradients, and with a gradient in the place of an
embedding they are the chain rule. Rows are independent: everything is [n, d], d = parts * width.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from autosf.algebra.structure import Structure, Term


def contract(
    structure: Structure,
    *,
    head: Tensor | None = None,
    relation: Tensor | None = None,
    tail: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The trilinear form with the one absent role left out, per row. [n, d]

    The terms that fill one part of the result are added up in place: no block matrix, no temporary larger
    than a part. Rows that lie `in_columns` take half the time, as their parts have no holes in memory.
    `contract_plainly` is the definition it is tested against.
    """
    given, absent = _given(head, relation, tail)
    (one_role, one), (other_role, other) = given
    result = torch.empty_like(one) if out is None else out
    left, right, filled = (x.chunk(structure.parts, -1) for x in (one, other, result))
    products, empty = _products(structure, one_role, other_role, absent)
    for place, a, b, sign, first in products:
        if not first:
            filled[place].addcmul_(left[a], right[b], value=sign)
        else:
            torch.mul(left[a], right[b], out=filled[place])
            if sign < 0:
                filled[place].neg_()
    for place in empty:
        filled[place].zero_()
    return result


@lru_cache(maxsize=1024)
def _products(
    structure: Structure, one: str, other: str, absent: str
) -> tuple[tuple[tuple[int, int, int, int, bool], ...], tuple[int, ...]]:
    """Each term as (part filled, part of one, part of other, sign, is it the first there), and the empty parts."""
    products, started = [], set()
    for term in structure.terms():
        place = getattr(term, absent) - 1
        a, b = getattr(term, one) - 1, getattr(term, other) - 1
        products.append((place, a, b, term.sign, place not in started))
        started.add(place)
    return tuple(products), tuple(set(range(structure.parts)) - started)


def in_columns(matrix: Tensor, rows: Tensor) -> Tensor:
    """The chosen rows of a matrix, column by column in memory, so that each part is one piece. [n, d]"""
    return matrix.index_select(0, rows).T.contiguous().T


def contract_plainly(
    structure: Structure,
    *,
    head: Tensor | None = None,
    relation: Tensor | None = None,
    tail: Tensor | None = None,
) -> Tensor:
    """The same by the definition: a K x K x K tensor of signs, contracted with the two given roles."""
    _, absent = _given(head, relation, tail)
    some = next(x for x in (head, relation, tail) if x is not None)
    signs = sign_tensor(structure.terms(), structure.parts).to(some)
    letters = {"head": "hw", "relation": "rw", "tail": "tw"}
    roles = (("head", head), ("relation", relation), ("tail", tail))
    pieces = {role: cut(rows, structure.parts) for role, rows in roles if rows is not None}
    operands = ",".join(f"n{letters[role]}" for role in pieces)
    result = torch.einsum(f"hrt,{operands}->n{letters[absent]}", signs, *pieces.values())
    return result.reshape(len(some), -1)


def cut(rows: Tensor, parts: int) -> Tensor:
    """The parts of each row, without copying. [n, parts, d / parts]"""
    return rows.view(*rows.shape[:-1], parts, rows.shape[-1] // parts)


def score(structure: Structure, *, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
    """f(h, r, t) of each row. [n]"""
    return (contract(structure, head=head, relation=relation) * tail).sum(-1)


def sign_tensor(terms: Sequence[Term], parts: int) -> Tensor:
    """The structure as a tensor of signs, [head, relation, tail]."""
    signs = torch.zeros(parts, parts, parts)
    for term in terms:
        signs[term.head - 1, term.relation - 1, term.tail - 1] = term.sign
    return signs


def _given(
    head: Tensor | None, relation: Tensor | None, tail: Tensor | None
) -> tuple[list[tuple[str, Tensor]], str]:
    """The two given roles with their rows, and the name of the absent one."""
    roles = (("head", head), ("relation", relation), ("tail", tail))
    given = [(role, rows) for role, rows in roles if rows is not None]
    absent = [role for role, rows in roles if rows is None]
    assert len(absent) == 1, "give exactly two of head, relation and tail"
    return given, absent[0]
