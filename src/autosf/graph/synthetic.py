"""Graphs made to order: relations of known patterns, and a graph planted from a structure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import polars as pl

from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.splitting import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class HasRows(Protocol):
    """What planting needs of a structure: its rows; cell (i, j) = s * k is the term s * <h_i, r_k, t_j>."""

    @property
    def rows(self) -> Sequence[Sequence[int]]: ...


@dataclass(frozen=True, slots=True)
class Planting:
    """How large a planted graph is; each relation gets the same number of triples."""

    entities: int = 200
    relations: int = 10
    triples_per_relation: int = 400
    dimension_per_part: int = 4
    valid: float = 0.1
    test: float = 0.1


def labels(prefix: str, count: int) -> list[str]:
    """`count` labels of equal length, so that their order is that of their numbers."""
    width = len(str(max(count - 1, 0)))
    return [f"{prefix}{number:0{width}d}" for number in range(count)]


def patterned_graph(
    *,
    symmetric: int = 0,
    anti_symmetric: int = 0,
    inverse_pairs: int = 0,
    general: int = 0,
    entities: int = 60,
    triples: int = 100,
    seed: int = 0,
    valid: float = 0.0,
    test: float = 0.0,
) -> KnowledgeGraph:
    """A graph with so many relations of each pattern (Sec. V-A), named after it; `triples` in each relation.

    An inverse pair is two relations, `inverse3a` and `inverse3b`. Symmetric and anti-symmetric facts stay
    within the first half of the entities; the others cross the halves, no two relations over the same
    pairs, so that no pattern arises by chance. With parts held out, fewer mirror images are left in train.
    """
    half = entities // 2
    _refuse_impossible(half, triples, crossing=inverse_pairs + general)
    rng = np.random.default_rng(seed)
    crossing = _crossing_pairs(rng, half, (inverse_pairs + general) * triples)
    facts: dict[str, NDArray[np.int64]] = {}
    for number in range(symmetric):
        pairs = _ordered_pairs(rng, half, triples // 2)
        facts[f"symmetric{number}"] = np.concatenate([pairs, pairs[:, ::-1]])
    for number in range(anti_symmetric):
        facts[f"anti_symmetric{number}"] = _ordered_pairs(rng, half, triples)
    for number in range(inverse_pairs + general):
        pairs = crossing[number * triples : (number + 1) * triples]
        if number < inverse_pairs:
            facts[f"inverse{number}a"], facts[f"inverse{number}b"] = pairs, pairs[:, ::-1]
        else:
            facts[f"general{number - inverse_pairs}"] = pairs
    return _graph_of(facts, entities, valid=valid, test=test, seed=seed)


def _refuse_impossible(half: int, triples: int, *, crossing: int) -> None:
    """Refuse more than there is room for; 10 * (half - 2) leaves enough entities both head and tail."""
    room = min(half * (half - 1) // 2, 10 * (half - 2), half * half // max(crossing, 1))
    if triples % 2 or not 2 <= triples <= room:
        raise UserError(
            f"synthetic graph: expected an even number of triples in each relation, from 2 to {room} with "
            f"{2 * half} entities, found {triples}"
        )


def _ordered_pairs(rng: np.random.Generator, entities: int, count: int) -> NDArray[np.int64]:
    """Distinct pairs (a, b) with a < b; a chain first, so that most entities are head and tail. [count, 2]"""
    chain = np.stack([np.arange(entities - 1), np.arange(1, entities)], axis=1)
    above, below = np.triu_indices(entities, k=2)
    rest = np.stack([above, below], axis=1)[rng.permutation(len(above))]
    return np.concatenate([chain, rest])[:count]


def _crossing_pairs(rng: np.random.Generator, half: int, count: int) -> NDArray[np.int64]:
    """Distinct pairs from the first half of the entities to the second: no entity is both head and tail."""
    chosen = rng.permutation(half * half)[:count]
    return np.stack([chosen // half, half + chosen % half], axis=1)


def _graph_of(
    facts: dict[str, NDArray[np.int64]], entities: int, *, valid: float, test: float, seed: int
) -> KnowledgeGraph:
    """The split graph of (head, tail) pairs by relation name."""
    rows = [np.insert(pairs, 1, number, axis=1) for number, pairs in enumerate(facts.values())]
    triples = np.concatenate([np.empty((0, 3), np.int64), *rows]).astype(np.int32)
    parts = split(triples, entities, len(facts), valid=valid, test=test, seed=seed)
    splits = {"train": parts.train, "valid": parts.valid, "test": parts.test}
    return KnowledgeGraph.from_ids("synthetic", labels("e", entities), list(facts), splits)


def planted_graph(structure: HasRows, planting: Planting, *, seed: int) -> KnowledgeGraph:
    """A graph that `structure` explains: under random embeddings, each relation's triples are its top scores.

    No triple joins an entity to itself. Train shows every entity that occurs.
    """
    rng = np.random.default_rng(seed)
    parts, width = len(structure.rows), planting.dimension_per_part
    entity = rng.standard_normal((planting.entities, parts, width))
    relation = rng.standard_normal((planting.relations, parts, width))
    facts = {
        name: _top_pairs(_scores(structure, entity, embedding), planting.triples_per_relation)
        for name, embedding in zip(labels("r", planting.relations), relation, strict=True)
    }
    return _graph_of(facts, planting.entities, valid=planting.valid, test=planting.test, seed=seed)


def _scores(
    structure: HasRows, entity: NDArray[np.float64], relation: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Score of every (head, tail) under one relation: the sum of the terms. [entities, entities]"""
    query = np.zeros_like(entity)  # [entities, parts, width], what each head asks of each part of a tail
    for i, row in enumerate(structure.rows):
        for j, cell in enumerate(row):
            if cell:
                query[:, j] += np.sign(cell) * entity[:, i] * relation[abs(cell) - 1]
    return query.reshape(len(entity), -1) @ entity.reshape(len(entity), -1).T


def _top_pairs(scores: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The `count` pairs of different entities with the highest scores. [count, 2]"""
    np.fill_diagonal(scores, -np.inf)
    count = min(count, scores.size - len(scores))
    best = np.argpartition(scores, scores.size - count, axis=None)[scores.size - count :]
    return np.stack(np.divmod(np.sort(best), len(scores)), axis=1)


def label_column(prefix: str, numbers: NDArray[np.int64]) -> pl.Series:
    """Labels such as "e17" of many numbers at once."""
    return pl.select(pl.concat_str(pl.lit(prefix), pl.Series(numbers).cast(pl.String))).to_series()
