"""A step of Alg. 1 by the compiled library: what `step.c` is told, and what comes of it."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING

import torch

from autosf.algebra.summands import belonging_together

if TYPE_CHECKING:
    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.embedding.multiclass import Workspace
    from autosf.embedding.queries import Batch
    from autosf.embedding.settings import TrainingSettings

ROLES = ("head", "relation", "tail")


def fields(names: str, kind: type) -> list[tuple[str, type]]:
    return [(name, kind) for name in names.split()]


class Step(ctypes.Structure):
    """The same fields as those of `struct step`, in the same order."""

    _fields_ = (
        *fields("entities relations stands_for terms", ctypes.c_void_p),
        *fields("total links d parts term_count", ctypes.c_long),
        *fields("sources asked_relations rows starts answers counts kept", ctypes.c_void_p),
        *fields("n tail_queries answer_count", ctypes.c_long),
        *fields("groups", ctypes.c_void_p),
        *fields("entity_weight relation_weight query_weight relation_prediction", ctypes.c_double),
        *fields("by_entity by_relation powers scratch", ctypes.c_void_p),
        *fields("block threads", ctypes.c_long),
        *fields("loss", ctypes.c_double),
    )


def compiled_gradients(
    structure: Structure,
    entities: Tensor,
    relations: Tensor,
    batch: Batch,
    settings: TrainingSettings,
    work: Workspace,
    kept: Tensor | None,
) -> tuple[float, Tensor, Tensor] | None:
    """Loss and gradients towards entities [N, d] and relations [R, d], the entities' in the workspace.

    None where there is no library for these numbers, or where a sum of powers left the floats.
    """
    if work.kernel is None or not relations.is_contiguous():
        return None
    if settings.relation_prediction and len(relations) > len(entities):
        return None  # their powers have no room
    name, targets, n = settings.regulariser, batch.targets, len(batch.entities)
    threads, width = torch.get_num_threads(), entities.shape[1]
    terms, groups = terms_of(structure), groups_of(structure, name)
    scratch = torch.empty(work.kernel.step_room(threads, width, n, work.block_size))
    by_relation = torch.empty_like(relations)
    penalty = 0.0 if name == "none" else 1.0
    step = Step(
        *(entities.data_ptr(), relations.data_ptr()),
        *(pointer(targets.drawn.stands_for if targets.drawn else None), terms.data_ptr()),
        *(len(entities), len(relations), width, structure.parts, len(terms)),
        *(batch.entities.data_ptr(), batch.relations.data_ptr()),
        *(targets.rows.data_ptr(), targets.starts.data_ptr(), targets.answers.data_ptr()),
        *(targets.counts.data_ptr(), pointer(kept)),
        *(n, batch.tail_queries, batch.triples),
        pointer(groups),
        *(penalty * settings.entity_weight, penalty * settings.relation_weight),
        settings.entity_weight if name == "dura" else 0.0,
        settings.relation_prediction,
        *(
            work.entity_gradient.data_ptr(),
            by_relation.data_ptr(),
            work.scores.data_ptr(),
            scratch.data_ptr(),
        ),
        *(work.block_size, threads),
    )
    if not work.kernel.step(step, threads):
        return None
    return step.loss, work.entity_gradient, by_relation


def pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@lru_cache(maxsize=1024)
def terms_of(structure: Structure) -> Tensor:
    """Each term as its parts, counted from 0, and its sign. [terms, 4]"""
    terms = structure.terms()
    return torch.tensor([[t.head - 1, t.relation - 1, t.tail - 1, t.sign] for t in terms], dtype=torch.int32)


@lru_cache(maxsize=1024)
def groups_of(structure: Structure, regulariser: str) -> Tensor | None:
    """For each role's parts the first of those that are one vector with it; None for squares. [3, parts]"""
    if regulariser not in ("n3", "n3-moduli"):
        return None
    first = torch.arange(structure.parts, dtype=torch.int32).repeat(len(ROLES), 1)
    if regulariser == "n3-moduli":
        for row, role in enumerate(ROLES):
            for group in belonging_together(structure, role):
                first[row, [part - 1 for part in group]] = min(group) - 1
    return first
