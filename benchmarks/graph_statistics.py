"""Table III on the public files: counts and relation patterns of the benchmark graphs, a line of JSON each.

    python -m benchmarks.graph_statistics

Lines go to docs/results/records/statistics.jsonl.
"""

from __future__ import annotations

import json
from pathlib import Path

from autosf.graph.reading import read_graph
from autosf.graph.statistics import statistics
from benchmarks.training import data_folder

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "records" / "statistics.jsonl"


def main() -> None:
    lines = []
    for folder in sorted(path for path in data_folder().iterdir() if path.is_dir()):
        graph = read_graph(folder)
        found = statistics(graph)
        counts = [found.entities, found.relations, *found.sizes.values(), *found.patterns.values()]
        lines.append({"graph": graph.name, "counts": counts, "digest": graph.digest})
    RECORDS.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()
