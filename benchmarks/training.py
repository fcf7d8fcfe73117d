"""An epoch of training beside the plain reference, and beside the machine's best rate of multiplication."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from autosf.algebra.zoo import named
from autosf.embedding.epochs import epoch_runner, optimisers
from autosf.embedding.multiclass import Workspace
from autosf.embedding.queries import batches, training_queries
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.steps import multiclass_gradients
from autosf.embedding.training import start
from autosf.graph.reading import read_graph
from benchmarks.measured import Measured
from benchmarks.plain_trainer import PlainComplEx, plain_epoch

COMPLEX = named("complex").structure
BARS = {("FB15k-237", 64): 6, ("WN18RR", 64): 4, ("FB15k-237", 256): 5, ("WN18RR", 256): 3}
STEPS = {64: 12, 256: 5}
GEMM_SHARE = 60  # percent of the best rate


def data_folder() -> Path:
    return Path(os.environ.get("AUTOSF_DATA", "no-benchmark-graphs"))


def best_gemm_rate() -> float:
    """Floating-point operations a second of a 2048-cube product, the best of some."""
    a, b, out = (torch.randn(2048, 2048) for _ in range(3))
    best = 0.0
    for _ in range(8):
        started = time.perf_counter()
        torch.mm(a, b, out=out)
        best = max(best, 2 * 2048**3 / (time.perf_counter() - started))
    return best


def our_epoch(graph_name: str, dimension: int, steps: int) -> tuple[float, float]:
    """Seconds of our epoch, from some steps, and its operations in the three products."""
    graph = read_graph(data_folder() / graph_name)
    settings = TrainingSettings(dimension=dimension)
    queries = training_queries(graph, reciprocal=False)
    entities, relations = optimisers(start(graph, settings, 0), settings, in_place=True)
    work = Workspace.of(entities.matrix, settings.batch_size, settings.score_megabytes)
    stream = batches(queries, settings.batch_size, np.random.default_rng(0), torch.device("cpu"))
    started = time.perf_counter()
    with torch.no_grad():
        for number, batch in enumerate(itertools.islice(stream, 3 + steps)):
            if number == 3:  # warm
                started = time.perf_counter()
            found = multiclass_gradients(
                COMPLEX, entities.matrix, relations.matrix, batch, settings, work, torch.Generator()
            )
            entities.step(found.entities, 0.1)
            relations.step(found.relations, 0.1)
    each = (time.perf_counter() - started) / steps
    rows = settings.batch_size
    return each * len(queries) / rows, 6 * rows * len(graph.entities) * dimension / each


def their_epoch(graph_name: str, dimension: int, steps: int) -> float:
    graph = read_graph(data_folder() / graph_name)
    model = PlainComplEx(len(graph.entities), len(graph.relations), dimension)
    optimiser = torch.optim.Adagrad(model.parameters(), lr=0.1)
    return plain_epoch(graph, model, optimiser, batch=512, steps=steps)


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
    """Every figure a ratio in this run; ours and theirs alternate, the best of two counts for both."""
    if not data_folder().is_dir():
        return [Measured("skipped: no benchmark graphs in $AUTOSF_DATA", 0, "")]
    rate = best_gemm_rate()
    lines = [
        Measured(f"best rate of a 2048-cube product, {torch.get_num_threads()} threads", rate / 1e9, "GF")
    ]
    for (name, dimension), bar in BARS.items():
        steps = STEPS[dimension]
        ours, theirs = [], []
        for _ in range(2):
            ours.append(our_epoch(name, dimension, 3 * steps))
            theirs.append(their_epoch(name, dimension, steps))
        seconds, achieved = min(ours)
        note = f"{seconds:.1f} s an epoch against {min(theirs):.1f} s"
        what = f"{name}, d = {dimension}: an epoch, times faster than the reference"
        lines.append(Measured(what, min(theirs) / seconds, "x", bar, note))
        lines.append(
            Measured("    its step's share of the best rate", 100 * achieved / rate, "pc", GEMM_SHARE)
        )
    above, whole = peak_memory("FB15k-237", 256)
    note = f"{whole:.0f} MB in all"
    lines.append(Measured("FB15k-237, d = 256: peak above torch alone", above, "MB", 1024, note))
    return lines + process_lines() + sampled_lines()


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
