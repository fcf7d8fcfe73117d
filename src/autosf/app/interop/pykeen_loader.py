"""Opens a model that AutoSF has exported for PyKEEN. Needs PyKEEN alone; nothing in the folder is executed.

from load import load
model, dataset = load()                   # a pykeen.models.AutoSF and a pykeen.datasets.Dataset
model.predict_t(...)                      # ids are those of dataset.training.entity_to_id, relation_to_id
"""

import json
from pathlib import Path

import numpy as np
import torch
from pykeen.datasets import EagerDataset
from pykeen.models import AutoSF
from pykeen.triples import TriplesFactory


def load(folder: Path = Path(__file__).parent) -> tuple[AutoSF, EagerDataset]:
    """The model, ready to predict, and the splits it was trained and measured with."""
    kept = json.loads((Path(folder) / "model.json").read_text(encoding="utf-8"))
    with np.load(Path(folder) / "arrays.npz", allow_pickle=False) as arrays:
        tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    factories = {
        split: TriplesFactory(
            mapped_triples=tensors.pop(split).long(),
            entity_to_id={label: i for i, label in enumerate(kept["entities"])},
            relation_to_id={label: i for i, label in enumerate(kept["relations"])},
            create_inverse_triples=kept["create_inverse_triples"] and split == "training",
        )
        for split in ("training", "testing", "validation")
    }
    model = AutoSF(
        triples_factory=factories["training"],
        embedding_dim=kept["embedding_dim"],
        num_components=kept["num_components"],
        coefficients=[tuple(block) for block in kept["coefficients"]],
        random_seed=0,
    )
    model.to(next(iter(tensors.values())).dtype)
    model.load_state_dict(tensors)
    return model.eval(), EagerDataset(**factories)
