"""A rule miner to compare embeddings with, as the paper's AnyBURL row (Table IV): small, and its cost is seen.

Rules are paths of up to two steps along relations and their inverses, and the empty one:

    r(x, y) <- q(x, y)        r(x, y) <- p(x, z), q(z, y)        r(x, c) <- true

A rule's confidence is in how many of the pairs that its body connects r holds, with a pseudo count that holds
back rules seen a few times only. An answer's score is the best confidence among the rules that lead to it; the
second best settles ties. Bodies are found from a sample of each relation's triples, so that the cost is bounded,
and measured on all of train. x, y and z are distinct, which keeps a triple from explaining itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp
import torch

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.graph.knowledge_graph import KnowledgeGraph

SAMPLE = 500  # triples of a relation that bodies are found from
BODIES = 100  # of a relation, those that explain most of the sample
LARGEST_BODY = 20_000_000  # paths; a longer list of pairs says little about any of them
LEAST_SUPPORT = 2
PSEUDO_COUNT = 5
TIES = 1e-4  # weight of the second best rule
NO_STEP = -1
SMALL, SMALL_NUMBERS = 1_000, 1 << 25  # entities, and cells of all relations' matrices, that fit into memory


@dataclass(frozen=True, slots=True)
class Rule:
    """relation(x, y) <- first(x, z), second(z, y), or first(x, y) alone; a step from R on is an inverse, r + R."""

    relation: int
    first: int
    second: int
    confidence: float
    support: int

    def reversed(self, relations: int) -> tuple[int, ...]:
        """The steps from y to x."""
        steps = [step for step in (self.second, self.first) if step != NO_STEP]
        return tuple((step + relations) % (2 * relations) for step in steps)

    def forward(self) -> tuple[int, ...]:
        """The steps from x to y."""
        return (self.first,) if self.second == NO_STEP else (self.first, self.second)


@dataclass(frozen=True, slots=True, eq=False)
class RuleModel:
    """Mined rules that answer queries; a `Scorer` for ranking."""

    steps: list[Any]  # 2R matrices [N, N] of zeros and ones without a diagonal; sparse but for a small graph
    rules: dict[int, list[Rule]]  # by relation, the most confident first
    often: tuple[Any, Any]  # [R, N]: confidence of r(c, y) <- true, and of r(x, c) <- true
    _kept: dict[int, NDArray[np.float32]] = field(default_factory=dict, init=False, repr=False)

    @property
    def count(self) -> int:
        return sum(map(len, self.rules.values()))

    def tail_scores(self, heads: Tensor, relations: Tensor) -> Tensor:
        return self._scores(heads.numpy(), relations.numpy(), is_tail=True)

    def head_scores(self, relations: Tensor, tails: Tensor) -> Tensor:
        return self._scores(tails.numpy(), relations.numpy(), is_tail=False)

    def _scores(self, asked: NDArray[Any], relations: NDArray[Any], *, is_tail: bool) -> Tensor:
        scores = np.empty((len(asked), self.steps[0].shape[0]), np.float32)
        for relation in np.unique(relations):
            here = np.flatnonzero(relations == relation)
            best, second = self._reasons(asked[here], int(relation), is_tail)
            often = self.often[int(is_tail)][[relation]].toarray().astype(np.float32)
            scores[here] = np.maximum(best, often) + TIES * np.maximum(second, np.minimum(best, often))
        return torch.from_numpy(scores)

    def _reasons(self, asked: NDArray[Any], relation: int, is_tail: bool) -> NDArray[np.float32]:
        """The best and the second best confidence of each answer. [2, n, N]

        Of a small graph all queries of a relation are answered at once, for both sides and every split.
        """
        if not isinstance(self.steps[0], np.ndarray):
            return self._followed(asked, relation, is_tail)
        if relation not in self._kept:
            self._kept[relation] = self._table(relation)
        kept = self._kept[relation]
        return kept[:, asked] if is_tail else kept[:, :, asked].swapaxes(1, 2)

    def _table(self, relation: int) -> NDArray[np.float32]:
        """The reasons for all pairs of entities. [2, N, N]"""
        found = np.zeros((2, *self.steps[0].shape), np.float32)
        best, second = found
        for rule in self.rules.get(relation, ()):
            reached = np.float32(rule.confidence) * connected(self.steps, rule.first, rule.second)
            np.maximum(second, np.minimum(best, reached), out=second)
            np.maximum(best, reached, out=best)
        return found

    def _followed(self, asked: NDArray[Any], relation: int, is_tail: bool) -> NDArray[np.float32]:
        """The reasons for some queries, by walking from what is asked."""
        found = np.zeros((2, len(asked), self.steps[0].shape[0]), np.float32)
        best, second = found
        for rule in self.rules.get(relation, ()):  # the most confident first: what is filled stays
            steps = rule.forward() if is_tail else rule.reversed(len(self.steps) // 2)
            rows = self.steps[steps[0]][asked]
            queries, answers = (rows if len(steps) == 1 else rows @ self.steps[steps[1]]).nonzero()
            elsewhere = answers != asked[queries]
            reached = queries[elsewhere], answers[elsewhere]
            again = best[reached] > 0
            second[reached] = np.where(again & (second[reached] == 0), rule.confidence, second[reached])
            best[reached] = np.where(again, best[reached], rule.confidence)
        return found


def mined_rules(graph: KnowledgeGraph, rng: np.random.Generator) -> RuleModel:
    """The rules of a graph's train split."""
    relations, entities = len(graph.relations), len(graph.entities)
    train = np.unique(graph.train, axis=0)
    steps = step_matrices(train, relations, entities)
    edges = edge_table(train, relations)
    wanted = [
        (first, second, relation)
        for relation in range(relations)
        for first, second in candidate_bodies(edges, train[train[:, 1] == relation], relation, rng)
    ]
    rules: dict[int, list[Rule]] = {}
    for (first, second), group in groupby(sorted(wanted), key=lambda body: body[:2]):
        for rule in measured_rules(steps, first, second, [relation for _, _, relation in group]):
            rules.setdefault(rule.relation, []).append(rule)
    for found in rules.values():
        found.sort(key=lambda rule: (-rule.confidence, -rule.support, rule.first, rule.second))
    return RuleModel(steps, rules, (frequencies(train, graph, 0), frequencies(train, graph, 2)))


def step_matrices(train: NDArray[Any], relations: int, entities: int) -> list[Any]:
    """A matrix for each relation, then for each inverse; of a small graph as plain arrays, which are faster."""
    straight = []
    for relation in range(relations):
        heads, _, tails = train[(train[:, 1] == relation) & (train[:, 0] != train[:, 2])].T
        ones = np.ones(len(heads), np.float32)
        straight.append(sp.csr_array((ones, (heads, tails)), shape=(entities, entities)))
    matrices = [*straight, *(matrix.T.tocsr() for matrix in straight)]
    is_small = entities <= SMALL and entities**2 * relations <= SMALL_NUMBERS
    return [matrix.toarray() for matrix in matrices] if is_small else matrices


def edge_table(train: NDArray[Any], relations: int) -> pl.DataFrame:
    """All steps as rows of start, step, end."""
    heads, links, tails = train[train[:, 0] != train[:, 2]].T.astype(np.int32)
    return pl.DataFrame(
        {
            "start": np.concatenate([heads, tails]),
            "step": np.concatenate([links, links + np.int32(relations)]),
            "end": np.concatenate([tails, heads]),
        }
    )


def candidate_bodies(
    edges: pl.DataFrame, triples: NDArray[Any], relation: int, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """The bodies that connect most of a sample of the relation's triples."""
    chosen = triples[rng.permutation(len(triples))[:SAMPLE]].astype(np.int32)
    pairs = pl.DataFrame(
        {"pair": np.arange(len(chosen), dtype=np.int32), "start": chosen[:, 0], "end": chosen[:, 2]}
    )
    one = pairs.join(edges, on=["start", "end"]).filter(pl.col("step") != relation)
    halfway = pairs.join(edges.rename({"end": "middle"}), on="start").rename({"step": "first"})
    second = edges.rename({"start": "middle", "step": "second"})
    two = halfway.join(second, on=["middle", "end"]).select("pair", "first", "second").unique()
    bodies = pl.concat(
        [
            one.select("pair", first="step", second=pl.lit(NO_STEP, pl.Int32)),
            two.select("pair", "first", "second"),
        ]
    )
    counted = bodies.group_by("first", "second").len().filter(pl.col("len") >= LEAST_SUPPORT)
    best = counted.sort(["len", "first", "second"], descending=[True, False, False]).head(BODIES)
    return list(best.select("first", "second").iter_rows())


def measured_rules(steps: list[Any], first: int, second: int, relations: list[int]) -> list[Rule]:
    """The rules of one body, with their confidence on all of train."""
    if second != NO_STEP and steps[first].sum(axis=0) @ steps[second].sum(axis=1) > LARGEST_BODY:
        return []
    body = connected(steps, first, second)
    pairs = int(body.sum(dtype=np.float64))
    supports = [(relation, int((body * steps[relation]).sum(dtype=np.float64))) for relation in relations]
    return [
        Rule(relation, first, second, support / (pairs + PSEUDO_COUNT), support)
        for relation, support in supports
        if support >= LEAST_SUPPORT
    ]


def connected(steps: list[Any], first: int, second: int) -> Any:
    """The pairs of distinct entities that a body connects, as a matrix of zeros and ones."""
    if second == NO_STEP:
        return steps[first]
    body = steps[first] @ steps[second]
    if isinstance(body, np.ndarray):
        np.fill_diagonal(body, 0)
        return np.minimum(body, 1)
    body.setdiag(0)
    body.eliminate_zeros()
    body.data[:] = 1
    return body


def frequencies(train: NDArray[Any], graph: KnowledgeGraph, side: int) -> Any:
    """How often an entity is the head (side 0) or tail (side 2) of a relation, over all entities. [R, N]"""
    shape = (len(graph.relations), len(graph.entities))
    share = np.full(len(train), 1 / (len(graph.entities) + PSEUDO_COUNT))
    return sp.csr_array((share, (train[:, 1], train[:, side])), shape=shape)
