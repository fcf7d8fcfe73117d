"""A search whose trials do less than the winner's training: on a part of the graph, or against drawn entities.

What they see, what is told of that, and how the winner is then trained.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from autosf.app.run_results import final_dimension
from autosf.embedding.presets import DRAW, DRAWN, ESTIMATED, LARGE, MANY
from autosf.errors import UserError
from autosf.graph.subgraph import facts, subgraph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.run import Run

BESIDE = (
    3000  # entities whose products take as long as all that a step does beside them (two graphs, one thread)
)


def searched_entities(graph: KnowledgeGraph, sample: int | None) -> int:
    """How many entities a trial will have."""
    return min(len(graph.entities), sample or len(graph.entities))


def searched_part(
    whole: KnowledgeGraph, entities: int | None, method: str, seed: int, say: Callable[[str], None]
) -> tuple[KnowledgeGraph, dict[str, Any] | None]:
    """The part of the graph to search on and what there is to tell of it; or all of it, and nothing."""
    if entities is None or entities >= len(whole.entities):
        return whole, None
    found = subgraph(whole, entities, method=method, seed=seed)
    told = facts(found, whole) | {"digest": whole.digest}
    say(f"searching on {told_sample(told)}")
    return found.graph, told


def told_sample(sample: Mapping[str, Any]) -> str:
    """A sample in words."""
    whole = sample["whole"]
    sizes = (
        f"{sample[kind]:,} of {whole[kind]:,} {noun}"
        for kind, noun in (("entities", "entities"), ("train", "train triples"), ("relations", "relations"))
    )
    return f"a sample of {', '.join(sizes)}; its mix of relations differs by {sample['mix_distance']:.1%}"


def default_draw(entities: int, settings: TrainingSettings) -> int:
    """Entities that trials draw for a step where nobody says otherwise; 0 where they take all."""
    return DRAW if settings.loss == "multiclass" and entities > MANY else 0


def search_defaults(draw: int | None) -> dict[str, Any]:
    """Settings of a search between the graph's preset and what the user sets. Curves that are compared have one
    length; and who says what trials draw, or that they draw nothing, means to train the best with all entities."""
    return {"patience": 0} if draw is None else {"patience": 0, "loss": "multiclass"}


def refuse_draw(draw: int, settings: TrainingSettings) -> None:
    """Only the loss over all entities can be told to take fewer."""
    if draw < 0:
        raise UserError(f"draw: expected a number from 0, found {draw}")
    if draw and settings.loss != "multiclass":
        raise UserError(
            f"draw: expected the loss multiclass, found {settings.loss}, whose setting negatives says how many"
        )


def trial_settings(settings: TrainingSettings, draw: int) -> TrainingSettings:
    """The settings with a softmax over so many drawn entities; over all, if none."""
    return settings.changed({"loss": "sampled-softmax", "negatives": draw}) if draw else settings


def told_draw(draw: Mapping[str, Any]) -> str:
    """What a step of a trial sees, in words."""
    return f"{draw['entities']:,} entities drawn for each step out of {draw['of']:,}"


def told_part(result: Mapping[str, Any]) -> list[str]:
    """What trials saw of the graph, where that is not all, from a run's result."""
    sample, draw = result["sample"], result["draw"]
    on = [f"on {told_sample(sample)}"] if sample else []
    return [*on, f"with {told_draw(draw)}"] if draw else on


def times_a_trial(run: Run) -> float:
    """How many times as long as a full trial the winner's training takes, by the products both have to do."""
    search, trial = run.plan.search, run.plan.settings
    sample, draw = search.get("sample"), search.get("draw")
    if sample:
        seen, whole = sample, sample["whole"]
    else:
        seen = whole = {"train": 1, "entities": draw["of"] if draw else 1}
    final = final_settings(run, whole["entities"])

    def products(graph: Mapping[str, Any], used: TrainingSettings) -> float:
        drawn = used.negatives + 2 * used.batch_size + BESIDE  # with those that a step asks from and for
        count = graph["entities"] if used.loss == "multiclass" else min(graph["entities"], drawn)
        return float(graph["train"] * count * used.dimension)

    return products(whole, final) / products(seen, trial)


def final_settings(run: Run, entities: int) -> TrainingSettings:
    """The settings of the winner's training on a graph of so many entities. Trials' draws give way to all; but
    after a search on a sample the whole graph may be too large for that."""
    settings = replace(run.plan.settings, dimension=final_dimension(run))
    if run.plan.search.get("draw"):
        settings = settings.changed({"loss": "multiclass"})
    return for_all(settings, entities) if run.plan.search.get("sample") else settings


def for_all(settings: TrainingSettings, entities: int) -> TrainingSettings:
    """Settings found on a sample for all of a graph: the exact loss gives way to its estimate on a large one."""
    too_large = entities > LARGE and settings.loss == "multiclass"
    return settings.changed(DRAWN | ESTIMATED) if too_large else settings
