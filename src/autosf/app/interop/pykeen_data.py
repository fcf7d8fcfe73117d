"""PyKEEN's data sets as graphs, by `pykeen:NAME`: found, downloaded and cached by PyKEEN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from autosf.app.interop.needing_pykeen import PREFIX, quiet, refuse_without_pykeen
from autosf.errors import UserError, did_you_mean, quoted
from autosf.graph.reading import read_graph
from autosf.graph.registry import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from autosf.graph.knowledge_graph import KnowledgeGraph

SPLITS = {"train": "training", "valid": "validation", "test": "testing"}


def is_of_pykeen(source: object) -> bool:
    """Whether a source names a data set of PyKEEN's."""
    return isinstance(source, str) and source.startswith(PREFIX)


def pykeen_graph(source: str, **options: Any) -> KnowledgeGraph:
    """The data set that `pykeen:NAME` names, all its splits in one vocabulary."""
    refuse_without_pykeen(source)
    with quiet():
        kind = _kind(source.removeprefix(PREFIX))
        try:
            dataset = kind()
            splits, left_out = _labelled(dataset)
        except (
            OSError,
            ValueError,
            ImportError,
        ) as error:  # no network, a damaged file, an extra of PyKEEN's
            reason = " ".join(str(error).split())[:160]
            raise UserError(f"{source}: PyKEEN could not get it ({reason})") from None
    name = type(dataset).__name__
    graph = read_graph(splits, **{"name": name_of(name) or name, **options})
    return graph.with_warnings(*([left_out] if left_out else []))


def _kind(name: str) -> Any:
    """PyKEEN's class of that name."""
    from pykeen.datasets import dataset_resolver

    try:
        return dataset_resolver.lookup(name)
    except KeyError:
        hint = did_you_mean(name, dataset_resolver.lookup_dict) or "; PyKEEN's documentation lists them"
        raise UserError(f"unknown data set {quoted(PREFIX + name)}{hint}") from None


def _labelled(dataset: Any) -> tuple[Mapping[str, NDArray[Any]], str | None]:
    """Labelled triples by split, [n, 3] each, and a warning where some may be left out.

    PyKEEN numbers the labels of train alone and drops what valid and test have beyond them; where it leaves the
    files at hand, they are read whole instead.
    """
    paths = {split: getattr(dataset, f"{word}_path", None) for split, word in SPLITS.items()}
    if paths["train"] and paths["test"]:
        from pykeen.triples.utils import load_triples

        more = dataset.load_triples_kwargs or {}
        return {split: load_triples(path, **more) for split, path in paths.items() if path}, None
    parts = {split: getattr(dataset, word) for split, word in SPLITS.items()}
    found = {
        split: part.label_triples(part.mapped_triples) for split, part in parts.items() if part is not None
    }
    warning = "PyKEEN hands over no triple of valid or test whose entities train does not show"
    return {split: np.asarray(rows, dtype=object) for split, rows in found.items()}, warning
