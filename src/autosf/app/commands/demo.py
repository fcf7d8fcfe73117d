"""`autosf demo`: the main job on a graph that needs no download."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app.answer import answer, json_option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.run import Run

GRAPH = "umls"
BUDGET, STRUCTURES = "75s", 64
EPOCHS = 40  # the preset has more: enough to tell structures apart, and a minute for all of them
FACTS = 3
UNREAD = (
    "(A search does not read the test split: its true facts count as mistakes when validation is ranked,\n"
    " so that these figures lie below published ones. `autosf search --hide-test` does as most papers.)"
)


@click.command(epilog="Example: autosf demo --budget 20s")
@click.option("--budget", default=BUDGET, show_default=True, help="Time for the search.")
@click.option("--out", type=click.Path(path_type=Path), help="Run folder. [default: a temporary one]")
@json_option
def demo(budget: str, out: Path | None, as_json: bool) -> None:
    """Search a small graph for its scoring function.

    The graph is UMLS, 135 medical terms, where that is at hand (it comes with the package pykeen), and else a
    made-up village of families: nothing is downloaded. What is found is compared with the scoring functions
    that people designed, and asked for new facts.
    """
    from autosf.app.commands.search import begun_in_sight, brought_to_its_end, telling_how_to_go_on
    from autosf.app.duration import seconds_in
    from autosf.app.predicting import load
    from autosf.app.request import Request
    from autosf.app.search_sample import search_defaults
    from autosf.embedding.presets import preset

    seconds, (source, graph) = seconds_in(budget), demo_graph()
    folder = out or Path(tempfile.mkdtemp(prefix="autosf-demo-")) / "run"
    settings = preset(GRAPH).changed({**search_defaults(None), "epochs": EPOCHS})
    request = Request(
        source=source, settings=settings, trials=STRUCTURES, budget=seconds, command="autosf demo"
    )
    click.echo(f"searching {graph.name} for its scoring function, {seconds:.0f} s at most ...", err=True)
    with telling_how_to_go_on(folder):
        run = begun_in_sight(graph, request, folder, None)
        result = brought_to_its_end(run, graph, None, "cpu")
    result["human_designed"] = human_designed(run)
    result["new_facts"] = load(folder).new_facts(FACTS, each=1).to_dicts()
    answer(result, as_json, lambda: told(graph, result))


def demo_graph() -> tuple[str, KnowledgeGraph]:
    """How the graph can be named again, and the graph; one that is made has no name."""
    import os

    from autosf.app.graphs import graph_of
    from autosf.graph.families import families
    from autosf.graph.registry import at_hand, search_path

    if at_hand(GRAPH, search_path=search_path(os.environ)):
        return GRAPH, graph_of(GRAPH)
    return "", families()


def human_designed(run: Run) -> list[dict[str, Any]]:
    """The rows of what people have designed, best first."""
    from autosf.app.run_results import outcome_of, standing_as_json
    from autosf.search.verdict import is_human_designed

    return [standing_as_json(row) for row in outcome_of(run).standings if is_human_designed(row.structure)]


def told(graph: KnowledgeGraph, result: dict[str, Any]) -> list[RenderableType]:
    """The demo's page."""
    from autosf.app.duration import time_in_words
    from autosf.app.search_tables import measured, title_of, winner

    structures = len(result["leaderboard"])
    human = "\n".join(f"    {title_of(row):<10} {measured(row)}" for row in result["human_designed"])
    facts = "\n".join(f"    {row['head']}  {row['relation']}  {row['tail']}" for row in result["new_facts"])
    run, first = result["run"], result["new_facts"][0]
    title, what = ("UMLS", "medical terms") if graph.name.lower() == GRAPH else (graph.name, "people")
    return [
        f"{title}: {len(graph.entities)} {what}, {len(graph.relations)} relations,"
        f" {len(graph.train):,} facts to learn from\n"
        f"{structures} scoring functions tried in {result['trials']} trainings,"
        f" {time_in_words(result['seconds'])}; ended: {result['ending']}",
        winner(result["best"]),
        (f"What people designed, by validation MRR in this search:\n{human}\n" if human else "") + UNREAD,
        f"\nFacts that the graph does not have but the winner believes most:\n{facts}",
        f"\nAsk it: autosf predict {run} --head {first['head']} --relation {first['relation']}"
        f"\nAll of them: autosf leaderboard {run}      Your own graph: autosf search FOLDER",
    ]
