"""`make results`: the tables of docs/results, rebuilt from the records; nothing in them is typed by hand."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from statistics import mean, pstdev
from typing import Any

RESULTS = Path(__file__).parents[1] / "docs" / "results"
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def records(name: str) -> list[dict[str, Any]]:
    path = RESULTS / "records" / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def training_table() -> str:
    """Quality by graph, dimension and structure: mean over seeds, and their spread where there are several."""

    def place(record: dict[str, Any]) -> tuple[str, int, float]:
        return record["graph"], record["settings"]["dimension"], -record["test"]["mrr"]

    def group(record: dict[str, Any]) -> tuple[str, int, str]:
        return record["graph"], record["settings"]["dimension"], record["structure"]

    lines = [
        "| graph | d | structure | seeds | valid MRR | test MRR | Hits@1 | Hits@10 | epochs | seconds (threads) |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (graph, dimension, structure), found in groupby(sorted(records("training"), key=group), key=group):
        runs = sorted(found, key=place)
        tests = [run["test"]["mrr"] for run in runs]
        spread = f" ± {pstdev(tests):.4f}" if len(runs) > 1 else ""
        lines.append(
            f"| {graph} | {dimension} | {structure} | {len(runs)} | {mean(r['valid_mrr'] for r in runs):.4f}"
            f" | {mean(tests):.4f}{spread} | {mean(r['test']['hits_at_1'] for r in runs):.4f}"
            f" | {mean(r['test']['hits_at_10'] for r in runs):.4f} | {max(r['epochs'] for r in runs)}"
            f" | {mean(r['train_seconds'] for r in runs):.0f} ({runs[0]['threads']}) |"
        )
    return "\n".join(lines) + "\n"


TABLES = {"training": training_table}


def rebuilt(text: str) -> str:
    """A page with every table made anew."""
    return TABLE.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def main() -> None:
    for page in sorted(RESULTS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if rebuilt(text) != text:
            page.write_text(rebuilt(text), encoding="utf-8")
            print(f"rebuilt {page.name}")


if __name__ == "__main__":
    main()
