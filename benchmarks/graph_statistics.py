"""Time and peak memory of reading a graph and of its statistics, each graph in a process of its own.

python benchmarks/graph_statistics.py           FB15k from $AUTOSF_DATA, synthetic ones up to 20 million
python benchmarks/graph_statistics.py --quick   without the large ones
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MILLIONS = (1, 5, 20)
MEMORY_LIMIT = 6.0  # GB, for reading and statistics together


def measured(folder: str) -> dict[str, float]:
    """Seconds to read and to count, and the peak memory in GB, in a fresh process."""
    ran = subprocess.run(
        [sys.executable, __file__, "--measure", folder], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(ran.stdout)
    return result


def measure(folder: str) -> None:
    from autosf.graph.reading import read_graph
    from autosf.graph.statistics import statistics

    begin = time.perf_counter()
    graph = read_graph(folder)
    after_reading = time.perf_counter()
    statistics(graph)
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e9 if sys.platform == "darwin" else 1e6)
    triples = sum(len(triples) for _, triples in graph.splits())
    print(
        json.dumps(
            {
                "triples": triples,
                "read": after_reading - begin,
                "statistics": end - after_reading,
                "peak_gb": peak,
            }
        )
    )


def tell(name: str, result: dict[str, float]) -> None:
    per_million = result["statistics"] / result["triples"] * 1e6
    print(
        f"{name:24s} {result['triples']:>12,.0f} triples   read {result['read']:6.2f} s   "
        f"statistics {result['statistics']:6.2f} s ({per_million:.2f} s per million)   "
        f"peak {result['peak_gb']:.2f} GB"
    )


def large(millions: int) -> dict[str, float]:
    """A synthetic graph with a quarter as many entities as triples: 20 million are the size of Wikidata5M."""
    from autosf.graph.synthetic_large import LargeGraph, write_large_graph

    triples = millions * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        graph = LargeGraph(triples // 4, 800, triples, valid=triples // 1000, test=triples // 1000)
        write_large_graph(graph, Path(folder) / "large")
        return measured(f"{folder}/large")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--measure"]:
        return measure(arguments[1])
    if "AUTOSF_DATA" in os.environ:
        tell("FB15k", measured(str(Path(os.environ["AUTOSF_DATA"]) / "FB15k")))
    for millions in () if "--quick" in arguments else MILLIONS:
        result = large(millions)
        tell(f"synthetic, {millions} million", result)
        assert result["peak_gb"] < MEMORY_LIMIT, f"more than {MEMORY_LIMIT} GB"
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
