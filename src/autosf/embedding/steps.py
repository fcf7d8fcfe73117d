"""One step of Alg. 1 with the multi-class loss: queries out, gradients back, all written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from autosf.embedding.compiled_steps import compiled_gradients
from autosf.embedding.kernels import contract, in_columns
from autosf.embedding.multiclass import Workspace, multiclass
from autosf.embedding.regularisers import penalised, penalised_relations, penalised_sources

if TYPE_CHECKING:
    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.embedding.queries import Batch
    from autosf.embedding.settings import TrainingSettings


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """Mean loss per triple and its gradients towards all entities [N, d] and all relations [R, d]."""

    loss: Tensor | float  # a tensor where reading it would wait for a device
    entities: Tensor
    relations: Tensor


def multiclass_gradients(
    structure: Structure,
    entities: Tensor,
    relations: Tensor,
    batch: Batch,
    settings: TrainingSettings,
    work: Workspace,
    kept: Tensor | None = None,
) -> Gradients:
    """Loss and gradients of a batch of queries, penalties included: by the compiled step where there is one.

    `kept` is what dropout multiplies the queries by.
    """
    found = compiled_gradients(structure, entities, relations, batch, settings, work, kept)
    if found is not None:
        return Gradients(*found)
    return torch_gradients(structure, entities, relations, batch, settings, work, kept)


def torch_gradients(
    structure: Structure,
    entities: Tensor,
    relations: Tensor,
    batch: Batch,
    settings: TrainingSettings,
    work: Workspace,
    kept: Tensor | None,
) -> Gradients:
    """The same call by call, on any device and with any numbers: the compiled step's oracle."""
    e, r = in_columns(entities, batch.entities), in_columns(relations, batch.relations)
    queries = ask(structure, e, r, batch.tail_queries)
    asked = queries if kept is None else queries * kept
    share = 1 / batch.triples
    counts = batch.targets.counts * share
    loss, by_query, by_entity = multiclass(asked, entities, batch.targets, work, share)
    if settings.regulariser == "dura":
        loss = loss + penalised(asked, by_query, counts, "dura", settings.entity_weight)
    if kept is not None:
        by_query *= kept
    by_source, by_relation = answer_back(structure, e, r, by_query, batch.tail_queries)
    loss = loss + penalised_sources(structure, e, by_source, counts, settings, batch.tail_queries)
    loss = loss + penalised_relations(structure, r, by_relation, counts, settings)
    by_entity.index_add_(0, batch.entities, by_source.contiguous())
    relation_gradient = torch.zeros_like(relations).index_add_(0, batch.relations, by_relation.contiguous())
    if settings.relation_prediction:
        loss = loss + relation_prediction(
            structure,
            entities,
            relations,
            batch,
            settings.relation_prediction * share,
            by_entity,
            relation_gradient,
        )
    return Gradients(loss, by_entity, relation_gradient)


def relation_prediction(
    structure: Structure,
    entities: Tensor,
    relations: Tensor,
    batch: Batch,
    weight: float,
    by_entity: Tensor,
    by_relation: Tensor,
) -> Tensor:
    """Softmax over (h, ?, t) for the triples of the batch's tail queries (Chen et al., 2021), its loss.

    Adds its gradients in place. It tells relations apart, of which there are few: no grouping is needed.
    """
    chosen = batch.targets.rows < batch.tail_queries
    rows, tails = batch.targets.rows[chosen], batch.targets.answers[chosen]
    heads, links = batch.entities[rows], batch.relations[rows]
    h, t = entities.index_select(0, heads), entities.index_select(0, tails)
    queries = contract(structure, head=h, tail=t)
    slopes = torch.log_softmax(queries @ relations.T, dim=1)
    loss = -weight * slopes.gather(1, links[:, None]).sum()
    slopes.exp_()
    slopes[torch.arange(len(links), device=links.device), links] -= 1
    slopes *= weight
    by_relation.addmm_(slopes.T, queries)
    by_query = slopes @ relations
    by_entity.index_add_(0, heads, contract(structure, relation=by_query, tail=t))
    by_entity.index_add_(0, tails, contract(structure, head=h, relation=by_query))
    return loss


def ask(structure: Structure, e: Tensor, r: Tensor, tail_queries: int) -> Tensor:
    """The query vectors of a batch: tail queries first, then head queries. [n, d]"""
    queries = torch.empty_like(e)
    tails, heads = slice(0, tail_queries), slice(tail_queries, None)
    if tail_queries:
        contract(structure, head=e[tails], relation=r[tails], out=queries[tails])
    if tail_queries < len(e):
        contract(structure, relation=r[heads], tail=e[heads], out=queries[heads])
    return queries


def answer_back(
    structure: Structure, e: Tensor, r: Tensor, by_query: Tensor, tail_queries: int
) -> tuple[Tensor, Tensor]:
    """The chain rule through `ask`: gradients towards its entities and relations. [n, d] each"""
    by_source, by_relation = torch.empty_like(e), torch.empty_like(r)
    t, h = slice(0, tail_queries), slice(tail_queries, None)
    if tail_queries:
        contract(structure, relation=r[t], tail=by_query[t], out=by_source[t])
        contract(structure, head=e[t], tail=by_query[t], out=by_relation[t])
    if tail_queries < len(e):
        contract(structure, head=by_query[h], relation=r[h], out=by_source[h])
        contract(structure, head=by_query[h], tail=e[h], out=by_relation[h])
    return by_source, by_relation


def dropped(rows: int, settings: TrainingSettings, rng: np.random.Generator, like: Tensor) -> Tensor | None:
    """What dropout multiplies so many queries by: nothing for the dropped entries, more than one for the rest; or
    None. Drawn by numpy, which takes a fifth of torch's time for it. [rows, d]"""
    if not settings.dropout:
        return None
    kept = rng.random((rows, like.shape[1]), dtype=np.float32) >= settings.dropout
    return torch.from_numpy(kept * np.float32(1 / (1 - settings.dropout))).to(like)
