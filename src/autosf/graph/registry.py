"""The well-known graphs by name, and where on this machine a graph of a given name lies.

A search path is a sequence of folders, each holding one folder a graph: `$AUTOSF_DATA`, the cache, and the
data sets inside an installed `pykeen`, in this order. The facts about each graph are in `registry.toml`
beside this file.
"""

from __future__ import annotations

import importlib.resources
import importlib.util
import os
import re
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.algebra.zoo import plain
from autosf.errors import UserError, did_you_mean, quoted
from autosf.graph.splits import SPLITS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE_ENDING = re.compile(r"\.[A-Za-z]\w{0,7}$")  # graphs are named after versions and years, too


@dataclass(frozen=True, slots=True)
class Mirror:
    """A place to get a graph from: `files` by split, names inside `archive` or, without one, addresses."""

    archive: str | None
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class KnownGraph:
    """A well-known graph. `hashes` are hex digests of the unpacked splits by `algorithm`, where published."""

    name: str
    other_names: tuple[str, ...]
    entities: int
    relations: int
    sizes: dict[str, int]
    licence: str
    source: str
    unverified: str | None
    algorithm: str | None
    hashes: dict[str, str]
    mirrors: tuple[Mirror, ...]


@cache
def known_graphs() -> tuple[KnownGraph, ...]:
    """All well-known graphs, in the registry's order."""
    text = importlib.resources.files("autosf.graph").joinpath("registry.toml").read_text(encoding="utf-8")
    return tuple(_known_graph(entry) for entry in tomllib.loads(text)["graph"])


def _known_graph(entry: dict[str, Any]) -> KnownGraph:
    algorithm = next((name for name in ("sha256", "md5") if name in entry), None)
    return KnownGraph(
        name=entry["name"],
        other_names=tuple(entry.get("other_names", ())),
        entities=entry["entities"],
        relations=entry["relations"],
        sizes={split: entry[split] for split in SPLITS},
        licence=entry["licence"],
        source=entry["source"],
        unverified=entry.get("unverified"),
        algorithm=algorithm,
        hashes=entry[algorithm] if algorithm else {},
        mirrors=tuple(
            Mirror(mirror.get("archive"), {split: mirror[split] for split in SPLITS})
            for mirror in entry["mirror"]
        ),
    )


def known_graph(name: str) -> KnownGraph:
    """The well-known graph of that name, in any case and punctuation; else the nearest names are told."""
    for graph in known_graphs():
        if plain(name) in _names(graph):
            return graph
    raise UserError(_unknown(name, [graph.name for graph in known_graphs()]))


def name_of(name: str) -> str | None:
    """A well-known graph's name as it is usually written; None if there is no such graph."""
    return next((graph.name for graph in known_graphs() if plain(name) in _names(graph)), None)


def locate(name: str, *, search_path: Sequence[Path]) -> Path:
    """The folder of the first graph of that name on the search path; it need not be a well-known one."""
    found = at_hand(name, search_path=search_path)
    if found is not None:
        return found
    known = name_of(name)
    if known:
        raise UserError(f"{known} is not on this machine; get it with: autosf data get {known}")
    here = [child.name for folder in search_path for child in graph_folders(folder)]
    names = [*(graph.name for graph in known_graphs()), *here]
    if FILE_ENDING.search(name):
        raise UserError(f"{quoted(name)[1:-1]}: there is no such file or folder{_nearest(name, names)}")
    raise UserError(_unknown(name, names, "and no such folder"))


def at_hand(name: str, *, search_path: Sequence[Path]) -> Path | None:
    """As `locate`, but None where there is none."""
    names = next((_names(graph) for graph in known_graphs() if plain(name) in _names(graph)), {plain(name)})
    for folder in search_path:
        for child in graph_folders(folder):
            if plain(child.name) in names:
                return child
    return None


def search_path(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Where graphs are looked for, given the environment's variables."""
    chosen = environ.get("AUTOSF_DATA")
    return (*([Path(chosen)] if chosen else []), cache_folder(environ), *packaged_folders())


def cache_folder(environ: Mapping[str, str]) -> Path:
    """`$XDG_CACHE_HOME/autosf`, or `~/.cache/autosf`; a relative value is ignored, as that standard asks.

    A user without a home, as containers have them, gets a folder among temporary ones.
    """
    chosen = Path(environ.get("XDG_CACHE_HOME") or "")
    if chosen.is_absolute():
        return chosen / "autosf"
    try:
        home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"autosf-{os.getuid()}"
    return home / ".cache" / "autosf"


def packaged_folders() -> tuple[Path, ...]:
    """The data sets in an installed `pykeen` (UMLS, Kinships, Nations), found without running any of it."""
    spec = importlib.util.find_spec("pykeen")
    places = spec.submodule_search_locations if spec else None
    return tuple(Path(place) / "datasets" for place in places or ())


def _names(graph: KnownGraph) -> set[str]:
    return {plain(name) for name in (graph.name, *graph.other_names)}


def graph_folders(folder: Path) -> list[Path]:
    """The folders directly below that hold a training split, sorted; none where the folder cannot be read."""
    try:
        below = sorted(child for child in folder.iterdir() if child.is_dir())
        return [child for child in below if any(child.glob("train*"))]
    except OSError:
        return []


def _unknown(name: str, names: Sequence[str], more: str = "") -> str:
    told = f", {more}" if more else ""
    return f"unknown graph {quoted(name)}{told}{_nearest(name, names) or '; see: autosf data list'}"


def _nearest(name: str, names: Sequence[str]) -> str:
    return did_you_mean(name, sorted({known.lower() for known in names}))
