"""Graphs as users give them: on the command line a folder, a file or a name, in Python also what is in memory."""

from __future__ import annotations

import inspect
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from autosf.graph.knowledge_graph import KnowledgeGraph


def graph_of(source: object, **options: Any) -> KnowledgeGraph:
    """`read_graph` with names looked up in `$AUTOSF_DATA`, the cache and the packaged graphs.

    `pykeen:NAME` is a data set of PyKEEN's. A KnowledgeGraph is what it is.
    """
    from autosf.app.interop.pykeen_data import is_of_pykeen, pykeen_graph
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.reading import read_graph
    from autosf.graph.registry import search_path

    if isinstance(source, KnowledgeGraph):
        return source
    if is_of_pykeen(source):
        return pykeen_graph(str(source), **options)
    return read_graph(source, search_path=search_path(os.environ), **options)


def graph_for_programs(source: object, **options: Any) -> KnowledgeGraph:
    """The graph in a folder, a file, a frame, an array, a list of triples, a dict of splits, or of a name.

    The options are those of `autosf.graph.reading.read_graph`. What reading warns of is in the graph's
    `warnings`, and each line of it is issued as a UserWarning.
    """
    graph = graph_of(source, **options)
    if graph is not source:
        for line in graph.warnings:
            warnings.warn(line, UserWarning, stacklevel=_frames_of_ours())
    return graph


def _frames_of_ours() -> int:
    """The level at which our caller warns of the line outside this package that it works for."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "autosf":
        frame, level = frame.f_back, level + 1
    return level


def graph_as_it_is(source: str, **options: Any) -> KnowledgeGraph:
    """As `graph_of`, but nothing is split: what comes without splits is train, a missing split is empty."""
    from autosf.app.interop.pykeen_data import is_of_pykeen
    from autosf.graph.layouts import layout_of
    from autosf.graph.reading import refuse_empty_name
    from autosf.graph.registry import locate, name_of, search_path

    refuse_empty_name(source)
    path = Path(source)
    if is_of_pykeen(source):
        return graph_of(source, **options)
    if path.is_file():
        return graph_of(source, make_valid=0, make_test=0, **options)
    if not path.is_dir() and path.name == source:
        path = locate(source, search_path=search_path(os.environ))
        options.setdefault("name", name_of(source) or path.name)
    if path.is_dir():
        present = layout_of(path, options.get("layout")).splits
        options |= {f"make_{split}": 0 for split in ("valid", "test") if split not in present}
    return graph_of(str(path), **options)


def making_valid(graph: KnowledgeGraph) -> str:
    """What to do about a valid split without triples."""
    from autosf.graph.splitting import split

    made = split(graph.train, len(graph.entities), len(graph.relations), valid=1, test=0, seed=0)
    if made.available:
        return "`autosf data split` makes some"
    needed = "too small to take some, as train must show every entity and relation"
    return f"a graph of {len(graph.train):,} triples is {needed}; give valid"


def folder_with_negatives(facts: Mapping[str, Any], source: str | None = None) -> Path | None:
    """The folder of the graph, given or the one a model tells of, if it is there and has labelled triples."""
    from autosf.errors import UserError
    from autosf.graph.registry import locate, search_path

    graph = facts.get("graph")
    named = source or (graph.get("source") if isinstance(graph, dict) else None)
    if not isinstance(named, str) or not named:
        return None
    folder = Path(named)
    try:
        if not folder.is_dir() and folder.name == named:
            folder = locate(named, search_path=search_path(os.environ))
        return folder if any("_neg." in path.name for path in folder.iterdir()) else None
    except (UserError, OSError, ValueError):
        return None
