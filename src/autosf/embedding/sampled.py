"""Losses over a few entities instead of all, with gradients for the touched rows only.

A step costs the same whatever the number of entities: it gathers rows, and hands back row numbers with their
gradients. Logistic and hinge follow Alg. 1 as written; `drawn` has the softmax over some entities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from autosf.embedding.regularisers import penalised, penalised_relations, penalised_sources
from autosf.embedding.steps import answer_back, ask

if TYPE_CHECKING:
    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.embedding.settings import TrainingSettings


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Queries of a batch, those for the tail first: the entity asked from, the relation, and the answer. [n]"""

    entities: Tensor
    relations: Tensor
    answers: Tensor
    tail_queries: int


@dataclass(frozen=True, slots=True, eq=False)
class RowGradients:
    """Mean loss per query, and gradients of some rows; a row may come more than once."""

    loss: Tensor
    entity_rows: Tensor
    entities: Tensor
    relation_rows: Tensor
    relations: Tensor


def contrasted_gradients(
    structure: Structure,
    entities: Tensor,
    relations: Tensor,
    asked: Asked,
    candidates: Tensor,
    settings: TrainingSettings,
    kept: Tensor | None = None,
) -> RowGradients:
    """Logistic or hinge loss of each query's answer against its own candidates [n, m]."""
    e, r = entities[asked.entities], relations[asked.relations]
    queries = ask(structure, e, r, asked.tail_queries)
    queries = queries if kept is None else queries * kept
    true, false = entities[asked.answers], entities[candidates]  # [n, d], [n, m, d]
    positive = (queries * true).sum(-1)
    negative = torch.bmm(false, queries[:, :, None])[:, :, 0]
    loss, by_positive, by_negative = CONTRASTS[settings.loss](positive, negative, settings.margin)
    by_query = by_positive[:, None] * true + torch.bmm(by_negative[:, None, :], false)[:, 0]
    by_false = by_negative[:, :, None] * queries[:, None, :]
    return gathered(
        structure,
        (e, r, queries, kept, by_query, loss),
        asked,
        settings,
        torch.cat([asked.answers, candidates.reshape(-1)]),
        torch.cat([by_positive[:, None] * queries, by_false.reshape(-1, queries.shape[1])]),
    )


def logistic(positive: Tensor, negative: Tensor, _: float) -> tuple[Tensor, Tensor, Tensor]:
    """Summed log(1 + exp(-f)) of the true and mean log(1 + exp(f)) of the false, and its slopes."""
    share = 1 / negative.shape[1]
    loss = functional.softplus(-positive).sum() + functional.softplus(negative).sum() * share
    return loss, -torch.sigmoid(-positive), torch.sigmoid(negative) * share


def hinge(positive: Tensor, negative: Tensor, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """Summed mean of max(0, margin - f + f'), and its slopes."""
    share = 1 / negative.shape[1]
    gap = margin - positive[:, None] + negative
    active = (gap > 0).to(gap.dtype) * share
    return (gap.clamp(min=0) * share).sum(), -active.sum(1), active


CONTRASTS = {"logistic": logistic, "hinge": hinge}


def gathered(
    structure: Structure,
    found: tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor, Tensor],
    asked: Asked,
    settings: TrainingSettings,
    rows: Tensor,
    by_row: Tensor,
) -> RowGradients:
    """The chain rule through the queries, penalties, and all rows side by side, as means per query."""
    e, r, queries, kept, by_query, loss = found
    ones = torch.ones(len(e), device=e.device, dtype=e.dtype)
    if settings.regulariser == "dura":
        loss = loss + penalised(queries, by_query, ones, "dura", settings.entity_weight)
    if kept is not None:
        by_query = by_query * kept
    by_source, by_relation = answer_back(structure, e, r, by_query, asked.tail_queries)
    loss = loss + penalised_sources(structure, e, by_source, ones, settings, asked.tail_queries)
    loss = loss + penalised_relations(structure, r, by_relation, ones, settings)
    return RowGradients(
        loss / len(e),
        torch.cat([asked.entities, rows]),
        torch.cat([by_source, by_row]) / len(e),
        asked.relations,
        by_relation / len(e),
    )
