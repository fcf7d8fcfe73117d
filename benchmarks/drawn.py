"""Whether trials with drawn entities order structures as trainings with all do, and what they cost.

    python -m benchmarks.drawn WN18RR --draw 1024 --structures complex,analogy

Each training is a line of docs/results/records/drawn.jsonl, with the graph's preset, seed 0 and one thread; a line
that is there already is not made again. What trainings with all entities come to is in training.jsonl, by the last
recipe that had them.
"""

from __future__ import annotations

import datetime
import json
from itertools import groupby
from statistics import mean
from typing import Any

import click
import torch
from scipy.stats import spearmanr

from autosf.app.graphs import graph_of
from autosf.app.search_sample import trial_settings
from autosf.app.training import train_model
from autosf.embedding.presets import preset
from benchmarks.stored import RESULTS, newest_trainings, records, table

RECORDS = RESULTS / "records" / "drawn.jsonl"
DIMENSION = 64


def measured(graph_name: str, structure: str, draw: int) -> dict[str, Any]:
    """A training whose steps see so many entities, validated as those with all are."""
    graph = graph_of(graph_name)
    settings = trial_settings(preset(graph.name), draw)
    used = {name: getattr(settings, name) for name in ("loss", "negatives")}
    facts = train_model(graph, structure, seed=0, device="cpu", **used).facts
    return {
        "graph": graph_name,
        "structure": structure,
        "draw": draw,
        "valid_mrr": round(facts["metrics"]["valid"]["mrr"], 5),
        "train_seconds": round(facts["train_seconds"], 1),
        "date": str(datetime.date.today()),
    }


def drawn_table() -> str:
    """Each structure with all entities and with drawn ones; then how well the orders agree."""
    exact = [run for run in newest_trainings("multiclass") if run["settings"]["dimension"] == DIMENSION]
    rows = []
    lines = sorted(records("drawn"), key=lambda line: (line["graph"], line["draw"], -line["valid_mrr"]))
    for (graph, draw), group in groupby(lines, key=lambda line: (line["graph"], line["draw"])):
        pairs = []
        for line in group:
            runs = [r for r in exact if (r["graph"], r["structure"]) == (graph, line["structure"])]
            if not runs:
                continue
            pairs.append((mean(run["valid_mrr"] for run in runs), line["valid_mrr"]))
            seconds = min(run["train_seconds"] for run in runs)
            rows.append([
                graph, f"`{line['structure']}`", f"{draw:,}", f"{pairs[-1][0]:.4f}", f"{pairs[-1][1]:.4f}",
                f"{seconds:.0f}", f"{line['train_seconds']:.0f}",
            ])  # fmt: skip
        if len(pairs) > 2:
            rows.append([graph, "*rank correlation*", f"{draw:,}", "", f"{spearmanr(pairs)[0]:.2f}", "", ""])
    head = "graph | structure | drawn | MRR, all entities | MRR, drawn | seconds, all | seconds, drawn"
    return table(head, rows)


@click.command()
@click.argument("graph")
@click.option("--draw", default=1024)
@click.option("--structures", default="distmult,complex,analogy,simple,quate,autosf-wn18rr,autosf-fb15k237")
def main(graph: str, draw: int, structures: str) -> None:
    torch.set_num_threads(1)
    for structure in structures.split(";" if "[" in structures else ","):
        known = [(line["graph"], line["structure"], line["draw"]) for line in records("drawn")]
        if (graph, structure, draw) not in known:
            line = measured(graph, structure, draw)
            with RECORDS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main()
