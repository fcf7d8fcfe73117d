"""Filtered ranking of valid, both sides, beside PyKEEN's two ways on the same ComplEx embeddings.

Needs the benchmark graphs in $AUTOSF_DATA, and PyKEEN for the ratios.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from autosf.algebra.zoo import structure_from
from autosf.embedding.model import Model
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.graph.known_answers import known_answers
from autosf.graph.reading import read_graph
from autosf.graph.registry import search_path
from benchmarks.measured import Measured, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.graph.knowledge_graph import KnowledgeGraph

DIMENSION = 64
SAMPLE = 512  # triples for the evaluator that would need minutes for all; its time is a sum over batches
BATCHES = (32, 256)  # PyKEEN's own choice on a CPU, and one nearer to ours: the faster counts


def run() -> list[Measured]:
    """Ratios on FB15k-237; time and memory on WN18RR and YAGO3-10-quarter."""
    if not os.environ.get("AUTOSF_DATA"):
        return [Measured("ranking: skipped, $AUTOSF_DATA is not set", 0, "")]
    lines = beside_pykeen("FB15k-237")
    for name in ("FB15k-237", "WN18RR", "YAGO3-10-quarter"):
        taken, queries, memory = in_fresh_process(name)
        note = f"{queries:,.0f} distinct queries"
        lines.append(Measured(f"{name} valid, both sides, known answers included", taken, "s", note=note))
        lines.append(Measured(f"{name}: peak memory above the loaded model", memory, "MB"))
    return lines


def graph_named(name: str) -> KnowledgeGraph:
    return read_graph(name, search_path=search_path(os.environ))


def random_model(graph: KnowledgeGraph) -> Model:
    """ComplEx with random embeddings: ranking takes as long as on trained ones."""
    rng = torch.Generator().manual_seed(0)
    entities, relations = (
        torch.randn(len(labels), DIMENSION, generator=rng) for labels in (graph.entities, graph.relations)
    )
    return Model(structure_from("complex"), entities, relations)


def beside_pykeen(name: str) -> list[Measured]:
    """How many times faster than PyKEEN's evaluator and its evaluation loop, which find the same MRR.

    Ours is measured before and after theirs, and the slower counts: the machine may not stay as it was.
    """
    graph = graph_named(name)
    model = random_model(graph)
    sample = np.random.default_rng(0).permutation(len(graph.valid))[:SAMPLE]
    ours = seconds(lambda: rank(model, graph.valid, known_answers(graph)), repeats=5)
    mrr = summarise(rank(model, graph.valid, known_answers(graph))).mrr
    mrr_of_sample = summarise(rank(model, graph.valid[sample], known_answers(graph))).mrr
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        theirs = pykeen_model(model, graph)
        loop = fastest(lambda batch: evaluation_loop(theirs, graph, batch), mrr)
        evaluator = fastest(lambda batch: evaluator_run(theirs, graph, sample, batch), mrr_of_sample)
        logging.disable(logging.NOTSET)
    ours = max(ours, seconds(lambda: rank(model, graph.valid, known_answers(graph)), repeats=5))
    evaluator *= len(graph.valid) / len(sample)
    scaled = f"{evaluator:,.0f} s, scaled from {SAMPLE:,} of {len(graph.valid):,} triples"
    lines = [Measured("times faster than PyKEEN's RankBasedEvaluator", evaluator / ours, "x", 20, scaled)]
    note = f"{loop:,.1f} s; building the filter is in both"
    lines.append(Measured("times faster than PyKEEN's LCWAEvaluationLoop", loop / ours, "x", 6, note))
    return lines


def fastest(call: Callable[[int], float], mrr: float) -> float:
    """The least time over the batch sizes; the result must be ours, or nothing was compared."""
    best = float("inf")
    for batch in BATCHES:
        started = time.perf_counter()
        found = call(batch)
        best = min(best, time.perf_counter() - started)
        assert abs(found - mrr) < 1e-6, f"PyKEEN finds MRR {found}, we {mrr}"
    return best


def pykeen_model(model: Model, graph: KnowledgeGraph) -> Any:
    """PyKEEN's ComplEx with the same embeddings: the first half is the real part."""
    from pykeen.models import ComplEx

    theirs = ComplEx(triples_factory=factory(graph, "train"), embedding_dim=DIMENSION // 2)
    with torch.no_grad():
        for own, representation in (
            (model.entities, theirs.entity_representations[0]),
            (model.relations, theirs.relation_representations[0]),
        ):
            weight = representation._embeddings.weight
            weight.copy_(torch.stack(own.chunk(2, dim=1), dim=-1).view(weight.shape))
    return theirs


def factory(graph: KnowledgeGraph, split: str) -> Any:
    from pykeen.triples import CoreTriplesFactory

    triples = torch.from_numpy(getattr(graph, split).astype(np.int64))
    return CoreTriplesFactory.create(
        triples, num_entities=len(graph.entities), num_relations=len(graph.relations)
    )


def evaluation_loop(theirs: Any, graph: KnowledgeGraph, batch: int) -> float:
    """MRR by the evaluation loop; building its filter is part of it."""
    from pykeen.evaluation import LCWAEvaluationLoop, RankBasedEvaluator

    loop = LCWAEvaluationLoop(
        model=theirs,
        triples_factory=factory(graph, "valid"),
        evaluator=RankBasedEvaluator(metrics=["mrr"], add_defaults=False),
        additional_filter_triples=[factory(graph, "train"), factory(graph, "test")],
    )
    result = loop.evaluate(batch_size=batch, use_tqdm=False, pin_memory=False)
    return float(result.get_metric("mrr"))


def evaluator_run(theirs: Any, graph: KnowledgeGraph, sample: np.ndarray, batch: int) -> float:
    """MRR of some valid triples by the evaluator that compares with all known triples anew."""
    from pykeen.evaluation import RankBasedEvaluator

    evaluator = RankBasedEvaluator(metrics=["mrr"], add_defaults=False)
    train, valid, test = (factory(graph, split).mapped_triples for split in ("train", "valid", "test"))
    result = evaluator.evaluate(
        theirs,
        valid[torch.from_numpy(sample)],
        batch_size=batch,
        additional_filter_triples=[train, valid, test],
        use_tqdm=False,
    )
    return float(result.get_metric("mrr"))


def in_fresh_process(name: str) -> tuple[float, int, float]:
    """Seconds, distinct queries, and MB above the loaded model at the peak, unspoilt by what ran before."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measured_ranking, name).result()


def measured_ranking(name: str) -> tuple[float, int, float]:
    graph = graph_named(name)
    model = random_model(graph)
    rank(model, graph.valid[:8], known_answers(graph), score_bytes=1)  # loads what the product needs
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    before = memory_in_mb("VmRSS")
    rank(model, graph.valid, known_answers(graph))
    peak = memory_in_mb("VmHWM")
    taken = seconds(lambda: rank(model, graph.valid, known_answers(graph)))
    queries = sum(len(np.unique(graph.valid[:, columns], axis=0)) for columns in ([0, 1], [1, 2]))
    return taken, queries, peak - before


def memory_in_mb(which: str) -> float:
    """VmRSS, the memory held now, or VmHWM, the most that was, as Linux tells it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(which))
