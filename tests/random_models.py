"""Trained models with random embeddings over random small graphs, for tests that need no training."""

import numpy as np
import polars as pl
import torch

from autosf.algebra.structure import Structure
from autosf.algebra.zoo import structure_from
from autosf.embedding.model import Model
from autosf.embedding.trained_model import TrainedModel
from autosf.graph.knowledge_graph import KnowledgeGraph

STRANGE_LABELS = [
    "plain",
    "tab\there",
    "line\nbreak",
    "carriage\r\nreturn",
    'quo"ted',
    "it's",
    "<script>alert(1)</script>",
    "🦊 emoji",
    "[red]markup[/red]",
    "zero\0byte",
    "../../etc/passwd",
    "{{7*7}}",
    "$(rm -rf .)",
    " spaces ",
    "e\u0301 against \u00e9",
    "\u202eright to left",
]


def random_graph(
    seed: int = 0,
    *,
    entities: int = 20,
    relations: int = 4,
    triples: int = 60,
    labels: list[str] | None = None,
) -> KnowledgeGraph:
    """A graph of random triples; the first of `labels` name entities and relations, if given."""
    generator = np.random.default_rng(seed)
    names = [*(labels or []), *(f"e{i}" for i in range(entities))][:entities]
    links = [*(labels or []), *(f"r{i}" for i in range(relations))][:relations]
    rows = generator.integers(0, [entities, relations, entities], size=(triples, 3))
    cover = np.arange(max(entities, relations))
    rows = np.concatenate([np.stack([cover % entities, cover % relations, cover % entities], 1), rows])
    cut = len(rows) - triples // 4
    train, valid, test = np.split(rows, [cut, (cut + len(rows)) // 2])
    return KnowledgeGraph.from_ids(
        f"random-{seed}", names, links, {"train": train, "valid": valid, "test": test}
    )


def random_model(
    graph: KnowledgeGraph,
    seed: int = 0,
    *,
    structure: Structure | str = "complex",
    dimension: int = 8,
    reciprocal: bool = False,
    whole_numbers: bool = False,
) -> TrainedModel:
    """Random embeddings for a graph; whole numbers make sums exact, so that ties are ties on any machine."""
    generator = torch.Generator().manual_seed(seed)

    def rows(count: int) -> torch.Tensor:
        if whole_numbers:
            return torch.randint(-2, 3, (count, dimension), generator=generator).float()
        return torch.randn(count, dimension, generator=generator)

    found = structure_from(structure) if isinstance(structure, str) else structure
    relations = len(graph.relations) * (2 if reciprocal else 1)
    model = Model(found, rows(len(graph.entities)), rows(relations), reciprocal)
    facts = {
        "graph": {"name": graph.name, "digest": graph.digest, "source": "somewhere"},
        "settings": {"learning_rate": 0.1, "epochs": 3},
        "metrics": {"mrr": 1 / 3},
        "seed": seed,
        "versions": {"autosf": "0.1.0", "polars": pl.__version__},
    }
    return TrainedModel(model, graph.entities, graph.relations, facts, graph)
