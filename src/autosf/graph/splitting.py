"""Valid and test triples chosen at random so that every entity and relation still occurs in train.

First a small set of triples that shows everything once is set aside for train (a cover); all others are
free to leave. The cover is found in a few vectorised rounds: triples that bring two new entities at once go
first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autosf.counting import counted
from autosf.errors import UserError
from autosf.graph.keys import distinct, triple_keys
from autosf.graph.leakage import THRESHOLD, leaking_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph

    Triples = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Split:
    """Three disjoint parts of the triples, what was wished for, and how many could leave train."""

    train: Triples
    valid: Triples
    test: Triples
    wished_valid: int
    wished_test: int
    available: int

    @property
    def missing(self) -> int:
        """Triples wished for valid and test that could not be had."""
        return self.wished_valid + self.wished_test - len(self.valid) - len(self.test)


@dataclass(frozen=True, slots=True)
class DroppedRelation:
    """Ids of a relation that was dropped and of the larger one that nearly contains it."""

    relation: int
    kept: int
    kind: str


def split(triples: Triples, entities: int, relations: int, *, valid: float, test: float, seed: int) -> Split:
    """A random split of the distinct triples; a size below 1 is a share of them, else a number of triples.

    Train shows every entity and relation that occurs. Where the sizes cannot be had, what can leave train
    is shared between valid and test in proportion; nothing fails.
    """
    triples = distinct(triples, entities=entities, relations=relations)
    wished_valid, wished_test = wished_count(valid, len(triples)), wished_count(test, len(triples))
    order = np.random.default_rng(seed).permutation(len(triples))
    shuffled = triples[order]
    free = order[~cover(shuffled, entities=entities, relations=relations)]
    test_count, valid_count = _affordable(wished_test, wished_valid, len(free))
    chosen = free[: test_count + valid_count]
    staying = np.ones(len(triples), dtype=bool)
    staying[chosen] = False
    return Split(
        train=triples[staying],
        valid=triples[np.sort(chosen[test_count:])],
        test=triples[np.sort(chosen[:test_count])],
        wished_valid=wished_valid,
        wished_test=wished_test,
        available=len(free),
    )


def joined(graph: KnowledgeGraph) -> tuple[Triples, int]:
    """All distinct triples of a graph, sorted, and how many repetitions were left out.

    Sorted, so that a split by the same seed does not depend on the order of the file's rows.
    """
    everything = np.concatenate([triples for _, triples in graph.splits()])
    (keys,) = triple_keys([everything], entities=len(graph.entities), relations=len(graph.relations))
    _, first = np.unique(keys, return_index=True)
    return everything[first], len(everything) - len(first)


def wished_count(size: float, triples: int) -> int:
    """A size as a number of triples: below 1 it is a share of all, rounded, and of any triples at least one."""
    if not 0 <= size < float("inf") or (size > 1 and size != int(size)):
        expected = "expected a share below 1 or a whole number of triples"
        raise UserError(f"a split's size: {expected}, found {size}")
    if size >= 1:
        return int(size)
    return max(round(size * triples), min(triples, 1)) if size else 0


def refuse_all(triples: int, *, valid: float, test: float) -> None:
    """Raise if valid and test, shares or numbers of the triples, leave none of them for train by themselves."""
    shares = sum(size for size in (valid, test) if size < 1)
    numbers = sum(size for size in (valid, test) if size >= 1)
    if triples and shares + numbers / triples >= 1:
        raise UserError(
            f"valid {valid:g}, test {test:g}: expected less than all of {counted(triples, 'triple')},"
            " as train must keep some; a size below 1 is a share, any other a number of triples"
        )


def _affordable(test: int, valid: int, free: int) -> tuple[int, int]:
    """The wished counts, or both cut in proportion to what is free."""
    if test + valid <= free:
        return test, valid
    cut = free * test // (test + valid)
    return cut, free - cut


def cover(triples: Triples, *, entities: int, relations: int) -> NDArray[np.bool_]:
    """Marks a small part of `triples` that shows every entity and relation of theirs. [n] bool

    Earlier triples are preferred, so a shuffled order makes a random cover. For entities it is at most 1.5
    times the smallest one (which would need a maximum matching: here it is only a maximal one); relations
    add one each.
    """
    kept = np.zeros(len(triples), dtype=bool)
    known = np.zeros(entities, dtype=bool)
    _keep_matching(triples, kept, known)
    for side in (0, 2):
        _keep_first(triples[:, side], kept, known)
        known[triples[kept, 0]] = True
        known[triples[kept, 2]] = True
    seen = np.zeros(relations, dtype=bool)
    seen[triples[kept, 1]] = True
    _keep_first(triples[:, 1], kept, seen)
    return kept


def _keep_matching(triples: Triples, kept: NDArray[np.bool_], known: NDArray[np.bool_]) -> None:
    """Keep triples between two unknown entities until there are none: each round, all first at both ends.

    The first of the open triples always qualifies, so every round gets on; on real graphs about ten are
    needed.
    """
    open_ = np.flatnonzero(triples[:, 0] != triples[:, 2])
    first = np.empty(len(known), dtype=np.int64)
    while len(open_):
        head, tail = triples[open_, 0], triples[open_, 2]
        first[head] = first[tail] = len(open_)
        places = np.arange(len(open_))
        np.minimum.at(first, head, places)
        np.minimum.at(first, tail, places)
        chosen = (first[head] == places) & (first[tail] == places)
        kept[open_[chosen]] = True
        known[head[chosen]] = True
        known[tail[chosen]] = True
        open_ = open_[~(known[head] | known[tail])]


def _keep_first(ids: NDArray[np.int32], kept: NDArray[np.bool_], known: NDArray[np.bool_]) -> None:
    """Keep the first triple of each id that is not known yet; afterwards all ids of this column are known."""
    candidates = np.flatnonzero(~known[ids])
    _, first = np.unique(ids[candidates], return_index=True)
    kept[candidates[first]] = True
    known[ids[candidates[first]]] = True


def without_leakage(
    triples: Triples, entities: int, relations: int, *, threshold: float = THRESHOLD
) -> tuple[Triples, list[DroppedRelation]]:
    """The distinct triples without relations that a larger one nearly contains, straight or reversed.

    As FB15k-237 was made from FB15k: of each such couple the larger relation stays. Afterwards no relation
    gives another away. Symmetric relations stay.
    """
    triples = distinct(triples, entities=entities, relations=relations)
    size = np.bincount(triples[:, 1], minlength=relations)
    leaks: dict[int, list[tuple[int, str]]] = {}
    pairs = leaking_pairs(triples, entities=entities, relations=relations, threshold=threshold)
    for source, target, kind in pairs.select("source", "target", "kind").sort("target", "kind").iter_rows():
        if kind != 2:
            leaks.setdefault(source, []).append((target, "inverse" if kind else "near_duplicate"))
    dropped: dict[int, DroppedRelation] = {}
    for relation in np.argsort(-size, kind="stable").tolist():
        larger = [found for found in leaks.get(relation, ()) if _comes_before(size, found[0], relation)]
        staying = [found for found in larger if found[0] not in dropped]
        if staying:
            dropped[relation] = DroppedRelation(relation, *staying[0])
    stays = np.ones(relations, dtype=bool)
    stays[list(dropped)] = False
    return triples[stays[triples[:, 1]]], list(dropped.values())


def _comes_before(size: NDArray[np.int64], one: int, other: int) -> bool:
    """Whether `one` is the larger relation; of equals, the one with the smaller id."""
    return (-int(size[one]), one) < (-int(size[other]), other)
