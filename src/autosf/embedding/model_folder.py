"""Model folders: a trained model on disk, opened without executing anything.

model.safetensors    tensors `entities` [N, d] and `relations` [R, d], or [2R, d] with reciprocal relations
model.json           structure, settings, graph, metrics, versions; checksums of the other files
entities.parquet     column `label`, row i names row i of the tensor
relations.parquet    the same
triples.parquet      columns `split`, `head`, `relation`, `tail` (ids): what is known; may be left out
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from autosf.algebra.structure import from_rows
from autosf.embedding.model import Model
from autosf.embedding.sealed_folder import (
    OWN_KEYS,
    Kind,
    is_sealed,
    names_sealed,
    open_sealed,
    refuse_to_replace,
    save_sealed,
)
from autosf.embedding.storage import is_finite
from autosf.embedding.trained_model import TrainedModel
from autosf.errors import UserError, quoted, shown
from autosf.graph.knowledge_graph import SPLITS, KnowledgeGraph
from autosf.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from autosf.algebra.structure import Structure

KIND = Kind("model folder", "model.json", "autosf model", 1)
TENSORS = "model.safetensors"
TRIPLES = "triples.parquet"
LABELS = {"entity": "entities.parquet", "relation": "relations.parquet"}
MODEL_KEYS = ("structure", "reciprocal", "dimension", "entities", "relations", "triples")
PRECISIONS = (torch.float32, torch.float64)


def save_model(folder: Path | str, trained: TrainedModel, *, with_triples: bool = True) -> Path:
    """Write the model folder, whole or not at all, replacing an earlier one; its path comes back.

    Without its triples a folder is smaller, but cannot tell known answers from new ones.
    """
    folder = Path(folder)
    _refuse_unusable(trained.model)
    graph = trained.graph if with_triples else None

    def write(beside: Path) -> Sequence[str]:
        _write_tensors(trained.model, beside / TENSORS)
        for vocabulary in (trained.entities, trained.relations):
            pl.DataFrame({"label": vocabulary.labels}).write_parquet(beside / LABELS[vocabulary.kind])
        if graph is not None:
            _triple_table(graph).write_parquet(beside / TRIPLES)
        return _file_names(record)

    record = _record(trained, graph)
    save_sealed(folder, KIND, record, write)
    return folder


def load_model(folder: Path | str, *, device: str | torch.device = "cpu") -> TrainedModel:
    """The trained model of a folder; whatever is wrong with the folder is told in one line."""
    folder = Path(folder)
    record = open_sealed(folder, KIND, _file_names)
    place = folder / KIND.manifest
    structure = _structure(record, place)
    sizes = {
        kind: _count(record, key, place) for kind, key in (("entity", "entities"), ("relation", "relations"))
    }
    shapes = _shapes(record, structure, sizes, place)
    tensors = _read_tensors(folder / TENSORS, shapes)
    entities, relations = (
        Vocabulary(_labels(folder / LABELS[kind], size), kind) for kind, size in sizes.items()
    )
    facts = {key: value for key, value in record.items() if key not in (*OWN_KEYS, *MODEL_KEYS)}
    reciprocal = record["reciprocal"]
    model = Model(structure, tensors["entities"].to(device), tensors["relations"].to(device), reciprocal)
    trained = TrainedModel(model, entities, relations, facts)
    if record.get("triples") is None:
        return trained
    graph = _graph(folder / TRIPLES, record["triples"], trained)
    return TrainedModel(model, entities, relations, facts, graph)


def manifest_of(folder: Path | str) -> dict[str, Any]:
    """What a model folder says of itself; its tensors, labels and triples are not looked at."""
    return open_sealed(Path(folder), KIND, lambda _: [])


def structure_of(folder: Path | str) -> Structure:
    """The structure of a model folder, by its manifest alone."""
    return _structure(manifest_of(folder), Path(folder) / KIND.manifest)


def refuse_other_files(folder: Path) -> None:
    """Raise if a model cannot be saved there, as something else is: known before a training, not after it."""
    refuse_to_replace(folder.resolve(), KIND)


def is_model_folder(path: Path | str) -> bool:
    """Whether a path is a folder that says it holds a model."""
    return is_sealed(Path(path), KIND)


def is_file_of_model(path: Path) -> bool:
    """Whether a model folder holds the file, or the one that a link leads to, as a part of itself."""
    place = path.resolve()
    return place.name in names_sealed(place.parent, KIND)


def _file_names(record: Mapping[str, Any]) -> Sequence[str]:
    """The files that a manifest implies, besides itself."""
    return [TENSORS, *LABELS.values(), *([TRIPLES] if record.get("triples") is not None else [])]


def _record(trained: TrainedModel, graph: KnowledgeGraph | None) -> dict[str, Any]:
    """What `model.json` says, checksums apart."""
    model = trained.model
    facts = plain(trained.facts)
    assert not set(facts) & {*OWN_KEYS, *MODEL_KEYS}, "facts must not use the names of the model's own"
    return {
        "structure": plain(model.structure.rows),
        "reciprocal": model.reciprocal,
        "dimension": model.dimension,
        "entities": len(trained.entities),
        "relations": len(trained.relations),
        "triples": None if graph is None else {split: len(part) for split, part in graph.splits()},
        **facts,
    }


def plain(value: Any) -> Any:
    """A value as JSON holds it: numbers of numpy as numbers, paths as text, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _write_tensors(model: Model, path: Path) -> None:
    tensors = {"entities": model.entities, "relations": model.relations}
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # a full disk, in words of its own
        raise OSError(str(error)) from None


def _refuse_unusable(model: Model) -> None:
    """Raise if the embeddings are not numbers to rank by."""
    for name, tensor in (("entities", model.entities), ("relations", model.relations)):
        assert tensor.dtype in PRECISIONS, f"{name}: a model is kept as float32 or float64"
        if not is_finite(tensor):
            raise UserError(f"model: {name} holds numbers that are not finite: the training has diverged")


def _structure(record: Mapping[str, Any], place: Path) -> Structure:
    try:
        return from_rows(record.get("structure"))
    except UserError as error:
        raise UserError(f"{shown(place)}: {error}") from None


def _count(record: Mapping[str, Any], key: str, place: Path) -> int:
    value = record.get(key)
    if type(value) is not int or value < 0:
        raise UserError(f"{shown(place)}: expected a count as {key}, found {quoted(value)}")
    return value


def _shapes(
    record: Mapping[str, Any], structure: Structure, sizes: Mapping[str, int], place: Path
) -> dict[str, tuple[int, int]]:
    """The shape that each tensor must have."""
    dimension, reciprocal = _count(record, "dimension", place), record.get("reciprocal")
    if dimension == 0 or dimension % structure.parts:
        wanted = f"a dimension that {structure.parts} parts divide"
        raise UserError(f"{shown(place)}: expected {wanted}, found {dimension}")
    if type(reciprocal) is not bool:
        raise UserError(f"{shown(place)}: expected true or false as reciprocal, found {quoted(reciprocal)}")
    rows = sizes["relation"] * (2 if reciprocal else 1)
    return {"entities": (sizes["entity"], dimension), "relations": (rows, dimension)}


def _read_tensors(path: Path, shapes: Mapping[str, tuple[int, int]]) -> dict[str, Tensor]:
    """The tensors of these shapes; names, shapes and types are looked at before anything is read."""
    try:
        with safe_open(path, framework="pt") as file:
            if set(file.keys()) != set(shapes):
                found = quoted(", ".join(sorted(file.keys())))
                raise UserError(f"{shown(path)}: expected the tensors {' and '.join(shapes)}, found {found}")
            for name, shape in shapes.items():
                _refuse_shape(path, name, shape, file.get_slice(name))
            tensors = {name: file.get_tensor(name) for name in shapes}
    except (SafetensorError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:80]
        raise UserError(
            f"{shown(path)}: expected a safetensors file, found something else ({reason})"
        ) from None
    for name, tensor in tensors.items():
        if not is_finite(tensor):
            raise UserError(f"{shown(path)}: {name} holds numbers that are not finite")
    return tensors


def _refuse_shape(path: Path, name: str, shape: tuple[int, int], found: Any) -> None:
    if tuple(found.get_shape()) != shape:
        raise UserError(f"{shown(path)}: expected {name} of shape {list(shape)}, found {found.get_shape()}")
    if found.get_dtype() not in ("F32", "F64"):
        raise UserError(f"{shown(path)}: expected {name} as float32 or float64, found {found.get_dtype()}")


def _labels(path: Path, count: int) -> pl.Series:
    """The labels of a vocabulary: distinct, in ascending order."""
    labels = _table(path, {"label": pl.String}, count)["label"]
    if len(labels) and not (labels.slice(1) > labels.slice(0, len(labels) - 1)).all():
        raise UserError(f"{shown(path)}: expected distinct labels in ascending order, found others")
    return labels


def _triple_table(graph: KnowledgeGraph) -> pl.DataFrame:
    rows = np.concatenate([part for _, part in graph.splits()])
    splits = [pl.repeat(split, len(part), dtype=pl.String, eager=True) for split, part in graph.splits()]
    columns = {role: rows[:, side] for side, role in enumerate(("head", "relation", "tail"))}
    return pl.DataFrame({"split": pl.concat(splits), **columns})


def _graph(path: Path, counts: Any, trained: TrainedModel) -> KnowledgeGraph:
    """The known triples as a graph in the model's vocabularies."""
    place = path.with_name(KIND.manifest)
    if not isinstance(counts, dict) or set(counts) != set(SPLITS):
        raise UserError(
            f"{shown(place)}: expected counts of {', '.join(SPLITS)} as triples, found {quoted(counts)}"
        )
    lengths = [_count(counts, split, place) for split in SPLITS]
    schema = {"split": pl.String, "head": pl.Int32, "relation": pl.Int32, "tail": pl.Int32}
    table = _table(path, schema, sum(lengths))
    expected = pl.concat(
        [pl.repeat(split, n, dtype=pl.String, eager=True) for split, n in zip(SPLITS, lengths, strict=True)]
    )
    if not table["split"].equals(expected):
        raise UserError(f"{shown(path)}: expected {counts} triples by split, in that order, found others")
    triples = table.select("head", "relation", "tail").to_numpy(order="c")
    sizes = (len(trained.entities), len(trained.relations), len(trained.entities))
    if len(triples) and ((triples < 0) | (triples >= sizes)).any():
        raise UserError(f"{shown(path)}: expected ids of the model's entities and relations, found others")
    triples = np.array(triples, dtype=np.int32, order="C")
    triples.flags.writeable = False
    train, valid, test = np.split(triples, np.cumsum(lengths)[:-1])
    return KnowledgeGraph(trained.graph_name, trained.entities, trained.relations, train, valid, test)


def _table(path: Path, schema: Mapping[str, Any], height: int) -> pl.DataFrame:
    """A parquet table of this schema and height without nulls; both are looked at before rows are read."""
    try:
        with path.open("rb") as file:
            found = dict(pl.read_parquet_schema(file))
        if found != dict(schema):
            raise UserError(f"{shown(path)}: expected the columns {', '.join(schema)}, found others")
        rows = pl.scan_parquet(path, glob=False, hive_partitioning=False).select(pl.len()).collect().item()
        if rows != height:
            raise UserError(f"{shown(path)}: expected {height} rows, found {rows}")
        table = pl.read_parquet(path, glob=False, hive_partitioning=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:80]
        raise UserError(f"{shown(path)}: expected a parquet file, found something else ({reason})") from None
    if any(count for count in table.null_count().row(0)):
        raise UserError(f"{shown(path)}: expected a value in every row, found nulls")
    return table
