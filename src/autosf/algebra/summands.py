"""A structure as a sum of smaller ones that have no part in common: ComplEx is two sums over complex numbers,
DistMult four over reals, QuatE one over quaternions. What they are decides which entries belong together."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from autosf.algebra.structure import Structure

    Groups = tuple[tuple[int, ...], ...]


class Summand(NamedTuple):
    """The parts of one of the sums, in order, counted from 1."""

    head: tuple[int, ...]
    relation: tuple[int, ...]
    tail: tuple[int, ...]


@lru_cache(maxsize=1024)
def summands(structure: Structure) -> tuple[Summand, ...]:
    """The smallest sets of terms such that no two of them share a part, by the first cell of each."""
    found: list[list[set[int]]] = []
    for term in structure.terms():
        own = [{term.head}, {term.relation}, {term.tail}]
        met = [other for other in found if any(map(set.intersection, own, other))]
        joined = [set.union(*parts) for parts in zip(own, *met, strict=True)]
        place = found.index(met[0]) if met else len(found)
        found = [other for other in found if other not in met]
        found.insert(place, joined)
    return tuple(Summand(*(tuple(sorted(parts)) for parts in each)) for each in found)


@lru_cache(maxsize=1024)
def belonging_together(structure: Structure, role: str) -> Groups:
    """The parts of a role by summand; one that no term has is by itself."""
    groups = tuple(getattr(each, role) for each in summands(structure))
    named = {part for group in groups for part in group}
    return (*groups, *((part,) for part in range(1, structure.parts + 1) if part not in named))
