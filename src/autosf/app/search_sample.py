"""A search on a part of a large graph: what it sees, what is told of that, and how the whole is then trained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from autosf.app.run_results import final_dimension
from autosf.embedding.presets import FOR_LARGE, LARGE
from autosf.graph.subgraph import facts, subgraph

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from autosf.embedding.settings import TrainingSettings
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.run import Run


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


def times_the_sample(run: Run) -> float:
    """How many times as long as a full trial the winner's training takes, by the products both have to do."""
    settings, wider = run.plan.settings, final_dimension(run) / run.plan.settings.dimension
    sample = run.plan.search.get("sample")
    if not sample:
        return wider
    whole = sample["whole"]

    def products(graph: Mapping[str, Any], used: TrainingSettings) -> float:
        return float(graph["train"] * (graph["entities"] if used.loss == "multiclass" else used.negatives))

    return wider * products(whole, final_settings(settings, whole["entities"])) / products(sample, settings)


def final_settings(settings: TrainingSettings, entities: int) -> TrainingSettings:
    """Settings found on a sample for all of a graph: the exact loss gives way to its estimate on a large one."""
    too_large = entities > LARGE and settings.loss == "multiclass"
    return settings.changed(FOR_LARGE) if too_large else settings
