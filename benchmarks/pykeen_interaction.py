"""A training step of our interaction beside PyKEEN's own AutoSFInteraction, in PyKEEN's model, as ratios.

A step is what PyKEEN's LCWA loop does for a batch: scores of all tails, the loss, and the gradients.
"""

from __future__ import annotations

import logging
import warnings
from importlib.util import find_spec
from typing import Any

import torch

from autosf.algebra.zoo import structure_from
from benchmarks.measured import Measured, seconds

ENTITIES, RELATIONS, DIMENSION, BATCH = 14_541, 474, 64, 64  # FB15k-237 with inverse relations
STRUCTURES = ("simple", "autosf-wn18rr", "quate")


def run() -> list[Measured]:
    """How many times faster, by structure: the more blocks, the more PyKEEN multiplies out."""
    if find_spec("pykeen") is None:
        return [Measured("PyKEEN's interaction: skipped, pykeen is not installed", 0, "")]
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [line for name in STRUCTURES for line in compared(name)]
    logging.disable(logging.NOTSET)
    return lines


def compared(name: str) -> list[Measured]:
    from pykeen.models import AutoSF

    from autosf.app.interop.pykeen_interaction import Bilinear

    structure = structure_from(name)
    terms = [(t.head - 1, t.relation - 1, t.tail - 1, t.sign) for t in structure.terms()]
    theirs = AutoSF(
        triples_factory=factory(), embedding_dim=DIMENSION // 4, num_components=4, coefficients=terms
    )
    ours = Bilinear(triples_factory=factory(), structure=structure, embedding_dim=DIMENSION)
    same_weights(theirs, ours)
    batch = torch.stack([torch.arange(BATCH), torch.arange(BATCH) % RELATIONS], 1)
    torch.testing.assert_close(ours.score_t(batch), theirs.score_t(batch), atol=1e-4, rtol=1e-4)
    fast = seconds(lambda: step(ours, batch))
    slow = seconds(lambda: step(theirs, batch), repeats=2)
    fast = max(fast, seconds(lambda: step(ours, batch)))  # the machine may not stay as it was
    note = f"{structure.blocks} blocks, {fast * 1e3:,.1f} ms"
    return [Measured(f"{name}: times faster than PyKEEN's AutoSFInteraction", slow / fast, "x", 2, note)]


def factory() -> Any:
    from pykeen.triples import CoreTriplesFactory

    triples = torch.tensor([[0, 0, 1]])
    return CoreTriplesFactory.create(triples, num_entities=ENTITIES, num_relations=RELATIONS)


def same_weights(theirs: Any, ours: Any) -> None:
    with torch.no_grad():
        for name in ("entity_representations", "relation_representations"):
            parts = [rows._embeddings.weight for rows in getattr(theirs, name)]
            getattr(ours, name)[0]._embeddings.weight.copy_(torch.cat(parts, 1))


def step(model: Any, batch: torch.Tensor) -> None:
    model.zero_grad()
    targets = torch.arange(len(batch))
    torch.nn.functional.cross_entropy(model.score_t(batch), targets).backward()
