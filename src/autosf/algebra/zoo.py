"""Scoring functions with a name: those designed by people (Table I) and the paper's five finds (Fig. 5)."""

from __future__ import annotations

from dataclasses import dataclass

from autosf.algebra.structure import PARTS, Structure, from_json, from_published
from autosf.errors import UserError, did_you_mean, quoted


@dataclass(frozen=True, slots=True)
class Named:
    """A known scoring function: its names (the first is ours), structure and source."""

    names: tuple[str, ...]
    structure: Structure
    source: str
    title: str

    @property
    def name(self) -> str:
        return self.names[0]


HUMAN = (
    Named(
        ("distmult",),
        Structure(((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 4))),
        "Yang et al., ICLR 2015",
        "DistMult",
    ),
    Named(
        ("complex", "hole"),
        Structure(((1, 0, 3, 0), (0, 2, 0, 4), (-3, 0, 1, 0), (0, -4, 0, 2))),
        "Trouillon et al., JMLR 2017; HolE (Nickel et al., AAAI 2016) is the same function",
        "ComplEx",
    ),
    Named(
        ("analogy",),
        Structure(((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 4), (0, 0, -4, 3))),
        "Liu et al., ICML 2017",
        "Analogy",
    ),
    Named(
        ("simple", "cp"),
        Structure(((0, 0, 1, 0), (0, 0, 0, 2), (3, 0, 0, 0), (0, 4, 0, 0))),
        "Kazemi and Poole, NeurIPS 2018; Lacroix et al., ICML 2018",
        "SimplE",
    ),
    Named(
        ("quate",),
        # h (Hamilton product) r, dotted with t; parts are 1, i, j, k
        Structure(((1, 2, 3, 4), (-2, 1, -4, 3), (-3, 4, 1, -2), (-4, -3, 2, 1))),
        "Zhang et al., NeurIPS 2019, without the normalisation of r",
        "QuatE",
    ),
)

# The authors' own list of searched functions, in the released code's notation.
FINDS = {
    "WN18": (3, 2, 1, 0, 3, 3, 2, -1, 0, 2, 3, -1, 1, 0, 1, 1, 2, 1, 0, 1, 2, 2, 0, -1, 1, 0, 2, -1),
    "FB15k": (3, 2, 1, 0, 1, 0, 1, 1, 2, 1, 0, 1),
    "WN18RR": (1, 0, 2, 3, 3, 1, 1, 1, 3, 0, 0, 1, 0, 3, 2, -1, 1, 2, 3, -1, 1, 3, 1, -1, 0, 1, 3, -1),
    "FB15k237": (2, 1, 3, 0),
    "YAGO3-10": (0, 1, 2, 3, 1, 3, 1, -1, 2, 1, 3, -1),
}

PUBLISHED = tuple(
    Named(
        (f"autosf-{graph.lower()}",),
        from_published(numbers),
        "Zhang et al., ICDE 2020, Fig. 5",
        f"AutoSF, {graph}",
    )
    for graph, numbers in FINDS.items()
)

ZOO = HUMAN + PUBLISHED
HUMAN_DESIGNED_FOUR = ("distmult", "complex", "analogy", "simple")  # what the paper compares with


def plain(name: str) -> str:
    """A name without case and punctuation: "AutoSF_FB15k-237" and "autosf-fb15k237" are one."""
    return "".join(c for c in name.casefold() if c.isalnum())


BY_NAME = {plain(name): known for known in ZOO for name in known.names}


def named(name: str) -> Named:
    """The zoo's entry of that name, in any case and punctuation."""
    try:
        return BY_NAME[plain(name)]
    except KeyError:
        known = [name for entry in ZOO for name in entry.names]
        hint = did_you_mean(name, known) or f"; expected rows as JSON or one of {', '.join(known)}"
        raise UserError(f"unknown structure {quoted(name)}{hint}") from None


def structure_from(text: str) -> Structure:
    """The structure a user means: a name of the zoo, or rows as JSON."""
    if text.lstrip().startswith(("[", "{")):
        return from_json(text)
    if text.strip() and not text.strip("0123456789-, "):
        raise UserError(
            f"structure: expected a name or JSON rows, found {quoted(text)}"
            " (a list of the released code is read with --published)"
        )
    return named(text).structure


assert all(entry.structure.parts == PARTS for entry in ZOO)
