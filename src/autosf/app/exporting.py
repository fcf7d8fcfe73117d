"""Embeddings with their labels in files that other tools open. One file each, written beside and renamed.

Reciprocal relations are kept apart, so that row i of `relations` always belongs to label i.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

import numpy as np
import polars as pl

from autosf.algebra.structure import to_json
from autosf.embedding.model_folder import is_file_of_model
from autosf.errors import UserError, did_you_mean, quoted, shown
from autosf.whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from autosf.embedding.trained_model import TrainedModel
    from autosf.graph.vocabulary import Vocabulary

LARGEST_HEADER = 90 << 20  # of safetensors, which refuses 100 MB
LARGEST_LABELS = 1 << 30  # numpy gives every label the room of the longest
LARGEST_LINE = 1 << 26  # of a file that may be word2vec's


def export(trained: TrainedModel, path: Path, form: str, *, force: bool = False) -> Path:
    """Write the embeddings as one of FORMS; its path comes back.

    A file of that name is replaced if it is empty or an earlier export of the form, any other one only by
    `force`, and those of a model never.
    """
    if form not in FORMS:
        known = ", ".join(FORMS)
        raise UserError(f"unknown form {quoted(form)}{did_you_mean(form, FORMS)} (known: {known})")
    if is_file_of_model(path):
        raise UserError(f"{shown(path)}: is a file of a model, which would be lost; name another")
    if not force:
        refuse_other_file(path, form)
    with whole_file(path) as beside:
        FORMS[form](trained, beside)
    return path


def refuse_other_file(path: Path, form: str) -> None:
    """Raise if a file is there that holds something and is no export of this form."""
    if path.is_file() and path.stat().st_size and not is_export(path, form):
        raise UserError(
            f"{shown(path)}: expected a new file or an earlier export to {form}, found another file;"
            " name another, or add --force to replace it"
        )


def is_export(path: Path, form: str) -> bool:
    """Whether the file is of the form and holds what an export of ours does."""
    try:
        return HALLMARKS[form](path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, BadZipFile, OSError, ValueError):
        return False


def _is_safetensors(path: Path) -> bool:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            return {"structure", "entity_labels", "relation_labels"} <= set(file.metadata() or ())
    except SafetensorError:
        return False


def _is_npz(path: Path) -> bool:
    with ZipFile(path) as file:
        return {"entities.npy", "entity_labels.npy"} <= set(file.namelist())


def _is_word2vec(path: Path) -> bool:
    """By two lines: how many vectors of how many numbers, and the first one after its label."""
    with path.open("rb") as file:
        sizes, row = file.readline(100), file.readline(LARGEST_LINE)
    if not re.fullmatch(rb"\d+ \d+\n", sizes):
        return False
    numbers = [float(field) for field in row.split(b" ")[1:]]
    return len(numbers) == int(sizes.split()[1]) > 1  # with one number a line it may be a list of edges


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        found = dict(pl.read_parquet_schema(file))
    texts = {"kind": pl.String, "label": pl.String}
    return any(found == texts | {"vector": pl.List(real)} for real in (pl.Float32, pl.Float64))


HALLMARKS: dict[str, Callable[[Path], bool]] = {
    "safetensors": _is_safetensors,
    "npz": _is_npz,
    "word2vec": _is_word2vec,
    "parquet": _is_parquet,
}


def embeddings(trained: TrainedModel) -> dict[str, NDArray[np.floating]]:
    """`entities` [N, d], `relations` [R, d] and, if the model has them, `reciprocal_relations` [R, d]."""
    model = trained.model
    relations = model.relations.detach().cpu().numpy()
    found = {
        "entities": model.entities.detach().cpu().numpy(),
        "relations": relations[: model.relation_count],
    }
    if model.reciprocal:
        found["reciprocal_relations"] = relations[model.relation_count :]
    return found


def _write_safetensors(trained: TrainedModel, path: Path) -> None:
    """Tensors as in `embeddings`; structure and labels, as JSON, in the metadata."""
    from safetensors.numpy import save_file

    metadata = {
        "structure": to_json(trained.model.structure),
        "entity_labels": json.dumps(trained.entities.labels.to_list()),
        "relation_labels": json.dumps(trained.relations.labels.to_list()),
    }
    if sum(map(len, metadata.values())) > LARGEST_HEADER:
        raise UserError("labels: too many for the header of safetensors; export to parquet")
    rows = {name: np.ascontiguousarray(array) for name, array in embeddings(trained).items()}
    save_file(rows, path, metadata=metadata)


def _write_npz(trained: TrainedModel, path: Path) -> None:
    """Arrays as in `embeddings`, with `entity_labels`, `relation_labels` and `structure`; opens without pickle."""
    labels = {f"{v.kind}_labels": _text_array(v) for v in (trained.entities, trained.relations)}
    with path.open("wb") as file:
        structure = np.array(trained.model.structure.rows)
        np.savez(file, **embeddings(trained), **labels, structure=structure)  # type: ignore[arg-type]


def _text_array(vocabulary: Vocabulary) -> NDArray[np.str_]:
    labels = vocabulary.labels
    broken = labels.filter(labels.str.ends_with("\0"))
    if len(broken):
        what = f"the {vocabulary.kind} {quoted(broken[0])} ends in a zero byte"
        raise UserError(f"{what}, which numpy drops; export to parquet")
    longest = max(1, int(labels.str.len_chars().to_numpy().max(initial=0)))
    if 4 * longest * len(labels) > LARGEST_LABELS:
        raise UserError(f"{vocabulary.kind} labels: too long for a numpy array of text; export to parquet")
    return np.array(labels.to_list(), dtype=f"U{longest}")


def _write_word2vec(trained: TrainedModel, path: Path) -> None:
    """The text form of word2vec, entities only: white space in labels becomes an underscore."""
    labels = trained.entities.labels.str.replace_all(r"\s", "_")
    labels = pl.select(pl.when(labels == "").then(pl.lit("_")).otherwise(labels)).to_series()
    twice = labels.filter(labels.is_duplicated())
    if len(twice):
        what = f"two entities become {quoted(twice[0])} without white space"
        raise UserError(f"{what}, which word2vec cannot hold; export to parquet")
    rows = embeddings(trained)["entities"]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(f"{len(rows)} {rows.shape[1]}\n")
        for label, row in zip(labels, rows, strict=True):
            file.write(f"{label} {' '.join(map(str, row))}\n")


def _write_parquet(trained: TrainedModel, path: Path) -> None:
    """One table: kind (entity, relation, reciprocal), label, vector."""
    kinds = {"entities": "entity", "relations": "relation", "reciprocal_relations": "reciprocal"}
    tables = []
    for name, rows in embeddings(trained).items():
        labels = (trained.entities if name == "entities" else trained.relations).labels
        vectors = pl.Series("vector", rows, dtype=None).cast(
            pl.List(pl.Float32 if rows.itemsize == 4 else pl.Float64)
        )
        kind = pl.repeat(kinds[name], len(labels), dtype=pl.String, eager=True).alias("kind")
        tables.append(pl.DataFrame([kind, labels.alias("label"), vectors]))
    pl.concat(tables).write_parquet(path)


FORMS: dict[str, Callable[[TrainedModel, Path], None]] = {
    "safetensors": _write_safetensors,
    "npz": _write_npz,
    "word2vec": _write_word2vec,
    "parquet": _write_parquet,
}
