"""Test answers that train gives away: by an inverse, a near-duplicate or a symmetric relation.

A relation `source` gives `target` away when at least 0.8 of its triples, over all splits, are also triples
of `target` (near-duplicate) or of `target` reversed (inverse). A test triple of `target` is given away when
train holds the matching triple of `source`. With `source` = `target` reversed, the relation is symmetric:
that is counted apart, because it is a pattern to be learnt rather than a flaw of the split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from autosf.graph.keys import distinct, pair_keys
from autosf.graph.overlaps import relation_overlaps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph

THRESHOLD = 0.8
KINDS = ("near_duplicate", "inverse", "symmetric")


@dataclass(frozen=True, slots=True)
class LeakingPair:
    """Ids of two relations, how the first gives the second away, and how many test triples it does so for."""

    source: int
    target: int
    kind: str
    confidence: float
    test_triples: int


@dataclass(frozen=True, slots=True)
class Leakage:
    """Test triples given away: by inverse or near-duplicate relations together, by each, by symmetry."""

    test_triples: int
    share: float
    inverse: int
    near_duplicate: int
    symmetric: int
    pairs: tuple[LeakingPair, ...]


def leaking_pairs(
    triples: NDArray[np.int32], *, entities: int, relations: int, threshold: float = THRESHOLD
) -> pl.DataFrame:
    """Relations that give others away: columns source, target, kind, confidence. Triples must be distinct."""
    overlaps = relation_overlaps(triples, entities=entities, relations=relations)
    size = np.bincount(triples[:, 1], minlength=relations)
    confidence = overlaps.count / size[overlaps.relation]
    kind = np.where(overlaps.reversed, np.where(overlaps.relation == overlaps.other, 2, 1), 0)
    frame = pl.DataFrame(
        {
            "source": overlaps.relation,
            "target": overlaps.other,
            "kind": kind.astype(np.int8),
            "confidence": confidence,
        }
    )
    return frame.filter(pl.col("confidence") >= threshold)


def leakage(graph: KnowledgeGraph, threshold: float = THRESHOLD) -> Leakage:
    """What train gives away of the test split."""
    entities, relations = len(graph.entities), len(graph.relations)
    if not len(graph.test) or not len(graph.train):
        return Leakage(0, 0.0, 0, 0, 0, ())
    everything = distinct(
        np.concatenate([graph.train, graph.valid, graph.test]), entities=entities, relations=relations
    )
    pairs = leaking_pairs(everything, entities=entities, relations=relations, threshold=threshold)
    found = _matches(graph.train, graph.test, entities).join(pairs, on=["source", "target", "kind"])
    return _summary(found, pairs, len(graph.test))


def _matches(train: NDArray[np.int32], test: NDArray[np.int32], entities: int) -> pl.DataFrame:
    """Each test triple beside each train triple over the same entities: row, source, target, kind."""
    asked = pl.DataFrame(
        {
            "row": np.arange(len(test), dtype=np.int64),
            "target": test[:, 1].astype(np.int64),
            "pair": pair_keys(test[:, 0], test[:, 2], entities),
        }
    )
    wanted = asked.select("pair").unique()
    found = []
    for kind, first, second in ((0, 0, 2), (1, 2, 0)):
        known = pl.DataFrame({"pair": pair_keys(train[:, first], train[:, second], entities)})
        known = known.with_columns(source=pl.Series(train[:, 1])).join(wanted, on="pair", how="semi")
        known = known.unique().with_columns(pl.col("source").cast(pl.Int64))
        found.append(asked.join(known, on="pair").with_columns(kind=pl.lit(kind, pl.Int8)))
    mirrored = (pl.col("kind") == 1) & (pl.col("source") == pl.col("target"))
    return pl.concat(found).with_columns(kind=pl.when(mirrored).then(pl.lit(2, pl.Int8)).otherwise("kind"))


def _summary(found: pl.DataFrame, pairs: pl.DataFrame, test_triples: int) -> Leakage:
    """Totals over test triples, each counted once however many relations give it away."""
    by_kind = dict(found.group_by("kind").agg(pl.col("row").n_unique()).iter_rows())
    given_away = found.filter(pl.col("kind") != 2)["row"].n_unique()
    by_pair = found.group_by("source", "target", "kind").agg(test_triples=pl.col("row").n_unique())
    listed = (
        pairs.filter(pl.col("kind") != 2)
        .join(by_pair, on=["source", "target", "kind"], how="left")
        .with_columns(pl.col("test_triples").fill_null(0))
        .sort(["test_triples", "source", "target", "kind"], descending=[True, False, False, False])
        .select("source", "target", "kind", "confidence", "test_triples")
    )
    return Leakage(
        test_triples=given_away,
        share=given_away / test_triples,
        inverse=by_kind.get(1, 0),
        near_duplicate=by_kind.get(0, 0),
        symmetric=by_kind.get(2, 0),
        pairs=tuple(LeakingPair(s, t, KINDS[kind], c, n) for s, t, kind, c, n in listed.iter_rows()),
    )
