"""PyKEEN's model families as baselines (Table IV), each trained the same way and measured by our own ranking.

The way is explicit, as PyKEEN's pipeline would otherwise choose for us: the multi-class loss over all entities
that ours are trained with, on PyKEEN's LCWA loop with inverse triples, so that both sides are learned as (h, r, ?)
and (t, r', ?); Adam with a little weight decay; as many epochs, the same batches, the same early stopping on
valid and as many reals for an entity as ours. What is left to each family is its learning rate.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from autosf.algebra.zoo import plain
from autosf.app.interop.needing_pykeen import PREFIX, quiet, refuse_without_pykeen
from autosf.errors import UserError, did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph

WEIGHT_DECAY = 1e-4
# In place of standard normal embeddings, from which a softmax over all entities learns little for long.
SMALL_START = "xavier_uniform"
SMALL_STARTS = {"entity_initializer": SMALL_START, "relation_initializer": SMALL_START}
NUMBERS_AT_ONCE = 1 << 25  # of a broadcast [queries, entities, dimension], which most of these families make


@dataclass(frozen=True, slots=True)
class Family:
    """A family by PyKEEN's name: the reals in one of its units of dimension, and what else its model needs.

    `learning_rate` is the best of a few on valid of UMLS at 64 reals; docs/compare.md tells of it.
    """

    name: str
    learning_rate: float
    reals: int = 1
    arguments: dict[str, Any] = field(default_factory=dict)
    relation_width: str | None = None  # the argument that holds it where it is to be the entities'

    def refuse_dimension(self, dimension: int) -> None:
        """A complex number is two reals, a quaternion four."""
        if dimension % self.reals:
            expected = f"expected a multiple of {self.reals} for {PREFIX}{self.name}"
            raise UserError(f"dimension: {expected}, found {dimension}")

    def arguments_for(self, dimension: int) -> dict[str, Any]:
        """What PyKEEN's class is called with for so many reals an entity."""
        units = dimension // self.reals
        width = {self.relation_width: units} if self.relation_width else {}
        return {"embedding_dim": units, **width, **self.arguments}


FAMILIES = {
    plain(family.name): family
    for family in (
        Family("TransE", 0.03),
        Family("TransH", 0.01),
        Family("TransR", 0.01, relation_width="relation_dim"),
        Family("RotatE", 0.03, reals=2),
        Family("NTN", 0.01, arguments={"num_slices": 4, "entity_initializer": SMALL_START}),
        Family("ConvE", 0.01),
        Family("TuckER", 0.01, relation_width="relation_dim"),
        Family("QuatE", 0.03, reals=4),
        Family("RESCAL", 0.1),
        Family("HolE", 0.03),
        Family("DistMult", 0.1),
        Family("ComplEx", 0.03, reals=2, arguments=SMALL_STARTS),
        Family("SimplE", 0.03, reals=2, arguments=SMALL_STARTS),
        Family("CP", 0.03, reals=2, arguments={"rank": 1, **SMALL_STARTS}),
    )
}


def family_named(name: str) -> Family:
    """The family of that name, in any case, if PyKEEN is there to train it."""
    refuse_without_pykeen(PREFIX + name)
    if plain(name) not in FAMILIES:
        known = [family.name for family in FAMILIES.values()]
        hint = did_you_mean(name, [one.lower() for one in known]) or f"; expected one of {', '.join(known)}"
        raise UserError(f"unknown family {quoted(PREFIX + name)}{hint}")
    return FAMILIES[plain(name)]


@dataclass(frozen=True, slots=True, eq=False)
class PykeenScorer:
    """A PyKEEN model as our ranking asks it; heads by the inverse relations where it has them."""

    theirs: Any

    def tail_scores(self, heads: Tensor, relations: Tensor) -> Tensor:
        scores: Tensor = self.theirs.predict_t(torch.stack([heads, relations], 1).long())
        return scores

    def head_scores(self, relations: Tensor, tails: Tensor) -> Tensor:
        scores: Tensor = self.theirs.predict_h(torch.stack([relations, tails], 1).long())
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class TrainedFamily:
    """The best model by validation, its size, and what it took."""

    scorer: PykeenScorer
    epochs: int
    best_epoch: int
    train_seconds: float
    parameters: int


def train_family(
    graph: KnowledgeGraph,
    family: Family,
    settings: TrainingSettings,
    *,
    seed: int,
    clock: Callable[[], float],
    validate: Callable[[PykeenScorer], float] | None,
    device: str = "cpu",
    watch: Callable[[int], None] = lambda _: None,
) -> TrainedFamily:
    """Train with the settings that are not of our trainer alone: dimension, epochs, batch size, stopping."""
    with quiet():
        loop, factory = training_loop(graph, family, settings, seed, device)
        done, best_epoch, best_mrr, spent = 0, 0, -1.0, 0.0
        best_state: dict[str, Tensor] = {}
        stretch = settings.validate_every or settings.epochs
        batch = min(settings.batch_size, query_count(graph))  # batch norm leaves out a batch that is not full
        while done < settings.epochs:
            before, done = done, min(done + stretch, settings.epochs)
            started = clock()
            stretched(loop, factory, num_epochs=done, batch_size=batch, continue_training=before > 0)
            spent += clock() - started
            watch(done)
            mrr = validate(PykeenScorer(loop.model)) if validate and settings.validate_every else 0.0
            if mrr > best_mrr or not validate:
                best_epoch, best_mrr, best_state = done, mrr, deepcopy(loop.model.state_dict())
            elif settings.patience and done - best_epoch >= settings.patience * stretch:
                break
        if best_state:
            loop.model.load_state_dict(best_state)
    size = sum(tensor.numel() for tensor in loop.model.parameters() if tensor.requires_grad)
    return TrainedFamily(PykeenScorer(loop.model), done, best_epoch, spent, size)


def stretched(loop: Any, factory: Any, **options: Any) -> None:
    """Go on with PyKEEN's training; what it cannot do, for want of memory say, is told in one line."""
    try:
        loop.train(factory, use_tqdm=False, pin_memory=False, **options)
    except (RuntimeError, MemoryError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(f"PyKEEN could not train {type(loop.model).__name__} ({reason})") from None


def query_count(graph: KnowledgeGraph) -> int:
    """The distinct (h, r, ?) and (?, r, t) of train: what an LCWA loop with inverse triples goes through."""
    return sum(len(np.unique(graph.train[:, sides], axis=0)) for sides in ([0, 1], [1, 2]))


def training_loop(
    graph: KnowledgeGraph, family: Family, settings: TrainingSettings, seed: int, device: str
) -> tuple[Any, Any]:
    """PyKEEN's loop, which trains where its model is, and the triples it goes through."""
    from pykeen.models import model_resolver
    from pykeen.training import LCWATrainingLoop

    from autosf.app.interop.pykeen_loss import MulticlassLoss

    torch.manual_seed(seed)  # for the order of batches; the model has its own argument
    factory = triples_factory(graph, "train", inverse=True)
    model = model_resolver.make(
        family.name,
        triples_factory=factory,
        loss=MulticlassLoss(),
        random_seed=seed,
        **family.arguments_for(settings.dimension),
    ).to(device)
    optimiser = torch.optim.Adam(model.get_grad_params(), lr=family.learning_rate, weight_decay=WEIGHT_DECAY)
    return LCWATrainingLoop(model=model, triples_factory=factory, optimizer=optimiser), factory


def triples_factory(graph: KnowledgeGraph, split: str, *, inverse: bool) -> Any:
    """A split in our own ids, which all splits share."""
    from pykeen.triples import CoreTriplesFactory

    return CoreTriplesFactory.create(
        torch.from_numpy(getattr(graph, split).astype(np.int64)),
        num_entities=len(graph.entities),
        num_relations=len(graph.relations),
        create_inverse_triples=inverse,
    )


def queries_at_once(graph: KnowledgeGraph, settings: TrainingSettings) -> int:
    """How many queries to rank at a time, so that a broadcast over all entities stays small."""
    return max(1, min(512, NUMBERS_AT_ONCE // (len(graph.entities) * settings.dimension)))
