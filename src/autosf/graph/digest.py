"""The content digest of a graph: what it says, whatever the file format, row order or spare labels."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.vocabulary import Vocabulary

LABELS_AT_ONCE = 65_536


def content_digest(graph: KnowledgeGraph) -> str:
    """SHA-256, in hex, of the sorted labels that occur and of each split's sorted triples."""
    splits = dict(graph.splits())
    entities, entity_places = _occurring(
        graph.entities, [part[:, side] for part in splits.values() for side in (0, 2)]
    )
    relations, relation_places = _occurring(graph.relations, [part[:, 1] for part in splits.values()])
    content = hashlib.sha256(b"autosf graph 1\n")
    _add_labels(content, entities)
    _add_labels(content, relations)
    for split, triples in splits.items():
        content.update(f"{split} {len(triples)}\n".encode())
        columns = (entity_places[triples[:, 0]], relation_places[triples[:, 1]], entity_places[triples[:, 2]])
        for column in sorted_rows(*columns, entities=len(entities), relations=len(relations)):
            content.update(np.ascontiguousarray(column, dtype="<i4").data)
    return content.hexdigest()


def sorted_rows(
    heads: NDArray[np.int32],
    links: NDArray[np.int32],
    tails: NDArray[np.int32],
    *,
    entities: int,
    relations: int,
) -> tuple[NDArray[np.int64] | NDArray[np.int32], ...]:
    """The three columns with rows in ascending order, by one packed key wherever 63 bits hold it."""
    if entities * entities * relations >= 2**63:
        order = np.lexsort((tails, links, heads))
        return heads[order], links[order], tails[order]
    keys = (heads.astype(np.int64) * max(relations, 1) + links) * max(entities, 1) + tails
    keys.sort()
    pairs, tail = np.divmod(keys, max(entities, 1))
    head, link = np.divmod(pairs, max(relations, 1))
    return head, link, tail


def _occurring(
    vocabulary: Vocabulary, columns: list[NDArray[np.int32]]
) -> tuple[Vocabulary, NDArray[np.int32]]:
    """The vocabulary without labels that no triple uses, and each id's place in it."""
    used = np.zeros(len(vocabulary), dtype=bool)
    for column in columns:
        used[column] = True
    places = np.cumsum(used, dtype=np.int32) - np.int32(1)
    kept = vocabulary if used.all() else type(vocabulary)(vocabulary.labels.filter(used), vocabulary.kind)
    return kept, places


def _add_labels(content: hashlib._Hash, vocabulary: Vocabulary) -> None:
    """Count, byte lengths and bytes, so that no label can pretend to be two."""
    content.update(f"{vocabulary.kind} {len(vocabulary)}\n".encode())
    for start in range(0, len(vocabulary), LABELS_AT_ONCE):
        labels = vocabulary.labels.slice(start, LABELS_AT_ONCE)
        content.update(labels.str.len_bytes().to_numpy().astype("<i8").data)
        content.update(labels.str.join("")[0].encode())
