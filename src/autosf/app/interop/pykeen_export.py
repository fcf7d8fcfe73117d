"""A model as PyKEEN's users open it, without us: arrays, labels as JSON, and a small loader beside them.

PyKEEN's own files of triples are not used: they are read back by pandas, which takes a label such as `NA` or
`007` for something else. Reciprocal relations get PyKEEN's numbers: r is its 2r, the reciprocal its 2r + 1.
"""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from autosf.embedding.sealed_folder import Kind, save_sealed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.embedding.model import Model
    from autosf.embedding.trained_model import TrainedModel

KIND = Kind("model for PyKEEN", "export.json", "autosf export to pykeen", 1)
SPLITS = {"training": "train", "testing": "test", "validation": "valid"}
README = """# A model for PyKEEN

Trained by AutoSF {version} on {graph}; scoring function `{structure}`, {dimension} reals an entity.
It opens with PyKEEN (1.11 or newer) alone:

```python
from load import load

model, dataset = load()
```

`model` is a `pykeen.models.AutoSF`, `dataset` holds the splits with the labels in `dataset.entity_to_id`.
`arrays.npz` and `model.json` hold numbers and texts only: nothing is unpickled.
{directions}"""
DIRECTIONS = """
Head queries have relations of their own here (inverse triples, in PyKEEN's words): `predict_t` and `predict_h`
are the scores of the two directions. AutoSF's score of a triple is their mean.
"""


def export_to_pykeen(trained: TrainedModel, folder: Path) -> Path:
    """Write the folder, whole or not at all, replacing an earlier one of its kind; its path comes back."""

    def write(beside: Path) -> list[str]:
        (beside / "model.json").write_text(json.dumps(described(trained)), encoding="utf-8")
        arrays: dict[str, Any] = {**triples(trained), **state(trained.model)}
        np.savez(beside / "arrays.npz", **arrays)
        loader = files("autosf.app.interop").joinpath("pykeen_loader.py")
        (beside / "load.py").write_text(loader.read_text(encoding="utf-8"), encoding="utf-8")
        (beside / "README.md").write_text(readme(trained), encoding="utf-8")
        return ["model.json", "arrays.npz", "load.py", "README.md"]

    facts = {"graph": trained.graph_name, "structure": trained.model.structure.rows}
    save_sealed(folder, KIND, facts, write)
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)  # of an earlier loader
    return folder


def described(trained: TrainedModel) -> dict[str, Any]:
    """All that the loader needs beside the arrays."""
    model, parts = trained.model, trained.model.structure.parts
    return {
        "embedding_dim": model.dimension // parts,
        "num_components": parts,
        "coefficients": [(t.head - 1, t.relation - 1, t.tail - 1, t.sign) for t in model.structure.terms()],
        "create_inverse_triples": model.reciprocal,
        "entities": trained.entities.labels.to_list(),
        "relations": trained.relations.labels.to_list(),
    }


def triples(trained: TrainedModel) -> dict[str, NDArray[np.int32]]:
    """The splits under PyKEEN's names, [n, 3] each; all empty for a model that was saved without its triples."""
    none = np.empty((0, 3), np.int32)
    rows = {word: getattr(trained.graph, split, none) for word, split in SPLITS.items()}
    return {word: part.astype(np.int32) for word, part in rows.items()}


def state(model: Model) -> dict[str, NDArray[Any]]:
    """The parameters of PyKEEN's AutoSF under its own names: an embedding for each part."""
    tables = {
        "entity_representations": model.entities.detach().cpu(),
        "relation_representations": pykeen_relations(model).detach().cpu(),
    }
    return {
        f"{name}.{place}._embeddings.weight": part.contiguous().numpy()
        for name, rows in tables.items()
        for place, part in enumerate(rows.chunk(model.structure.parts, dim=1))
    }


def pykeen_relations(model: Model) -> Tensor:
    """Rows of relations in PyKEEN's order: with reciprocals r0, its reciprocal, r1, its reciprocal, ..."""
    if not model.reciprocal:
        return model.relations
    straight, reciprocal = model.relations.chunk(2)
    return torch.stack([straight, reciprocal], dim=1).view_as(model.relations)


def readme(trained: TrainedModel) -> str:
    from autosf import __version__
    from autosf.errors import quoted

    return README.format(
        version=__version__,
        graph=quoted(trained.graph_name),
        structure=trained.model.structure,
        dimension=trained.model.dimension,
        directions=DIRECTIONS if trained.model.reciprocal else "",
    )
