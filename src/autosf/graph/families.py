"""A made-up village of families: a graph that is always at hand, with relations of every kind.

Marriage, siblings and cousins are symmetric, parents and children inverse, the others neither.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.splitting import split

if TYPE_CHECKING:
    from collections.abc import Iterator

WOMEN = ["ada", "cleo", "eva", "gina", "iris", "kira", "mia", "olga", "rosa", "tess"]
MEN = ["ben", "dan", "finn", "hugo", "jon", "leo", "noah", "paul", "sam", "uwe"]
FAMILIES = [
    "brook",
    "field",
    "forest",
    "hill",
    "lake",
    "marsh",
    "moor",
    "ridge",
    "river",
    "stone",
    "vale",
    "wood",
]
GENERATIONS = 3  # after the first couples
CHILDREN = (2, 3, 3)  # of a couple, one of these

Couple = tuple[str, str]
Fact = tuple[str, str, str]


def families(seed: int = 0) -> KnowledgeGraph:
    """The village of that seed, a tenth of its facts each in valid and test; train shows everybody."""
    facts = sorted(set(village(Random(seed))))  # noqa: S311 - reproducible, not secret
    people = sorted({head for head, _, _ in facts} | {tail for _, _, tail in facts})
    relations = sorted({relation for _, relation, _ in facts})
    place, link = ({label: number for number, label in enumerate(labels)} for labels in (people, relations))
    triples = np.array(
        [[place[head], link[relation], place[tail]] for head, relation, tail in facts], np.int32
    )
    made = split(triples, len(people), len(relations), valid=0.1, test=0.1, seed=seed)
    splits = {"train": made.train, "valid": made.valid, "test": made.test}
    return KnowledgeGraph.from_ids("Families", people, relations, splits)


def village(rng: Random) -> Iterator[Fact]:
    """All facts: of couples, of their children, and what follows from them."""
    used: Counter[str] = Counter()

    def named(given: list[str], family: str) -> str:
        """A new person; namesakes are numbered."""
        name = f"{rng.choice(given)}_{family}"
        used[name] += 1
        return name if used[name] == 1 else f"{name}_{used[name]}"

    couples = [(named(WOMEN, rng.choice(FAMILIES)), named(MEN, family)) for family in FAMILIES]
    parents: dict[str, Couple] = {}
    for generation in range(GENERATIONS + 1):
        yield from ((one, "married_to", other) for couple in couples for one, other in permutations(couple))
        if generation == GENERATIONS:
            break
        born: tuple[list[str], list[str]] = ([], [])
        for couple in couples:
            family = couple[1].split("_")[1]
            for _ in range(rng.choice(CHILDREN)):
                sex = rng.randrange(2)
                child = named((WOMEN, MEN)[sex], family)
                parents[child] = couple
                born[sex].append(child)
        couples = [pair for pair in zip(*born, strict=False) if parents[pair[0]] != parents[pair[1]]]
    yield from kinship(parents)


def kinship(parents: dict[str, Couple]) -> Iterator[Fact]:
    """What follows from who a child's mother and father are."""
    siblings = {
        one: [other for other in parents if other != one and parents[other] == parents[one]]
        for one in parents
    }
    for child, (mother, father) in parents.items():
        yield mother, "mother_of", child
        yield father, "father_of", child
        yield from ((child, "child_of", parent) for parent in (mother, father))
        yield from ((child, "sibling_of", other) for other in siblings[child])
        for parent in (mother, father):
            yield from ((elder, "grandparent_of", child) for elder in parents.get(parent, ()))
            for relative in siblings.get(parent, ()):
                yield relative, "aunt_or_uncle_of", child
                yield from ((child, "cousin_of", other) for other in parents if relative in parents[other])
