"""Opens a model that AutoSF has exported for PyKEEN. Needs PyKEEN alone; nothing in the folder is executed.

from load import load
model, dataset = load()                   # a pykeen.models.AutoSF and a pykeen.datasets.Dataset
model.predict_t(...)                      # ids are those of dataset.training.entity_to_id, relation_to_id
"""

from pathlib import Path

import torch
from pykeen.datasets import EagerDataset
from pykeen.models import AutoSF
from pykeen.triples import TriplesFactory


def load(folder: Path = Path(__file__).parent) -> tuple[AutoSF, EagerDataset]:
    """The model, ready to predict, and the splits it was trained and measured with."""
    kept = torch.load(Path(folder) / "model.pt", weights_only=True)
    inverse = kept["create_inverse_triples"]
    factories = {
        split: TriplesFactory(
            mapped_triples=triples.long(),
            entity_to_id={label: i for i, label in enumerate(kept["entities"])},
            relation_to_id={label: i for i, label in enumerate(kept["relations"])},
            create_inverse_triples=inverse and split == "training",
        )
        for split, triples in kept["triples"].items()
    }
    model = AutoSF(
        triples_factory=factories["training"],
        embedding_dim=kept["embedding_dim"],
        num_components=kept["num_components"],
        coefficients=[tuple(block) for block in kept["coefficients"]],
        random_seed=0,
    )
    model.to(next(iter(kept["state"].values())).dtype)
    model.load_state_dict(kept["state"])
    return model.eval(), EagerDataset(**factories)
