"""How training and ranking grow from 10 thousand to 5 million entities: time for a million triples, and memory.

Each size has a process of its own, so that its peak of memory is its own, with one thread, so that its seconds of
CPU are those of the work; the sizes take turns, and the best of some epochs counts, as the machine may not stay as
it was. An epoch is over the same number of triples at every size, drawn from all of a made-up graph: what grows is
the entities alone. `python -m benchmarks.growth` keeps the figures for docs/results/growth.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from autosf.algebra.zoo import named
from autosf.embedding.epochs import epoch_runner
from autosf.embedding.model import Model
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.storage import Storage
from autosf.embedding.training import start
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.evaluation.sampled_ranking import rank_sampled
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.known_answers import known_answers
from autosf.graph.synthetic_large import LargeGraph, chunks
from autosf.runs.shared_graph import unlabelled
from benchmarks.measured import Measured, show
from benchmarks.stored import RESULTS
from benchmarks.training import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from autosf.embedding.state import State

SIZES = (10_000, 100_000, 1_000_000, 5_000_000)
ROUNDS = 3
TRIPLES = 100_000  # of an epoch
RELATIONS = 200
RANKED, ESTIMATED = 32, 2048  # triples
CANDIDATES = 1000
FLAT, MEMORY = 150, 130  # percent: of the time at 100 thousand entities, of parameters and sums
SETTINGS = TrainingSettings(dimension=64, loss="sampled-softmax", negatives=1024, validate_every=0)
COMPLEX = named("complex").structure


def made_up_graph(entities: int) -> KnowledgeGraph:
    """Some triples of a graph with as many entities; hubs are spread over all numbers."""
    plan = LargeGraph(entities, RELATIONS, max(entities, 2 * TRIPLES))
    rng, share = np.random.default_rng(0), TRIPLES / plan.triples
    parts = [part["train"][rng.random(len(part["train"])) < share] for part in chunks(plan)]
    train = np.concatenate(parts)
    train[:, ::2] = rng.permutation(entities)[train[:, ::2]]
    rows = train.astype(np.int32)
    none = rows[:0]
    vocabularies = unlabelled(entities, "entity"), unlabelled(RELATIONS, "relation")
    return KnowledgeGraph(f"{entities:,} entities", *vocabularies, rows, none, none)


class Bench:
    """A size in a process of its own: answers what it is asked for, one line each."""

    def __init__(self, entities: int, scratch: str) -> None:
        self.graph = made_up_graph(entities)
        self.before = memory("VmRSS")
        forget_peak()
        storage = Storage(Path(scratch) if scratch else None)
        self.state: State = start(self.graph, SETTINGS, 0, storage)
        self.run = epoch_runner(
            self.graph, COMPLEX, SETTINGS, seed=0, device=torch.device("cpu"), clock=time.process_time
        )

    def epoch(self) -> dict[str, float]:
        """Seconds of CPU for a million triples."""
        self.state = self.run(self.state)
        return {"seconds": self.state.curve[-1].seconds / len(self.graph.train) * 1e6}

    def peak(self) -> dict[str, float]:
        """MB above what the process had with the graph, and MB of parameters and running sums."""
        tensors = [self.state.entities, self.state.relations]
        tensors += [*self.state.entity_sums.values(), *self.state.relation_sums.values()]
        computed = sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 2**20
        return {"above": memory("VmHWM") - self.before, "computed": computed}

    def ranking(self) -> dict[str, float]:
        """Seconds a triple, exact and estimated, and the exact one's peak of memory above what there was."""
        model, known = Model(COMPLEX, self.state.entities, self.state.relations), known_answers(self.graph)
        before = memory("VmRSS")
        forget_peak()
        exact = clocked(lambda: rank(model, self.graph.train[:RANKED], known)) / RANKED
        peak = memory("VmHWM") - before
        rng = np.random.default_rng(0)
        some = self.graph.train[:ESTIMATED]
        estimated = clocked(lambda: rank_sampled(model, some, known, candidates=CANDIDATES, rng=rng))
        return {"exact": exact, "estimated": estimated / ESTIMATED, "peak": peak}


def clocked(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def memory(what: str) -> float:
    """MB by the operating system's account of this process."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[what].split()[0]) / 1024


def forget_peak() -> None:
    """The peak of memory starts anew from what is held now."""
    Path("/proc/self/clear_refs").write_text("5")


@contextmanager
def bench(entities: int, scratch: str = "") -> Iterator[Callable[[str], dict[str, Any]]]:
    """A process for a size; what it is asked for comes back, and it ends with the context."""
    command = [sys.executable, "-m", "benchmarks.growth", str(entities), scratch]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(what: str) -> dict[str, Any]:
            print(what, file=process.stdin, flush=True)
            told = process.stdout.readline()
            assert told, f"the process for {entities:,} entities has ended"
            figures: dict[str, Any] = json.loads(told)
            return figures

        yield ask
        process.stdin.close()


def run() -> list[Measured]:
    """All lines; each size and the one on disk take turns."""
    with ExitStack() as opened, tempfile.TemporaryDirectory() as scratch:
        asks = {size: opened.enter_context(bench(size)) for size in SIZES}
        on_disk = opened.enter_context(bench(1_000_000, scratch))
        best = dict.fromkeys([*SIZES, "disk"], float("inf"))
        for _ in range(ROUNDS):
            for name, ask in [*asks.items(), ("disk", on_disk)]:
                best[name] = min(best[name], ask("epoch")["seconds"])
        peaks = {size: ask("peak") for size, ask in asks.items()}
        ranking = asks[SIZES[-1]]("ranking")
    return [
        *time_lines(best),
        *memory_lines(peaks),
        *ranking_lines(ranking),
        *estimate_lines(),
    ]


def time_lines(best: dict[Any, float]) -> list[Measured]:
    first, last = SIZES[1], SIZES[-1]
    lines = [
        Measured(
            f"{size:,} entities: a million triples of sampled softmax",
            best[size],
            "s",
            note=f"{best[size] / best[first]:.0%} of {first:,}",
        )
        for size in SIZES
    ]
    slowest = max(best[size] for size in SIZES[1:]) / min(best[size] for size in SIZES[1:])
    flat = Measured(f"slowest in percent of the fastest, {first:,} to {last:,}", 100 * slowest, "%", FLAT)
    disk = Measured(
        "1,000,000 entities on disk, in percent of in memory", 100 * best["disk"] / best[1_000_000], "%"
    )
    return [*lines, flat, disk]


def memory_lines(peaks: dict[int, dict[str, float]]) -> list[Measured]:
    """The smallest is left out: what a step takes beside its parameters is more than they are."""
    return [
        Measured(
            f"{size:,}: peak in percent of parameters and running sums",
            100 * peak["above"] / peak["computed"],
            "%",
            MEMORY if size >= 1_000_000 else None,
            f"{peak['above']:,.0f} MB above the graph, computed {peak['computed']:,.0f}",
        )
        for size, peak in peaks.items()
        if size > SIZES[0]
    ]


def ranking_lines(found: dict[str, float]) -> list[Measured]:
    size = f"{SIZES[-1]:,} entities"
    times = found["exact"] / found["estimated"]
    return [
        Measured(f"{size}: exact ranks of a triple, both sides", found["exact"], "s"),
        Measured("    its peak of memory above the model and the graph", found["peak"], "MB", 256),
        Measured(f"    times faster: estimated from {CANDIDATES:,} candidates", times, "x"),
    ]


def estimate_lines() -> list[Measured]:
    """What estimated ranks come to beside exact ones, on a trained model."""
    from autosf.app.training import train_model

    if not (data_folder() / "CoDEx-S").is_dir():
        return []
    torch.set_num_threads(1)
    graph_name = str(data_folder() / "CoDEx-S")
    model = train_model(graph_name, "complex", epochs=10, validate_every=0)
    assert model.graph is not None
    test, known = model.graph.test, model.known_answers()
    exact = summarise(rank(model.model, test, known))
    lines = []
    for candidates in (100, 200, 500, 1000):
        ranks = rank_sampled(model.model, test, known, candidates=candidates, rng=np.random.default_rng(0))
        found = summarise(ranks)
        note = (
            f"MRR {found.mrr:.4f} against {exact.mrr:.4f}; mean rank {found.mean_rank / exact.mean_rank:.1%}"
        )
        what = f"CoDEx-S, {candidates:,} of {len(model.graph.entities):,} candidates: MRR in percent of the exact"
        lines.append(Measured(what, 100 * found.mrr / exact.mrr, "pc", note=note))
    return lines


def serve(entities: int, scratch: str) -> None:
    """Answer the lines of stdin until there are no more."""
    asked = Bench(entities, scratch)
    for line in sys.stdin:
        print(json.dumps(getattr(asked, line.strip())()), flush=True)


def record() -> None:
    """Measure, print, and keep the lines for docs/results/growth.md."""
    lines = run()
    show("Growth", lines)
    kept = "".join(json.dumps(asdict(line)) + "\n" for line in lines)
    (RESULTS / "records" / "growth.jsonl").write_text(kept, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        record()
    else:
        torch.set_num_threads(1)
        with torch.no_grad():
            serve(int(sys.argv[1]), sys.argv[2])
