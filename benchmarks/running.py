"""Table VII: what a greedy step costs beside its trainings, and what ranking the validation triples takes.

    python -m benchmarks.running

Lines go to docs/results/records/running.jsonl: seconds of the filter and of the predictor for the 32 rounds of
f^6, and of ranking each graph's validation triples once, with one thread. Trainings are in training.jsonl.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import torch

from autosf.algebra.zoo import named
from autosf.embedding.model import Model
from autosf.evaluation.ranking import rank
from autosf.graph.known_answers import known_answers
from autosf.graph.reading import read_graph
from benchmarks.search_overhead import forget, split
from benchmarks.training import data_folder

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "records" / "running.jsonl"
GRAPHS = ("WN18", "FB15k", "WN18RR", "FB15k-237")
DIMENSION = 64


def ranking_seconds(name: str) -> float:
    """Of all validation triples, both sides; embeddings are as large as trained ones."""
    graph = read_graph(data_folder() / name)
    sizes = [(len(labels), DIMENSION) for labels in (graph.entities, graph.relations)]
    model = Model(named("complex").structure, *(torch.randn(size) for size in sizes))
    known = known_answers(graph)
    began = time.perf_counter()
    rank(model, graph.valid, known)
    return time.perf_counter() - began


def main() -> None:
    torch.set_num_threads(1)
    split()  # imports
    forget()
    spent = split()
    beside = {
        "filter": round(spent["filter"], 3),
        "predictor": round(spent["features"] + spent["predictor"], 3),
    }
    lines = [{"graph": name, **beside, "evaluation": round(ranking_seconds(name), 3)} for name in GRAPHS]
    RECORDS.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
