"""What can be said of a structure without training it, and what that means in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.algebra.constraints import is_reachable, relation_kinds, satisfies_c1, skew_symmetric, symmetric
from autosf.algebra.disguise import SAME, twins
from autosf.algebra.features import cases, srf
from autosf.algebra.zoo import HUMAN_DESIGNED_FOUR, named
from autosf.app.drawing import formula
from autosf.app.run_results import zoo_names

if TYPE_CHECKING:
    from autosf.algebra.structure import Rows, Structure

LETTERS = "abcdefghijklmnop"


@dataclass(frozen=True, slots=True)
class Known:
    """A scoring function of the literature that the structure is, and in which sense."""

    title: str
    how: str
    source: str


@dataclass(frozen=True, slots=True)
class Portrait:
    """A structure with its formula, its symmetries and its known twins; `meaning` tells them in sentences."""

    title: str
    rows: Rows
    formula: str
    blocks: int
    srf: tuple[tuple[int, int], ...]  # for S1, S2, ...: can be symmetric, can be skew-symmetric
    symmetric: str  # always, never, or for which r
    skew_symmetric: str
    relation_kinds: tuple[str, ...]
    c1: bool
    reachable: bool  # by Alg. 2
    twins: tuple[Known, ...]
    meaning: tuple[str, ...]


def portrait(structure: Structure) -> Portrait:
    """The portrait of any structure."""
    bits = srf(structure)
    even, odd = str(symmetric(structure)), str(skew_symmetric(structure))
    return Portrait(
        title=title_of(structure),
        rows=structure.rows,
        formula=formula(structure),
        blocks=structure.blocks,
        srf=tuple(zip(bits[::2], bits[1::2], strict=True)),
        symmetric=even,
        skew_symmetric=odd,
        relation_kinds=relation_kinds(structure),
        c1=satisfies_c1(structure),
        reachable=is_reachable(structure),
        twins=tuple(
            Known(spoken(twin.known.title), "" if twin.how == SAME else twin.how, twin.known.source)
            for twin in twins(structure)
        ),
        meaning=meaning(structure, even, odd),
    )


def title_of(structure: Structure) -> str:
    """The name that its authors gave it, or its rows."""
    names = zoo_names(structure)
    return named(names[0]).title if names else str(structure)


def spoken(title: str) -> str:
    """A title as it reads in a sentence."""
    graph = title.removeprefix("AutoSF, ")
    return title if graph == title else f"what the paper found on {graph}"


def human_designed() -> tuple[Portrait, ...]:
    """The four that the paper compares with."""
    return tuple(portrait(named(name).structure) for name in HUMAN_DESIGNED_FOUR)


def meaning(structure: Structure, even: str, odd: str) -> tuple[str, ...]:
    """What formula and SRF come to, a sentence each."""
    bits = srf(structure)
    count = len(cases(structure.parts))
    return (
        f"{structure.blocks} of {structure.parts**2} cells are filled, each the product of a part of the head,"
        " one of the relation and one of the tail.",
        both_ways(even),
        one_way(odd),
        expressive(even, odd),
        f"Its SRF asks {count} times whether some choice of equal, different and vanishing parts of r makes"
        f" it symmetric or skew-symmetric: {sum(bits[::2])} times it can be the one,"
        f" {sum(bits[1::2])} times the other.",
    )


def both_ways(when: str) -> str:
    if when == "never":
        return "Exchanging head and tail never leaves it as it is, so that no relation is exactly symmetric."
    if when == "always":
        return (
            "Exchanging head and tail never changes it: every relation is symmetric,"
            " also one that holds in one direction only."
        )
    return f"A relation with {typeset(when)} is symmetric: it holds both ways or neither."


def one_way(when: str) -> str:
    if when == "never":
        return "Exchanging head and tail never just turns its sign, so that no relation is exactly anti-symmetric."
    if when == "always":
        return "Exchanging head and tail always turns its sign: every relation is anti-symmetric."
    return (
        f"A relation with {typeset(when)} is anti-symmetric:"
        " what speaks for (h, r, t) speaks as much against (t, r, h)."
    )


def typeset(condition: str) -> str:
    return condition.replace("-", "\N{MINUS SIGN}")


def expressive(even: str, odd: str) -> str:
    if "never" in (even, odd):
        return (
            "It does not satisfy the paper's C1, to be able to be both, as two of the paper's own five finds"
            " do not: a graph may not need it."
        )
    return "As it can be either, it is expressive in the paper's sense (C1)."


def case_headings(parts: int) -> list[str]:
    """Each case of the SRF as an example of its r: equal letters are equal values, up to their signs."""
    headings = []
    for groups in cases(parts):
        letters = "".join(letter * size for letter, size in zip(LETTERS, groups, strict=False))
        headings.append(letters.ljust(parts, "0"))
    return headings
