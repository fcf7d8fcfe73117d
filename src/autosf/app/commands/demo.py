"""`autosf demo`: the main job on a graph that needs no download."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autosf.app.answer import answer, json_option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from autosf.graph.knowledge_graph import KnowledgeGraph

GRAPH = "umls"
COMPARED = ("distmult", "complex")
EPOCHS = 30
QUESTION = ("virus", "causes")


@click.command(epilog="Example: autosf demo")
@json_option
def demo(as_json: bool) -> None:
    """Train on a small graph and ask it a question.

    Two scoring functions are compared on UMLS, a graph of 135 medical terms that comes with the package
    pykeen: nothing is downloaded.
    """
    import torch

    from autosf.app.graphs import graph_of

    torch.set_num_threads(1)  # so small a graph gains nothing from more
    click.echo("training two scoring functions on UMLS, a few seconds ...", err=True)
    graph = graph_of(GRAPH)
    runs = [trained(graph, name) for name in COMPARED]
    best = max(runs, key=lambda run: run["valid_mrr"])
    model = best.pop("askable")
    for run in runs:
        run.pop("askable", None)
    found = model.predict_tails(*QUESTION, top=5).to_dicts()
    new = model.new_facts(3).to_dicts()
    result = {"graph": GRAPH, "runs": runs, "best": best["structure"], "predictions": found, "new_facts": new}
    answer(result, as_json, lambda: told(graph, result))


def trained(graph: KnowledgeGraph, name: str) -> dict[str, Any]:
    """One structure trained with the graph's preset, its best epoch chosen by validation, tested once."""
    from autosf.app.training import train_model
    from autosf.evaluation.metrics import summarise
    from autosf.evaluation.ranking import rank

    askable = train_model(graph, name, epochs=EPOCHS, device="cpu")
    test = summarise(rank(askable.model, graph.test, askable.known_answers()))
    return {
        "structure": name,
        "valid_mrr": askable.facts["metrics"]["valid"]["mrr"],
        "test_mrr": test.mrr,
        "test_hits_at_10": test.hits_at_10,
        "train_seconds": askable.facts["train_seconds"],
        "askable": askable,
    }


def told(graph: KnowledgeGraph, result: dict[str, Any]) -> list[RenderableType]:
    """The demo's page."""
    from rich.padding import Padding
    from rich.table import Table

    from autosf.algebra.constraints import relation_kinds
    from autosf.algebra.zoo import named
    from autosf.app.drawing import as_text

    table = Table.grid(padding=(0, 3, 1, 0))
    for run in result["runs"]:
        known = named(run["structure"])
        facts = (
            f"{known.title}: test MRR {run['test_mrr']:.3f}, Hits@10 {run['test_hits_at_10']:.3f}"
            f" after {run['train_seconds']:.1f} s\n"
            f"models {', '.join(relation_kinds(known.structure))} relations"
        )
        table.add_row(as_text(known.structure), facts)
    head, relation = QUESTION
    answers = "\n".join(
        f"    {row['entity']:<34} {row['score']:6.2f}{'   known' if row['known'] else ''}"
        for row in result["predictions"]
    )
    facts = "\n".join(f"    {row['head']}  {row['relation']}  {row['tail']}" for row in result["new_facts"])
    size = (
        f"{len(graph.entities)} medical terms, {len(graph.relations)} relations, {len(graph.train):,} facts"
    )
    return [
        f"UMLS: {size} to learn from",
        Padding(table, (1, 0, 0, 0)),
        f"{head}  {relation}  ?\n{answers}",
        f"\nFacts that the graph does not have but {named(result['best']).title} believes most:\n{facts}",
        "\nYour own graph: autosf train FOLDER      All known scoring functions: autosf zoo",
    ]
