"""A model as the explorer asks it: by label, with completion, probabilities and the neighbourhood at hand."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from autosf.app.request import cores
from autosf.app.run_results import zoo_names
from autosf.app.web.asking import Answer, Desk, Question, answered, probabilities
from autosf.app.web.completion import Completion, completed, completion, nearest_labels, uses_of
from autosf.app.web.neighbourhood import Neighbourhood, neighbourhood, sides_of
from autosf.app.web.refusals import Refused
from autosf.embedding.answering import Hidden, best
from autosf.errors import UserError, quoted
from autosf.evaluation.ranking import rank

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.app.predicting import AskableModel
    from autosf.evaluation.calibration import Calibration

ROLES = ("head", "relation", "tail")
LARGE = 1 << 26  # numbers in the embeddings: below, a second thread waits longer than it works
LIKELY = 0.5
RANKED_AT_ONCE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Explorer:
    """A model and what was prepared once to answer fast; `curves` and `around` where its triples are known."""

    asked: AskableModel
    curves: Calibration | None
    entities: Completion
    relations: Completion
    around: Neighbourhood | None
    norms: Tensor  # of the entities, [N]
    desk: Desk


def explorer_of(asked: AskableModel) -> Explorer:
    """The model made ready: known answers, curves, completion, neighbourhood."""
    torch.set_num_threads(1 if asked.model.entities.numel() < LARGE else cores())
    graph, curves = asked.graph, calibration_of(asked)
    parts = [part for _, part in graph.splits()] if graph else []
    uses = uses_of(parts, (0, 2), len(asked.trained.entities))
    used = uses_of(parts, (1,), len(asked.trained.relations))
    if graph:
        asked.known_answers()
    return Explorer(
        asked=asked,
        curves=curves,
        entities=completion(asked.trained.entities, uses),
        relations=completion(asked.trained.relations, used),
        around=neighbourhood(graph, uses) if graph else None,
        norms=asked.model.entities.norm(dim=1).clamp_min(1e-30),
        desk=Desk(lambda questions: answered(asked, curves, questions)),
    )


def calibration_of(asked: AskableModel) -> Calibration | None:
    """The curves from scores to probabilities; none without validation triples to fit them to."""
    if asked.graph is None or not len(asked.graph.valid):
        return None
    try:
        return asked.calibration()
    except UserError:  # a model whose scores are no numbers
        return None


def id_of(explorer: Explorer, role: str, label: str) -> int:
    """The id of a label; an unknown one is refused with the nearest."""
    trained = explorer.asked.trained
    vocabulary = trained.relations if role == "relation" else trained.entities
    found = vocabulary.find(label)
    if found is None:
        near = nearest_labels(explorer.relations if role == "relation" else explorer.entities, label)
        raise Refused(404, f"{role}: unknown {vocabulary.kind} {quoted(label)}", tuple(near))
    return found


def question_of(explorer: Explorer, given: Mapping[str, str], top: int, hide: bool) -> Question:
    """The question of two labels, by role."""
    if hide and explorer.asked.graph is None:
        raise Refused(409, "known: the model was saved without its triples, so that nothing is known to hide")
    (absent,) = (role for role in ROLES if role not in given)
    first, second = (id_of(explorer, role, given[role]) for role in ROLES if role in given)
    return Question(absent, first, second, top, hide)


def answers_as_json(
    explorer: Explorer, question: Question, answers: Sequence[Answer]
) -> list[dict[str, Any]]:
    """Answers with their labels, under the names that `autosf predict --json` has."""
    of_relations = question.absent == "relation"
    known = explorer.relations if of_relations else explorer.entities
    labels = known.names([answer.candidate for answer in answers])
    return [
        {
            "relation" if of_relations else "entity": label,
            "score": number(answer.score),
            "probability": answer.probability,
            "known": answer.known,
        }
        for label, answer in zip(labels, answers, strict=True)
    ]


def verdicts_of(explorer: Explorer, rows: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Whether triples are likely true, and where each stands among all with another head or tail."""
    asked = explorer.asked
    triples = np.array([[id_of(explorer, role, row[role]) for role in ROLES] for row in rows], np.int32)
    columns = zip(
        rows,
        asked.scores_of(triples).tolist(),
        probabilities(asked, explorer.curves, triples),
        asked.are_known(triples).to_list(),
        ranks_of(asked, triples),
        strict=True,
    )
    return [
        {
            **row,
            "score": number(score),
            "probability": probability,
            "likely": None if probability is None else probability >= LIKELY,
            "known": known,
            "head_rank": head_rank,
            "tail_rank": tail_rank,
        }
        for row, score, probability, known, (head_rank, tail_rank) in columns
    ]


def ranks_of(asked: AskableModel, triples: NDArray[np.int32]) -> list[tuple[float | None, float | None]]:
    """Filtered ranks of head and tail; None without known answers."""
    if asked.graph is None:
        return [(None, None)] * len(triples)
    ranks = rank(asked.model, triples, asked.known_answers(), batch=min(len(triples), RANKED_AT_ONCE))
    return list(zip(ranks.head_rank.tolist(), ranks.tail_rank.tolist(), strict=True))


def neighbours_of(explorer: Explorer, labels: Sequence[str], limit: int) -> list[dict[str, Any]]:
    """The neighbourhood of each entity."""
    return [neighbours_of_one(explorer, label, limit) for label in labels]


def neighbours_of_one(explorer: Explorer, label: str, limit: int) -> dict[str, Any]:
    """The facts of the graph about an entity, and the entities whose embeddings are most alike."""
    place = id_of(explorer, "entity", label)
    sides = sides_of(explorer.around, place, limit) if explorer.around else []
    relations = explorer.relations.labels
    return {
        "entity": label,
        "uses": int(explorer.entities.uses[place]),
        "facts": [
            {
                "relation": relations[side.relation],
                "direction": "out" if side.outwards else "in",
                "count": side.count,
                "entities": explorer.entities.names(side.entities),
            }
            for side in sides
        ],
        "similar": similar_to(explorer, place, limit),
    }


def similar_to(explorer: Explorer, place: int, limit: int) -> list[dict[str, Any]]:
    """The entities with the largest cosine to one, as `AskableModel.neighbours`, without a copy of all units."""
    rows = explorer.asked.model.entities
    itself = Hidden(np.array([0]), np.array([1]), np.array([place], np.int32))
    with torch.no_grad():
        cosines = rows @ (rows[place] / explorer.norms[place]) / explorer.norms  # [N]
    one = torch.ones(1, 1, device=rows.device)
    found = best(lambda _first, _last: one, 1, cosines[:, None], limit, itself)
    labels = explorer.entities.names(found.candidate.tolist())
    return [
        {"entity": label, "similarity": number(value)}
        for label, value in zip(labels, found.score.tolist(), strict=True)
    ]


def completions(known: Completion, text: str, limit: int, name: str) -> list[dict[str, Any]]:
    """Labels that complete the text, with how many triples have each."""
    places = completed(known, text, limit)
    labels = known.names(places)
    return [{name: label, "uses": int(uses)} for label, uses in zip(labels, known.uses[places], strict=True)]


def model_as_json(explorer: Explorer) -> dict[str, Any]:
    """What a page says of the model."""
    asked, model = explorer.asked, explorer.asked.model
    return {
        "graph": asked.trained.graph_name,
        "entities": len(asked.trained.entities),
        "relations": len(asked.trained.relations),
        "structure": model.structure.rows,
        "names": zoo_names(model.structure),
        "dimension": model.dimension,
        "knows_triples": asked.graph is not None,
        "has_probabilities": explorer.curves is not None,
    }


def number(value: float) -> float | None:
    """A number that JSON can hold."""
    return value if isfinite(value) else None
