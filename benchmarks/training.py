"""An epoch of training beside the plain reference, and beside the machine's best rate of multiplication."""

from __future__ import annotations

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
from autosf.embedding.queries import batches, training_queries
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.steps import multiclass_gradients
from autosf.embedding.training import start
from autosf.graph.reading import read_graph
from benchmarks.measured import Measured
from benchmarks.plain_trainer import PlainComplEx, plain_epoch

if TYPE_CHECKING:
    from collections.abc import Callable

COMPLEX = named("complex").structure
BARS = {("FB15k-237", 64): 6, ("WN18RR", 64): 4, ("FB15k-237", 256): 5, ("WN18RR", 256): 3}
STEPS = {64: 12, 256: 5}
GEMM_SHARE = 60  # percent of the best rate


def data_folder() -> Path:
    return Path(os.environ.get("AUTOSF_DATA", "no-benchmark-graphs"))


def gemm_seconds() -> Callable[[], float]:
    """A function that times one 2048-cube product."""
    a, b, out = (torch.randn(2048, 2048) for _ in range(3))

    def timed() -> float:
        started = time.perf_counter()
        torch.mm(a, b, out=out)
        return time.perf_counter() - started

    return timed


class OurEpoch(NamedTuple):
    """Seconds of an epoch, from some steps; and the step's rate of multiplication over that of 2048-cube products
    timed between the steps: the fastest of each, and the medians, as the machine itself is not always as fast."""

    seconds: float
    best_share: float
    median_share: float
    gemm_rate: float


def our_epoch(graph_name: str, dimension: int, steps: int) -> OurEpoch:
    graph = read_graph(data_folder() / graph_name)
    settings = TrainingSettings(dimension=dimension)
    queries = training_queries(graph, reciprocal=False)
    entities, relations = optimisers(start(graph, settings, 0), settings, in_place=True)
    work = Workspace.of(entities.matrix, settings.batch_size, settings.score_megabytes)
    stream = batches(queries, settings.batch_size, np.random.default_rng(0), torch.device("cpu"))
    gemm, products, taken = gemm_seconds(), [], []
    with torch.no_grad():
        for number in range(3 + steps):
            if number % 3 == 0:  # seldom, as it leaves the caches cold
                products.append(gemm())
            started = time.perf_counter()
            batch = next(stream)
            found = multiclass_gradients(
                COMPLEX, entities.matrix, relations.matrix, batch, settings, work, torch.Generator()
            )
            entities.step(found.entities, 0.1)
            relations.step(found.relations, 0.1)
            taken.append(time.perf_counter() - started)
    products, taken = products[1:], taken[3:]  # warm
    rows = settings.batch_size
    operations, cube = 6 * rows * len(graph.entities) * dimension, 2 * 2048**3
    best, middle = ((operations / of(taken)) / (cube / of(products)) for of in (min, statistics.median))
    return OurEpoch(sum(taken) / steps * len(queries) / rows, best, middle, cube / min(products))


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
    lines, rates = [], []
    for (name, dimension), bar in BARS.items():
        steps = STEPS[dimension]
        ours, theirs = [], []
        for _ in range(2):
            ours.append(our_epoch(name, dimension, 3 * steps))
            theirs.append(their_epoch(name, dimension, steps))
        seconds = min(ours).seconds
        rates += [epoch.gemm_rate for epoch in ours]
        note = f"{seconds:.1f} s an epoch against {min(theirs):.1f} s"
        what = f"{name}, d = {dimension}: an epoch, times faster than the reference"
        lines.append(Measured(what, min(theirs) / seconds, "x", bar, note))
        share = 100 * max(epoch.best_share for epoch in ours)
        medians = " and ".join(f"{100 * epoch.median_share:.0f}" for epoch in ours)
        note = f"medians of both: {medians} %"
        lines.append(Measured("    its step's share of the best rate", share, "pc", GEMM_SHARE, note))
    what = f"best rate of a 2048-cube product, {torch.get_num_threads()} threads"
    lines.insert(0, Measured(what, max(rates) / 1e9, "GF"))
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
