"""Graphs to files, in every layout that is read: written beside and renamed, never half-done."""

from __future__ import annotations

import gzip
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import polars as pl

from autosf.errors import UserError, did_you_mean, quoted, shown
from autosf.graph.rdf import FORMATS, oxigraph
from autosf.graph.roles import ROLE_WORDS, ROLES, roles_by_name
from autosf.graph.text_lines import BYTE_ORDER_MARK
from autosf.whole import whole_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.vocabulary import Vocabulary


def write_graph(graph: KnowledgeGraph, folder: Path | str, layout: str = "tsv") -> Path:
    """Write the graph into a new folder, whose path comes back. A split without triples is left out."""
    folder = Path(folder)
    if layout not in LAYOUTS:
        known = ", ".join(LAYOUTS)
        raise UserError(f"unknown layout {quoted(layout)}{did_you_mean(layout, LAYOUTS)} (known: {known})")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{shown(folder)}: exists already; name a new folder")
    with whole_folder(folder) as beside:
        LAYOUTS[layout](graph, beside)
    return folder


def _write_text(graph: KnowledgeGraph, folder: Path, ending: str) -> None:
    """One tab-separated file for each split; a header only where the first triple would look like one."""
    _refuse_unwritable(graph, "\t\n\0")
    for split, frame in _frames(graph):
        with _created(folder / f"{split}{ending}") as file:
            first = frame.row(0)
            if first[0].startswith(BYTE_ORDER_MARK):
                file.write(BYTE_ORDER_MARK.encode())
            if _looks_like_header(first):
                file.write(("\t".join(_header(frame)) + "\n").encode())
            _write_rows(frame, file)


def _write_csv(graph: KnowledgeGraph, folder: Path, ending: str) -> None:
    """One CSV file for each split, with a header, every label in quotes."""
    _refuse_unwritable(graph, "\0")
    for split, frame in _frames(graph):
        with _created(folder / f"{split}{ending}") as file:
            frame.rename(dict(zip(ROLES, _header(frame), strict=True))).write_csv(file, quote_style="always")


def _write_parquet(graph: KnowledgeGraph, folder: Path) -> None:
    for split, frame in _frames(graph):
        frame.write_parquet(folder / f"{split}.parquet")


def _write_dict(graph: KnowledgeGraph, folder: Path, *, ids: bool) -> None:
    """`entities.dict`, `relations.dict` (id, label) and the splits in labels or ids."""
    _refuse_unwritable(graph, "\t\n\0")
    for vocabulary, name in ((graph.entities, "entities.dict"), (graph.relations, "relations.dict")):
        with _created(folder / name) as file:
            _write_rows(_numbered(vocabulary), file)
    if not ids:
        _write_text(graph, folder, ".txt")
        return
    for split, frame in _id_frames(graph):
        with _created(folder / f"{split}.txt") as file:
            _write_rows(frame, file)


def _write_openke(graph: KnowledgeGraph, folder: Path) -> None:
    """`entity2id.txt`, `relation2id.txt`, `train2id.txt`, ... (head, tail, relation), with a count line."""
    _refuse_unwritable(graph, "\t\n\0")
    tables = {"entity2id": _numbered(graph.entities), "relation2id": _numbered(graph.relations)}
    tables = {name: frame.select("label", "id") for name, frame in tables.items()}
    tables |= {f"{split}2id": frame.select("head", "tail", "relation") for split, frame in _id_frames(graph)}
    for name, frame in tables.items():
        with _created(folder / f"{name}.txt") as file:
            file.write(f"{len(frame)}\n".encode())
            _write_rows(frame, file, separator="\t" if "label" in frame.columns else " ")


def _write_libkge(graph: KnowledgeGraph, folder: Path) -> None:
    """`entity_ids.del`, `relation_ids.del` (id, label) and `train.del` in ids."""
    _refuse_unwritable(graph, "\t\n\0")
    tables = {"entity_ids": _numbered(graph.entities), "relation_ids": _numbered(graph.relations)}
    for name, frame in (tables | dict(_id_frames(graph))).items():
        with _created(folder / f"{name}.del") as file:
            _write_rows(frame, file)


def _write_rdf(graph: KnowledgeGraph, folder: Path, ending: str) -> None:
    """One RDF file for each split; every label must be an IRI or, for a blank node, `_:name`."""
    engine = oxigraph(folder)

    def node(label: str) -> Any:
        try:
            return engine.BlankNode(label[2:]) if label.startswith("_:") else engine.NamedNode(label)
        except ValueError as error:
            raise UserError(f"expected IRIs for RDF, found the label {quoted(label)} ({error})") from None

    for split, frame in _frames(graph):
        triples = (engine.Triple(*map(node, row)) for row in frame.iter_rows())
        with _created(folder / f"{split}.{ending}") as file:
            engine.serialize(triples, file, format=getattr(engine.RdfFormat, FORMATS[ending]))


LAYOUTS: dict[str, Callable[[KnowledgeGraph, Path], None]] = {
    "none": partial(_write_text, ending=""),
    "txt": partial(_write_text, ending=".txt"),
    "txt.gz": partial(_write_text, ending=".txt.gz"),
    "tsv": partial(_write_text, ending=".tsv"),
    "tsv.gz": partial(_write_text, ending=".tsv.gz"),
    "csv": partial(_write_csv, ending=".csv"),
    "csv.gz": partial(_write_csv, ending=".csv.gz"),
    "parquet": _write_parquet,
    "dict": partial(_write_dict, ids=False),
    "dict-ids": partial(_write_dict, ids=True),
    "openke": _write_openke,
    "libkge": _write_libkge,
    "nt": partial(_write_rdf, ending="nt"),
    "ttl": partial(_write_rdf, ending="ttl"),
    "rdf": partial(_write_rdf, ending="rdf"),
}


def _frames(graph: KnowledgeGraph) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each split that has triples, as labels."""
    for split, triples in graph.splits():
        if len(triples):
            yield split, pl.DataFrame(dict(zip(ROLES, graph.columns(split), strict=True)))


def _id_frames(graph: KnowledgeGraph) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each split that has triples, as ids."""
    for split, triples in graph.splits():
        if len(triples):
            yield split, pl.DataFrame({role: triples[:, side] for side, role in enumerate(ROLES)})


def _numbered(vocabulary: Vocabulary) -> pl.DataFrame:
    return pl.DataFrame({"id": np.arange(len(vocabulary)), "label": vocabulary.labels})


def _write_rows(frame: pl.DataFrame, file: IO[bytes], separator: str = "\t") -> None:
    frame.write_csv(file, separator=separator, include_header=False, quote_style="never")


@contextmanager
def _created(path: Path) -> Iterator[IO[bytes]]:
    """A new file, packed if its name says so; packed files of the same content are the same bytes."""
    with path.open("wb") as raw:
        if path.suffix != ".gz":
            yield raw
            return
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
            yield packed  # type: ignore[misc]


def _looks_like_header(row: tuple[str, ...]) -> bool:
    try:
        return roles_by_name(row, "") is not None
    except UserError:
        return True


def _header(frame: pl.DataFrame) -> tuple[str, ...]:
    """Column names that are no triple of the split, so that no row can be taken for a second header."""
    for words in product(*(ROLE_WORDS[role] for role in ROLES)):
        if frame.filter(pl.col(role) == word for role, word in zip(ROLES, words, strict=True)).is_empty():
            return words
    raise UserError("every possible header is a triple of this graph; write it as parquet")


def _refuse_unwritable(graph: KnowledgeGraph, forbidden: str) -> None:
    """Raise if a label holds a character with which the layout's lines would fall apart."""
    for vocabulary in (graph.entities, graph.relations):
        for character in forbidden:
            broken = vocabulary.labels.filter(vocabulary.labels.str.contains(character, literal=True))
            if len(broken):
                what = f"the {vocabulary.kind} {quoted(broken[0])} holds {character!a}"
                raise UserError(
                    f"{what}, which this layout cannot write; use {'csv or ' * (character != chr(0))}parquet"
                )
        ending = vocabulary.labels.filter(vocabulary.labels.str.ends_with("\r"))
        if len(ending) and "\n" in forbidden:
            what = f"the {vocabulary.kind} {quoted(ending[0])} ends in a carriage return"
            raise UserError(f"{what}, which this layout cannot write; use csv or parquet")
