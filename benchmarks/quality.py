"""Quality of structures on benchmark graphs with each graph's preset; every run is a line of JSON.

    python -m benchmarks.quality UMLS --structures distmult,complex --seeds 0,1,2 --set dimension=256 --threads 1

Lines go to docs/results/records/training.jsonl; a run that is there already is not repeated, so that an
interrupted command can be given again. Test figures are of the epoch that validation chose; the accuracy is
that of triplet classification against one made negative for each triple, and against the negatives that come with
the graph where some do. Rows are separated by semicolons.
"""

from __future__ import annotations

import datetime
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import torch

from autosf.app.graphs import folder_with_negatives, graph_of
from autosf.app.training import train_model
from autosf.app.wanted_settings import parsed_pair
from autosf.embedding.presets import preset
from autosf.evaluation.classification import classify
from autosf.evaluation.corrupting import made_negatives
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.graph.negatives import read_negatives

if TYPE_CHECKING:
    from autosf.app.predicting import AskableModel
    from autosf.graph.negatives import Negatives

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "records" / "training.jsonl"


def past() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def measured(graph_name: str, structure: str, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Train, choose by validation, test once."""
    graph = graph_of(graph_name)
    asked = train_model(graph, structure, seed=seed, device="cpu", **changes)
    test = summarise(rank(asked.model, graph.test, asked.known_answers()))
    facts = asked.facts
    made = made_negatives(graph, np.random.default_rng(0), asked.known_answers())
    folder = folder_with_negatives(facts, graph_name)
    return {
        "graph": graph_name,
        "structure": structure,
        "seed": seed,
        "valid_mrr": round(facts["metrics"]["valid"]["mrr"], 5),
        "test": {name: round(value, 5) for name, value in asdict(test).items()},
        **classified(asked, made, ""),
        **(classified(asked, read_negatives(folder, graph), "_given") if folder else {}),
        "epochs": len(facts["curve"]),
        "curve": validated(facts["curve"]),
        "train_seconds": round(facts["train_seconds"], 1),
        "threads": torch.get_num_threads(),
        "settings": facts["settings"],
        "date": str(datetime.date.today()),
        "command": " ".join(["python -m benchmarks.quality", *sys.argv[1:]]),
    }


def classified(asked: AskableModel, labelled: Negatives, whose: str) -> dict[str, Any]:
    """The accuracy on labelled triples, and of how many the overall threshold decided."""
    found = classify(asked.model, labelled)
    return {f"accuracy{whose}": round(found.accuracy, 5), f"fallbacks{whose}": found.fallback_count}


def validated(curve: list[dict[str, Any]]) -> list[list[float]]:
    """Epoch, seconds of training so far and validation MRR, where there is one."""
    spent = np.cumsum([epoch["seconds"] for epoch in curve])
    pairs = zip(curve, spent.tolist(), strict=True)
    return [
        [e["number"], round(s, 1), round(e["valid_mrr"], 5)] for e, s in pairs if e["valid_mrr"] is not None
    ]


@click.command()
@click.argument("graph")
@click.option("--structures", default="distmult,complex,analogy,simple")
@click.option("--seeds", default="0")
@click.option("--set", "pairs", multiple=True)
@click.option("--threads", default=0)
def main(graph: str, structures: str, seeds: str, pairs: tuple[str, ...], threads: int) -> None:
    if threads:
        torch.set_num_threads(threads)
    changes = dict(parsed_pair(pair) for pair in pairs)
    settings = preset(graph_of(graph).name).changed(changes).as_dict()
    has_negatives = folder_with_negatives({}, graph) is not None
    for structure in structures.split(";" if "[" in structures else ","):
        for seed in map(int, seeds.split(",")):
            wanted = (graph, structure, seed, settings)
            known = [r for r in past() if (r["graph"], r["structure"], r["seed"], r["settings"]) == wanted]
            if any("accuracy_given" in r or not has_negatives for r in known):
                continue
            record = measured(graph, structure, seed, changes)
            RECORDS.parent.mkdir(parents=True, exist_ok=True)
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(graph, structure, seed, record["valid_mrr"], record["test"]["mrr"], flush=True)


if __name__ == "__main__":
    main()
