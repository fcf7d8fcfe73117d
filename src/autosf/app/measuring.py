"""How good a trained model is, by ranking and by telling true from false, under names that programs rely on."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from autosf.app.given import whole_number_or_none
from autosf.app.graphs import folder_with_negatives
from autosf.app.predicting import needed_graph
from autosf.errors import UserError, did_you_mean, quoted
from autosf.evaluation.classification import classify
from autosf.evaluation.metrics import grouped, is_unseen, mrr_interval, summarise
from autosf.evaluation.sampled_ranking import rank_among

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from autosf.app.predicting import AskableModel
    from autosf.evaluation.classification import Classification
    from autosf.graph.knowledge_graph import KnowledgeGraph

RANKED = ("test", "valid", "train")  # the splits, in the order in which they are proposed


def evaluation(asked: AskableModel, split: str, by: str | None, candidates: int | None) -> dict[str, Any]:
    """The filtered metrics of a split, and of each group if they are wanted."""
    most = whole_number_or_none("candidates", candidates, 2)
    graph, triples = ranked_triples(asked, split)
    sampled = most is not None and most < len(graph.entities)
    ranks = rank_among(asked.model, triples, asked.known_answers(), most or 0)
    unseen = is_unseen(graph, triples)
    interval = mrr_interval(ranks, np.random.default_rng(0))
    groups = {} if by is None else grouped(ranks, graph, by)
    return {
        **asdict(summarise(ranks)),
        "unseen_count": int(unseen.sum()),
        "groups": {name: asdict(metrics) for name, metrics in groups.items()},
        "seen": None if unseen.all() else asdict(summarise(ranks.where(~unseen))),
        "mrr_interval": [interval.low, interval.high],
        "graph": graph.name,
        "split": split,
        "sampled": sampled,
        "candidates": most if sampled else len(graph.entities),
    }


def ranked_triples(asked: AskableModel, split: str) -> tuple[KnowledgeGraph, NDArray[np.int32]]:
    """The graph and the triples of a split that has some."""
    if split not in RANKED:
        hint = did_you_mean(split, RANKED) or f"; expected one of {', '.join(RANKED)}"
        raise UserError(f"split: unknown value {quoted(split)}{hint}")
    graph = needed_graph(asked.trained)
    triples: NDArray[np.int32] = getattr(graph, split)
    if not len(triples):
        others = [name for name in RANKED if len(getattr(graph, name))]
        instead = f"; --split {others[0]} ranks those of {others[0]}" if others else ""
        raise UserError(f"graph {quoted(graph.name)}: its {split} split has no triples to rank{instead}")
    return graph, triples


def classification(asked: AskableModel, negatives: Path | str | None, seed: int) -> dict[str, Any]:
    """Accuracy and thresholds with a folder's false triples, else the graph's own, else some that are made."""
    folder = folder_with_negatives(asked.facts, asked.source) if negatives is None else negatives
    if folder is None:
        refuse_without_true_triples(asked)
    found = classify(asked.model, asked.labelled_triples(seed, folder))
    told = f"made, seed {seed}" if folder is None else str(folder)
    return {**classification_as_json(asked, found), "negatives": told}


def refuse_without_true_triples(asked: AskableModel) -> None:
    """Raise unless false triples can be made from the true ones of valid and of test."""
    graph = needed_graph(asked.trained)
    for split in ("valid", "test"):
        if not len(getattr(graph, split)):
            raise UserError(
                f"graph {quoted(graph.name)}: expected triples in valid and test to make false ones from,"
                f" found none in {split}; --negatives FOLDER takes a valid_neg and a test_neg of your own"
            )


def classification_as_json(asked: AskableModel, found: Classification) -> dict[str, Any]:
    """What was found, with the labels of relations."""
    labels, thresholds = asked.trained.relations.labels.to_list(), found.thresholds
    return {
        "accuracy": found.accuracy,
        "thresholds": {
            label: float(thresholds.of_relation[place])
            for place, label in enumerate(labels)
            if thresholds.is_own[place]
        },
        "fallback_count": found.fallback_count,
        "fallback_relations": found.fallback_relations,
        "overall_threshold": thresholds.overall,
        "count": int(found.counts.sum()),
        "relations": [
            {
                "relation": label,
                "accuracy": float(found.of_relation[place]),
                "threshold": float(thresholds.of_relation[place]),
                "count": int(found.counts[place]),
            }
            for place, label in enumerate(labels)
            if found.counts[place]
        ],
    }
