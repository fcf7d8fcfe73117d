"""A connected part of a large graph to search on: entities met by random walks, or the densest core.

Walkers go over train triples in either direction, many at once, and now and then start again from where some
walker has been: whatever they meet is connected. Of a few triples to follow, a walker takes the one whose relation
is rarest in the sample so far beside its share of the graph, which halves the distance between the two mixes of
relations; of a few such samples the nearest is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from autosf.errors import UserError, did_you_mean, quoted
from autosf.graph.keys import distinct
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.splitting import split

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

WALKERS = 4096  # at most, and one for so many entities wanted:
ENTITIES_A_WALKER = 16
STARTS_AGAIN = 0.15  # chance of a walker, before each step
CHOICES = 4  # triples that a walker draws to follow one
COUNTS = 30  # times that the sample's relations are counted while it grows
SAMPLES = 3  # of which the nearest is kept
TIRED = 50  # steps in a row that hardly met anything new, after which neighbours are taken as they come
VALID = 1000  # validation triples that a sample should have, if they are at most
VALID_SHARE = 0.1  # of its triples


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A part of a graph, how it was chosen, and how far its mix of relations is from the whole's.

    `mix_distance` is the total variation distance between the relations' shares of the train triples: the
    share of triples that would have to be of another relation. 0 is the same mix, 1 nothing in common.
    """

    graph: KnowledgeGraph
    method: str
    mix_distance: float


def subgraph(whole: KnowledgeGraph, entities: int, *, method: str = "walk", seed: int = 0) -> Subgraph:
    """About so many entities of a graph, connected, with all triples of train and valid between them.

    Fewer where the largest component has no more. Where too few validation triples lie within, some of train
    become such. The test split stays out of it.
    """
    if entities < 2:
        raise UserError(f"sample: expected a number of entities from 2, found {entities}")
    if method not in tuple(METHODS):  # a program may give what has no hash
        hint = did_you_mean(method, METHODS) or f"; expected one of {', '.join(METHODS)}"
        raise UserError(f"sample: unknown method {quoted(method)}{hint}")
    if not len(whole.train):
        raise UserError(f"{whole.name}: expected train triples to take a sample of, found none")
    rng = np.random.default_rng(seed)
    joined = _component(whole.train, len(whole.entities))
    wanted, ways = min(entities, int(joined.sum())), _Ways.of(whole.train, len(whole.entities))
    core = METHODS[method](whole, joined, wanted)
    samples = (
        _walked(whole, ways, core if len(core) else _a_hub(whole, joined, rng), wanted, rng)
        for _ in range(SAMPLES)
    )
    nearest = min(samples, key=lambda is_met: float(np.abs(_excess(whole, is_met)).sum()))
    found = _between(whole, nearest, seed)
    return Subgraph(found, method, mix_distance(whole, found))


def facts(found: Subgraph, whole: KnowledgeGraph) -> dict[str, Any]:
    """What there is to tell of a sample."""
    part = found.graph
    sizes = {
        name: {"entities": len(g.entities), "relations": len(g.relations), "train": len(g.train)}
        for name, g in (("sample", part), ("whole", whole))
    }
    return {
        **sizes["sample"],
        "valid": len(part.valid),
        "method": found.method,
        "mix_distance": found.mix_distance,
        "whole": sizes["whole"],
    }


def mix_distance(whole: KnowledgeGraph, part: KnowledgeGraph) -> float:
    """The total variation distance between the relations' shares of train in a graph and in a part of it."""
    places = whole.relations.encode(part.relations.labels)
    shares = np.bincount(whole.train[:, 1], minlength=len(whole.relations)) / len(whole.train)
    in_part = np.bincount(places[part.train[:, 1]], minlength=len(whole.relations)) / len(part.train)
    return float(np.abs(shares - in_part).sum() / 2)


def _a_hub(whole: KnowledgeGraph, joined: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """The head of a random triple of the largest component: the more triples an entity has, the likelier. [1]"""
    inside = np.flatnonzero(joined[whole.train[:, 0]])
    return whole.train[rng.choice(inside), :1].astype(np.int64)


def no_core(_: KnowledgeGraph, __: NDArray[np.bool_], ___: int) -> NDArray[np.int64]:
    """Walks start anywhere."""
    return np.empty(0, np.int64)


def densest_core(whole: KnowledgeGraph, joined: NDArray[np.bool_], entities: int) -> NDArray[np.int64]:
    """The largest connected part of the first k-core with no more than so many entities, if there is one. [n]

    In a k-core every entity has at least k triples within it.
    """
    edges = whole.train[joined[whole.train[:, 0]]][:, ::2]
    edges, least = edges[edges[:, 0] != edges[:, 1]], 0
    while len(edges):
        degrees = np.bincount(edges.reshape(-1), minlength=len(whole.entities))
        if (degrees > 0).sum() <= entities:
            core = _component(np.insert(edges, 1, 0, axis=1), len(whole.entities))
            return np.flatnonzero(core)
        least = max(least, int(degrees[degrees > 0].min()) + 1)
        stays = degrees >= least
        while not stays[edges].all():
            edges = edges[stays[edges].all(axis=1)]
            stays = np.bincount(edges.reshape(-1), minlength=len(whole.entities)) >= least
    return no_core(whole, joined, entities)


# What a sample is made around.
METHODS: dict[str, Callable[[KnowledgeGraph, NDArray[np.bool_], int], NDArray[np.int64]]] = {
    "walk": no_core,
    "core": densest_core,
}


def _component(triples: NDArray[np.int32], entities: int) -> NDArray[np.bool_]:
    """Which entities are in the largest connected component of some triples. [entities]"""
    links = coo_array(
        (np.ones(len(triples), np.int8), (triples[:, 0], triples[:, 2])), shape=(entities, entities)
    )
    _, component = connected_components(links, directed=False)
    found: NDArray[np.bool_] = component == np.bincount(component).argmax()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Ways:
    """For each entity the triples it is an end of: where they lead, and by which relation."""

    offsets: NDArray[np.int64]
    ends: NDArray[np.int32]
    relations: NDArray[np.int32]

    @classmethod
    def of(cls, triples: NDArray[np.int32], entities: int) -> _Ways:
        starts = np.concatenate([triples[:, 0], triples[:, 2]])
        order = np.argsort(starts, kind="stable")
        ends = np.concatenate([triples[:, 2], triples[:, 0]])[order]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(starts, minlength=entities))])
        return cls(offsets, ends, np.concatenate([triples[:, 1], triples[:, 1]])[order])

    def followed(
        self, places: NDArray[np.int64], excess: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Where a triple at each of some entities leads: of a few, the one whose relation is least in excess."""
        first = self.offsets[places]
        lengths = self.offsets[places + 1] - first
        drawn = first + (rng.random((CHOICES, len(places))) * lengths).astype(np.int64)
        choice = excess[self.relations[drawn]].argmin(axis=0)
        ends: NDArray[np.int64] = self.ends[drawn[choice, np.arange(len(places))]].astype(np.int64)
        return ends


def _walked(
    whole: KnowledgeGraph, ways: _Ways, first: NDArray[np.int64], wanted: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Marks the first entities, and those that walkers from there meet, until they are as many as wanted."""
    is_met = np.zeros(len(whole.entities), dtype=bool)
    is_met[first] = True
    met = np.empty(max(wanted, len(first)), np.int64)
    met[: len(first)] = first
    count, counted, idle = len(first), -wanted, 0
    walkers = met[rng.integers(0, count, max(1, min(WALKERS, wanted // ENTITIES_A_WALKER)))]
    while count < wanted:
        if (count - counted) * COUNTS >= wanted:
            excess, counted = _excess(whole, is_met), count
        again = rng.random(len(walkers)) < STARTS_AGAIN
        walkers[again] = met[rng.integers(0, count, int(again.sum()))]
        walkers = ways.followed(walkers, excess, rng)
        new = _first_of_each(walkers[~is_met[walkers]])
        idle = 0 if 100 * len(new) > len(walkers) else idle + 1
        if idle > TIRED:
            new = rng.permutation(_neighbours(whole.train, is_met))
        new = new[: wanted - count]
        met[count : count + len(new)] = new
        is_met[new] = True
        count += len(new)
    return is_met


def _excess(whole: KnowledgeGraph, is_met: NDArray[np.bool_]) -> NDArray[np.float64]:
    """How much larger each relation's share is between the entities met than in all of train. [R]"""
    relations = len(whole.relations)
    inside = whole.train[is_met[whole.train[:, 0]] & is_met[whole.train[:, 2]], 1]
    shares = np.bincount(whole.train[:, 1], minlength=relations) / len(whole.train)
    return np.bincount(inside, minlength=relations) / max(len(inside), 1) - shares


def _first_of_each(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """The distinct numbers, in the order in which they first come."""
    _, first = np.unique(numbers, return_index=True)
    return numbers[np.sort(first)]


def _neighbours(triples: NDArray[np.int32], is_met: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The entities that were not met but share a triple with one that was."""
    heads, tails = triples[:, 0], triples[:, 2]
    return np.union1d(tails[is_met[heads] & ~is_met[tails]], heads[is_met[tails] & ~is_met[heads]])


def _between(whole: KnowledgeGraph, is_met: NDArray[np.bool_], seed: int) -> KnowledgeGraph:
    """The graph of the triples of train and valid between some entities, with enough of them in valid."""
    train = whole.train[is_met[whole.train[:, ::2]].all(axis=1)]
    seen = np.zeros(len(whole.relations), dtype=bool)
    seen[train[:, 1]] = True
    valid = whole.valid[is_met[whole.valid[:, ::2]].all(axis=1) & seen[whole.valid[:, 1]]]
    sizes = {"entities": len(whole.entities), "relations": len(whole.relations)}
    wished = min(VALID, int(VALID_SHARE * len(train)))
    if len(valid) < wished:
        parts = split(train, **sizes, valid=wished - len(valid), test=0, seed=seed)
        train, valid = parts.train, distinct(np.concatenate([valid, parts.valid]), **sizes)
    return KnowledgeGraph.from_ids(
        whole.name, whole.entities.labels, whole.relations.labels, {"train": train, "valid": valid}
    )
