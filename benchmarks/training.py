"""An epoch of training beside the plain reference, and beside the machine's best rate of multiplication."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from autosf.algebra.zoo import named
from autosf.embedding.epochs import epoch_runner, optimisers
from autosf.embedding.multiclass import Workspace
from autosf.embedding.presets import preset
from autosf.embedding.queries import batches, training_queries
from autosf.embedding.settings import WIDEST, TrainingSettings
from autosf.embedding.side_by_side import epoch_of_many
from autosf.embedding.steps import multiclass_gradients
from autosf.embedding.training import start
from autosf.graph.reading import read_graph
from benchmarks.measured import Measured
from benchmarks.plain_trainer import PlainComplEx, plain_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from autosf.graph.knowledge_graph import KnowledgeGraph

COMPLEX = named("complex").structure
BARS = {("FB15k-237", 64): 6, ("WN18RR", 64): 4, ("FB15k-237", 256): 5, ("WN18RR", 256): 3}
ROUNDS = {64: 20, 256: 12}
GEMM_SHARE = 60  # percent of the best rate
THEIR_BATCH = 512
SMALL_GRAPHS = ("Nations", "UMLS", "Kinships", "CoDEx-S")


def data_folder() -> Path:
    return Path(os.environ.get("AUTOSF_DATA", "no-benchmark-graphs"))


def products() -> Iterator[float]:
    """Seconds of one 2048-cube product after another."""
    a, b, out = (torch.randn(2048, 2048) for _ in range(3))
    while True:
        started = time.perf_counter()
        torch.mm(a, b, out=out)
        yield time.perf_counter() - started


def our_steps(graph: KnowledgeGraph, settings: TrainingSettings) -> Iterator[float]:
    """The steps of one epoch, each told by its seconds."""
    queries = training_queries(graph, reciprocal=False)
    entities, relations = optimisers(start(graph, settings, 0), settings, in_place=True)
    work = Workspace.of(entities.matrix, settings.batch_size, settings.score_megabytes)
    stream = batches(queries, settings.batch_size, np.random.default_rng(0))
    while True:
        started = time.perf_counter()
        if (batch := next(stream, None)) is None:
            return
        with torch.no_grad():
            found = multiclass_gradients(COMPLEX, entities.matrix, relations.matrix, batch, settings, work)
            entities.step(found.entities, 0.1)
            relations.step(found.relations, 0.1)
        yield time.perf_counter() - started


def their_steps(graph: KnowledgeGraph, dimension: int) -> Iterator[float]:
    """The same of the reference."""
    model = PlainComplEx(len(graph.entities), len(graph.relations), dimension)
    optimiser = torch.optim.Adagrad(model.parameters(), lr=0.1)
    return plain_steps(graph, model, optimiser, batch=THEIR_BATCH)


class SideBySide(NamedTuple):
    """Seconds of an epoch of ours and of theirs; our step's rate of multiplication over that of 2048-cube
    products, by the fastest of each and by their medians; and the best rate."""

    ours: float
    theirs: float
    best_share: float
    median_share: float
    gemm_rate: float


def side_by_side(graph_name: str, dimension: int, rounds: int) -> SideBySide:
    """In turn some products, some steps of theirs and some of ours, so that all see the machine as it is at the
    time; the first of each finds cold caches and does not count. An epoch is as long as its median step says."""
    graph = read_graph(data_folder() / graph_name)
    settings = TrainingSettings(dimension=dimension)
    sources = products(), their_steps(graph, dimension), our_steps(graph, settings)
    cube, their_step, step = [], [], []  # seconds
    for _ in range(rounds):
        for taken, source, times in zip((cube, their_step, step), sources, (1, 2, 6), strict=True):
            next(source)
            taken += [next(source) for _ in range(times)]
    rows, operations = settings.batch_size, 2 * 2048**3
    work = 6 * rows * len(graph.entities) * dimension
    best, middle = ((work / of(step)) / (operations / of(cube)) for of in (min, statistics.median))
    return SideBySide(
        statistics.median(step) * math.ceil(len(training_queries(graph, reciprocal=False)) / rows),
        statistics.median(their_step) * math.ceil(len(graph.train) / THEIR_BATCH),
        best,
        middle,
        operations / min(cube),
    )


def peak_memory(graph_name: str, dimension: int) -> tuple[float, float]:
    """MB at the peak of an epoch in a process of its own, above an interpreter with torch loaded."""
    code = f"from benchmarks.training import one_epoch; one_epoch({graph_name!r}, {dimension})"
    idle, busy = (
        float(subprocess.run([sys.executable, "-c", c], capture_output=True, text=True, check=True).stdout)
        for c in (f"import torch, numpy; torch.zeros(1) + 1; {SAY_PEAK}", f"{code}; {SAY_PEAK}")
    )
    return busy - idle, busy


# ru_maxrss is inherited from the process that started this one; VmHWM is not
SAY_PEAK = (
    "status = dict(line.split(':', 1) for line in open('/proc/self/status'));"
    "print(int(status['VmHWM'].split()[0]) / 1024)"
)


def one_epoch(
    graph_name: str, dimension: int, epochs: int = 1, threads: int | None = None, **values: object
) -> float:
    """Seconds of an epoch with the given settings."""
    if threads:
        torch.set_num_threads(threads)
    graph = read_graph(data_folder() / graph_name)
    settings = replace(TrainingSettings(dimension=dimension), **values)
    run = epoch_runner(graph, COMPLEX, settings, seed=0, device=torch.device("cpu"), clock=time.perf_counter)
    state = start(graph, settings, 0)
    for _ in range(epochs):
        state = run(state)
    return state.curve[-1].seconds


def run() -> list[Measured]:
    """Every figure a ratio in this run."""
    if not data_folder().is_dir():
        return [Measured("skipped: no benchmark graphs in $AUTOSF_DATA", 0, "")]
    lines, rates = [], []
    for (name, dimension), bar in BARS.items():
        found = side_by_side(name, dimension, ROUNDS[dimension])
        rates.append(found.gemm_rate)
        note = f"{found.ours:.1f} s an epoch against {found.theirs:.1f} s"
        what = f"{name}, d = {dimension}: an epoch, times faster than the reference"
        lines.append(Measured(what, found.theirs / found.ours, "x", bar, note))
        note = f"{100 * found.median_share:.0f} % by the medians"
        what = "    its step's share of the best rate"
        lines.append(Measured(what, 100 * found.best_share, "pc", GEMM_SHARE, note))
    what = f"best rate of a 2048-cube product, {torch.get_num_threads()} threads"
    lines.insert(0, Measured(what, max(rates) / 1e9, "GF"))
    above, whole = peak_memory("FB15k-237", 256)
    note = f"{whole:.0f} MB in all"
    lines.append(Measured("FB15k-237, d = 256: peak above torch alone", above, "MB", 1024, note))
    return lines + process_lines() + small_lines() + sampled_lines()


def process_lines() -> list[Measured]:
    """One process a core with one thread each, against one process with all threads."""
    code = "from benchmarks.training import one_epoch; print(one_epoch('CoDEx-S', 64, 4, {}))"
    cores = os.cpu_count() or 1
    one = float(
        subprocess.run([sys.executable, "-c", code.format(cores)], capture_output=True, check=True).stdout
    )
    several = [
        subprocess.Popen([sys.executable, "-c", code.format(1)], stdout=subprocess.PIPE) for _ in range(cores)
    ]
    times = [float(process.communicate()[0]) for process in several]
    return [
        Measured(
            f"CoDEx-S: {cores} processes of 1 thread, epochs a second over 1 of {cores}",
            sum(one / t for t in times),
            "x",
        )
    ]


def small_epochs(graph_name: str, rounds: int = 4) -> tuple[float, float]:
    """Milliseconds of a structure's epoch with the graph's preset, alone and as one of 16, the best of each."""
    torch.set_num_threads(1)
    graph = read_graph(data_folder() / graph_name)
    settings, structures = preset(graph_name), [COMPLEX] * WIDEST
    how = {"seed": 0, "device": torch.device("cpu"), "clock": time.perf_counter}
    alone = epoch_runner(graph, COMPLEX, settings, **how)
    together = epoch_of_many(graph, settings, **how)
    first = start(graph, settings, 0)
    found = [(alone(first), together(structures, [first] * WIDEST)[0]) for _ in range(rounds)]
    one, many = (
        1000 * min(state.curve[-1].seconds for state in states) for states in zip(*found, strict=True)
    )
    return one, many


def small_lines() -> list[Measured]:
    """Small graphs, where a step is mostly its calls: the compiled step against torch's."""
    lines = []
    for name in SMALL_GRAPHS:
        code = f"from benchmarks.training import small_epochs; print(*small_epochs({name!r}))"
        ours, theirs = (
            [float(word) for word in done.stdout.split()]
            for done in (
                subprocess.run(
                    [sys.executable, "-c", code],
                    env={**os.environ, "AUTOSF_KERNEL": kind},
                    capture_output=True,
                    check=True,
                )
                for kind in ("", "torch")
            )
        )
        for what, one, other in zip(("alone", f"one of {WIDEST}"), ours, theirs, strict=True):
            note = f"{one:.1f} and {other:.1f} ms"
            lines.append(
                Measured(
                    f"{name}, {what}: an epoch, times faster than by torch", other / one, "x", None, note
                )
            )
    return lines


def sampled_lines() -> list[Measured]:
    """Sampled softmax on a graph of 106 thousand entities."""
    code = (
        "from benchmarks.training import one_epoch;"
        "print(one_epoch('YAGO3-10-quarter', 64, 1, loss='sampled-softmax', negatives=1024, validate_every=0));"
    )
    done = subprocess.run([sys.executable, "-c", code + SAY_PEAK], capture_output=True, text=True, check=True)
    seconds, peak = map(float, done.stdout.split())
    return [
        Measured(
            "YAGO3-10-quarter, sampled softmax, 1,024 shared: an epoch",
            seconds,
            "s",
            note=f"peak {peak:.0f} MB",
        )
    ]
