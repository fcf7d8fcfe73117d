"""How many classes of structures there are, by Burnside's lemma: the mean number of structures that a group
element leaves as they are. Nothing is listed, so any number of blocks is counted.

A structure is fixed by (entity order pi, entity signs e, relation action rho) if x[pi i, pi j] equals
e_i e_j rho(x[i, j]) in every cell. Cells then hang together; a cell's value decides those of its component.
Zero or repeated rows and columns, and unused relation parts, are taken out by Moebius inversion.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, permutations, product
from math import factorial, lcm, prod
from typing import TYPE_CHECKING, Literal

from autosf.algebra.structure import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from autosf.algebra.invariance import Group

Constraint = Literal["cover", "c2"]
Signed = tuple[int, ...]  # part k goes to |s[k]| - 1, with the sign of s[k]; parts from 0
Turn = tuple[int, int]  # (how often rho was applied, sign)
Component = tuple[int, frozenset[Turn]]  # cells, and the turns that bring its value back to itself


@dataclass(frozen=True, slots=True)
class Coincidence:
    """Lines forced to be zero (block 0) or equal up to a sign, and its Moebius weight from "none forced"."""

    blocks: tuple[int, ...]
    signs: tuple[int, ...]
    weight: int


@cache
def class_counts(
    group: Group = "paper", constraint: Constraint = "cover", parts: int = PARTS
) -> tuple[int, ...]:
    """Number of classes with 0, 1, ..., K*K blocks. Under the extended group C2's repeats are up to sign."""
    relation_actions = conjugacy_classes(parts, signed=True)
    entity_actions = conjugacy_classes(parts, signed=group == "extended")
    totals = [0] * (parts * parts + 1)
    for entity, how_many in entity_actions.items():
        shapes = component_shapes(entity, coincidences(parts, group, constraint))
        for relation, how_many_relations in relation_actions.items():
            fixed = fixed_structures(shapes, relation, parts)
            totals = [t + how_many * how_many_relations * f for t, f in zip(totals, fixed, strict=True)]
    order = sum(relation_actions.values()) * sum(entity_actions.values())
    assert all(total % order == 0 for total in totals)
    return tuple(total // order for total in totals)


def conjugacy_classes(parts: int, signed: bool) -> dict[Signed, int]:
    """One element of each conjugacy class of the (signed) permutations, with the class's size."""
    signs = list(product((1, -1), repeat=parts)) if signed else [(1,) * parts]
    found: dict[tuple[tuple[int, int], ...], list[Signed]] = {}
    for order in permutations(range(1, parts + 1)):
        for sign in signs:
            element = tuple(s * k for s, k in zip(sign, order, strict=True))
            found.setdefault(cycle_type(element), []).append(element)
    return {members[0]: len(members) for members in found.values()}


def cycle_type(element: Signed) -> tuple[tuple[int, int], ...]:
    """Length and product of signs of each cycle, sorted."""
    return tuple(
        sorted((len(cycle), prod(1 if element[k] > 0 else -1 for k in cycle)) for cycle in cycles(element))
    )


def cycles(element: Signed) -> Iterator[list[int]]:
    """The cycles, signs aside, as lists of parts."""
    left = set(range(len(element)))
    while left:
        cycle = [min(left)]
        while (following := abs(element[cycle[-1]]) - 1) != cycle[0]:
            cycle.append(following)
        left -= set(cycle)
        yield cycle


def coincidences(parts: int, group: Group, constraint: Constraint) -> list[Coincidence]:
    """All ways in which lines may be forced zero or (for C2) equal, weighted so that sums count "none"."""
    signs = (1, -1) if group == "extended" else (1,)
    found = []
    for blocks in growth_strings(parts):
        sizes = Counter(block for block in blocks if block)
        if constraint == "cover" and any(size > 1 for size in sizes.values()):
            continue
        zero = blocks.count(0)
        step = 0 if constraint == "cover" else len(signs)
        weight = prod(-(1 + step * i) for i in range(zero))
        weight *= prod((-1) ** (size - 1) * factorial(size - 1) for size in sizes.values())
        free = [signs if block and block in blocks[:place] else (1,) for place, block in enumerate(blocks)]
        found += [Coincidence(blocks, chosen, weight) for chosen in product(*free)]
    return found


def growth_strings(length: int) -> Iterator[tuple[int, ...]]:
    """All partitions with a special block 0: block numbers in order of first appearance."""
    if length == 0:
        yield ()
        return
    for start in growth_strings(length - 1):
        for block in range(max(start, default=0) + 2):
            yield (*start, block)


def component_shapes(entity: Signed, forced: Sequence[Coincidence]) -> Counter[tuple[Component, ...]]:
    """Sorted components of the cells for every pair of row and column coincidences, weights added up."""
    shapes: Counter[tuple[Component, ...]] = Counter()
    for rows in forced:
        for columns in forced:
            shapes[components(entity, rows, columns)] += rows.weight * columns.weight
    return shapes


def components(entity: Signed, rows: Coincidence, columns: Coincidence) -> tuple[Component, ...]:
    """Components of cells that are free to be non-zero, each with its size and the turns it must survive."""
    links = cell_links(entity, rows, columns)
    parts, seen, found = len(entity), {}, []
    for start in range(parts * parts):
        if start in seen:
            continue
        seen[start] = (0, 1)
        members, turns = [start], set()
        for cell in members:  # grows while we walk
            steps, sign = seen[cell]
            for neighbour, (more, flip) in links[cell]:
                reached = (steps + more, sign * flip)
                if neighbour not in seen:
                    seen[neighbour] = reached
                    members.append(neighbour)
                else:
                    known = seen[neighbour]
                    turns.add((abs(reached[0] - known[0]), reached[1] * known[1]))
        if all(rows.blocks[cell // parts] and columns.blocks[cell % parts] for cell in members):
            found.append((len(members), frozenset(turns - {(0, 1)})))
    return tuple(sorted(found, key=lambda component: (component[0], sorted(component[1]))))


def cell_links(entity: Signed, rows: Coincidence, columns: Coincidence) -> list[list[tuple[int, Turn]]]:
    """For each cell, the cells whose values follow from its own, in both directions."""
    parts = len(entity)
    links: list[list[tuple[int, Turn]]] = [[] for _ in range(parts * parts)]

    def link(one: int, other: int, turn: Turn) -> None:
        links[one].append((other, turn))
        links[other].append((one, (-turn[0], turn[1])))

    for i, j in product(range(parts), repeat=2):
        image = (abs(entity[i]) - 1) * parts + abs(entity[j]) - 1
        link(i * parts + j, image, (1, 1 if entity[i] * entity[j] > 0 else -1))
    for one, other in combinations(range(parts), 2):
        for lines, stride, along in ((rows, parts, 1), (columns, 1, parts)):
            if lines.blocks[one] == lines.blocks[other] != 0:
                sign = lines.signs[one] * lines.signs[other]
                for k in range(parts):
                    link(one * stride + k * along, other * stride + k * along, (0, sign))
    return links


def fixed_structures(shapes: Counter[tuple[Component, ...]], relation: Signed, parts: int) -> list[int]:
    """Structures fixed under one relation action that use every relation part, by number of blocks."""
    label_cycles = list(cycles(relation))
    powers = relation_powers(relation)
    totals = [0] * (parts * parts + 1)
    for kept in chain.from_iterable(combinations(label_cycles, n) for n in range(len(label_cycles) + 1)):
        labels = list(chain.from_iterable(kept))
        sign = (-1) ** (len(label_cycles) - len(kept))
        values: dict[frozenset[Turn], int] = {}
        for shape, weight in shapes.items():
            if weight:
                counted = [1]
                for size, turns in shape:
                    if turns not in values:
                        values[turns] = 2 * sum(
                            all(survives(label, turn, powers) for turn in turns) for label in labels
                        )
                    counted = multiplied(counted, values[turns], size)
                for blocks, ways in enumerate(counted):
                    totals[blocks] += sign * weight * ways
    return totals


def relation_powers(relation: Signed) -> list[Signed]:
    """The identity, rho, rho^2, ... up to its order."""
    order = lcm(*(length * (1 if sign > 0 else 2) for length, sign in cycle_type(relation)))
    powers = [tuple(range(1, len(relation) + 1))]
    for _ in range(order - 1):
        powers.append(tuple(relation[s - 1] if s > 0 else -relation[-s - 1] for s in powers[-1]))
    return powers


def survives(label: int, turn: Turn, powers: list[Signed]) -> bool:
    """Whether a label, turned that way, is itself again, sign included."""
    steps, sign = turn
    return sign * powers[steps % len(powers)][label] == label + 1


def multiplied(polynomial: list[int], factor: int, degree: int) -> list[int]:
    """polynomial * (1 + factor * z^degree)."""
    result = polynomial + [0] * degree
    for power, coefficient in enumerate(polynomial):
        result[power + degree] += factor * coefficient
    return result
