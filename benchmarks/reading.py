"""Reading a graph, its known answers and statistics: beside PyKEEN, and up to 20 million triples.

`python -m benchmarks.reading` runs it alone. FB15k needs $AUTOSF_DATA; the large graphs are made up, in a
temporary folder. Every figure comes from a fresh process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measured import Measured, show

MILLIONS = (1, 5, 20)
REPEATS = 3

OURS = """
import sys, time
from autosf.graph.known_answers import known_answers
from autosf.graph.reading import read_graph
started = time.perf_counter()
graph = read_graph(sys.argv[1])
read = time.perf_counter()
known_answers(graph)
report(triples=sum(len(part) for _, part in graph.splits()), entities=len(graph.entities),
       inside=time.perf_counter() - started, reading=read - started)
"""
WITH_STATISTICS = OURS.replace(
    "known_answers(graph)\n",
    "known_answers(graph)\nfrom autosf.graph.statistics import statistics\nstatistics(graph)\n",
)
PYKEEN = """
import sys, time
from pykeen.triples import TriplesFactory
started = time.perf_counter()
train = TriplesFactory.from_path(f"{sys.argv[1]}/train.tsv.gz")
ids = {"entity_to_id": train.entity_to_id, "relation_to_id": train.relation_to_id}
paths = [f"{sys.argv[1]}/{split}.tsv.gz" for split in ("valid", "test")]
parts = [train, *(TriplesFactory.from_path(path, **ids) for path in paths)]
report(triples=sum(part.num_triples for part in parts), entities=train.num_entities,
       inside=time.perf_counter() - started)
"""
REPORT = """
def report(**figures):
    import json
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(json.dumps(figures | {"peak": int(status["VmHWM"].split()[0]) / 1024}))
"""


@dataclass(frozen=True, slots=True)
class Timed:
    """One run: seconds of the whole process, and after its imports, of which reading; peak memory in MB."""

    whole: float
    inside: float
    reading: float
    peak: float
    triples: int


def timed(code: str, folder: Path) -> Timed:
    """What the code needs for the graph in a folder, in a fresh Python."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", REPORT + code, str(folder)], stdout=subprocess.PIPE, check=True
    )
    whole = time.perf_counter() - started
    told = json.loads(done.stdout.splitlines()[-1])
    return Timed(whole, told["inside"], told.get("reading", 0.0), told["peak"], told["triples"])


def best(code: str, folder: Path) -> Timed:
    return min((timed(code, folder) for _ in range(REPEATS)), key=lambda run: run.whole)


def beside_pykeen(folder: Path) -> list[Measured]:
    """FB15k from gzipped text: to ids and known answers here, to ids alone there."""
    ours, theirs = best(OURS, folder), best(PYKEEN, folder)
    assert ours.triples == theirs.triples == 592_213
    note = "ids alone; we: ids and known answers"
    return [
        Measured("FB15k, gzipped text to ids and known answers, after imports", ours.inside, "s"),
        Measured("the same by PyKEEN's TriplesFactory, after imports", theirs.inside, "s", note=note),
        Measured("times faster, after imports", theirs.inside / ours.inside, "x", bar=5),
        Measured("whole process from a cold start, imports included", ours.whole, "s"),
        Measured("the same by PyKEEN's TriplesFactory", theirs.whole, "s"),
        Measured("times faster, imports included", theirs.whole / ours.whole, "x", bar=5),
    ]


def large(millions: int) -> Timed:
    """A made-up graph with a quarter as many entities as triples; 20 million is the size of Wikidata5M."""
    from autosf.graph.synthetic_large import LargeGraph, write_large_graph

    triples = millions * 1_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "large"
        graph = LargeGraph(triples // 4, 800, triples, valid=triples // 1000, test=triples // 1000)
        write_large_graph(graph, folder)
        return timed(WITH_STATISTICS, folder)


def growth() -> list[Measured]:
    """Time and memory of reading, known answers and statistics from 1 to 20 million triples."""
    runs = {millions: large(millions) for millions in MILLIONS}
    lines = []
    for millions, run in runs.items():
        note = f"{run.inside / millions:.2f} s per million, of which reading {run.reading / millions:.2f}"
        what = f"{millions} million triples: read, known answers, statistics"
        lines.append(Measured(what, run.inside, "s", note=note))
    least, most = runs[MILLIONS[0]], runs[MILLIONS[-1]]
    times = (most.inside / most.triples) / (least.inside / least.triples)
    return [
        *lines,
        Measured("peak memory at 20 million triples, 5 million entities", most.peak, "MB", bar=6000),
        Measured("time per triple at 20 million, in percent of that at 1 million", times * 100, "%", bar=200),
    ]


def run() -> list[Measured]:
    """All lines; those beside PyKEEN only where FB15k is at hand."""
    fb15k = Path(os.environ.get("AUTOSF_DATA", "")) / "FB15k"
    return [*(beside_pykeen(fb15k) if fb15k.is_dir() else []), *growth()]


if __name__ == "__main__":
    sys.exit(not show("Graphs: reading and known answers", run()))
