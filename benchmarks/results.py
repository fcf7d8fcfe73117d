"""`make results`: the tables of docs/results, rebuilt from the records; nothing in them is typed by hand."""

from __future__ import annotations

import re
from itertools import groupby
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from autosf.algebra.structure import PARTS
from autosf.algebra.zoo import ZOO
from benchmarks.drawn import drawn_table
from benchmarks.paper_tables import (
    classification_table,
    curves_table,
    finds_table,
    large_searches_table,
    links_table,
    mean_and_spread,
    named_table,
    running_table,
    statistics_table,
    summary_table,
    transfer_table,
)
from benchmarks.stored import RESULTS, newest_trainings, records, table

if TYPE_CHECKING:
    from pathlib import Path

BENCH = ("Kinships", "Nations", "UMLS")  # the graphs of AutoSF-Bench
SHOWN = 5  # of the best structures of a table
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


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
    for (graph, dimension, structure), found in groupby(sorted(newest_trainings(), key=group), key=group):
        runs = sorted(found, key=place)
        tests = [run["test"]["mrr"] for run in runs]
        lines.append(
            f"| {graph} | {dimension} | {structure} | {len(runs)} | {mean(r['valid_mrr'] for r in runs):.4f}"
            f" | {mean_and_spread(tests, 4)} | {mean(r['test']['hits_at_1'] for r in runs):.4f}"
            f" | {mean(r['test']['hits_at_10'] for r in runs):.4f} | {max(r['epochs'] for r in runs)}"
            f" | {mean(r['train_seconds'] for r in runs):.0f} ({runs[0]['threads']}) |"
        )
    return "\n".join(lines) + "\n"


def reaching(curve: list[list[float]], wanted: float) -> float:
    """Epochs until the best validation MRR is the wanted one."""
    return next((spent for spent, mrr in curve if mrr >= wanted), float("inf"))


def search_groups() -> list[tuple[str, list[dict[str, Any]]]]:
    """The records of each graph and protocol."""

    def group(record: dict[str, Any]) -> tuple[str, bool]:
        return record["graph"], record["hide_test"]

    found = groupby(sorted(records("search"), key=group), key=group)
    return [
        (f"{graph}{', test answers hidden' if hidden else ''}", list(runs)) for (graph, hidden), runs in found
    ]


def search_table() -> str:
    """What each search would have named at shares of the paper's epochs, with fresh seeds; and its best figure."""
    lines = [
        "| graph | strategy | seeds | named at 10% | at 20% | at 50% | at 100%"
        " | best single figure | epochs to the paper's |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for graph, runs in search_groups():
        ends = {run["seed"]: run["curve"][-1] for run in runs if run["strategy"] == "paper"}
        for strategy in dict.fromkeys(("free", "paper", *(run["strategy"] for run in runs))):
            some = [run for run in runs if run["strategy"] == strategy and run["seed"] in ends]
            if not some:
                continue
            named = [[mrr for _, _, mrr in run["named"]] for run in some]
            columns = [mean_and_spread(column, 4) for column in zip(*named, strict=True)]
            shares = [reaching(r["curve"], ends[r["seed"]][1]) / ends[r["seed"]][0] for r in some]
            told = f"{median(shares):.0%}" if median(shares) <= 1 else "not reached"
            best = mean(run["curve"][-1][1] for run in some)
            lines.append(
                f"| {graph} | {strategy} | {len(some)} | {' | '.join(columns)} | {best:.4f} | {told} |"
            )
    return "\n".join(lines) + "\n"


def newest(kind: str, *keys: str) -> list[dict[str, Any]]:
    """The last line of that kind for each value of the keys, in the order of the keys."""
    lines = [line for line in records("tabular") if line["kind"] == kind]
    return [line for _, line in sorted({tuple(line[key] for key in keys): line for line in lines}.items())]


def regret_table() -> str:
    """Median regret of each strategy at shares of the epochs of the paper's search."""
    lines = newest("replay", "graph", "strategy")
    if not lines:
        return "No replay is on record yet.\n"
    shares = " | ".join(f"{share:.0%}" for share in lines[0]["shares"])
    rows = [
        f"| graph | strategy | seeds | {shares} | its own epochs |",
        "| --- | --- | ---: |" + " ---: |" * (len(lines[0]["shares"]) + 1),
    ]
    for line in lines:
        regrets = " | ".join(f"{regret:.4f}" for regret in line["median_regret"])
        rows.append(
            f"| {line['graph']} ({line['structures']} structures) | {line['strategy']} | {line['seeds']}"
            f" | {regrets} | {line['median_epochs']:.0f} |"
        )
    return "\n".join(rows) + "\n"


def predictor_table() -> str:
    """Rank correlations of predictors and of short trainings."""
    lines = newest("quality", "graph")
    rows = ["| graph | what | rank correlation |", "| --- | --- | ---: |"]
    for line in lines:
        told = {f"{name}, {line['labels']} labels": value for name, value in line["predictors"].items()}
        told |= {f"one training of {name}": value for name, value in line["fidelities"].items()}
        rows += [f"| {line['graph']} | {name} | {value:.3f} |" for name, value in told.items()]
    return "\n".join(rows) + "\n"


def best_table() -> str:
    """The best of all structures of each table, and the places of those that people or the paper named."""
    from benchmarks.tabular import form_of, read_table

    names = {form_of(known.structure): known.name for known in ZOO if known.structure.parts == PARTS}
    rows = ["| graph | place | structure | validation MRR |", "| --- | ---: | --- | ---: |"]
    for graph in BENCH:
        found = read_table(graph)
        order = sorted(found.curves, key=found.truth, reverse=True)
        shown = {*order[:SHOWN], *(structure for structure in order if structure in names)}
        for place, structure in enumerate(order, 1):
            if structure in shown:
                bests = [max(curve) for curve in found.curves[structure]]
                named = names.get(structure, f"`{structure}`")
                rows.append(f"| {graph} | {place:,} | {named} | {mean_and_spread(bests, 4)} |")
    return "\n".join(rows) + "\n"


def noise_table() -> str:
    """How much structures differ, and how much the seeds of one."""
    rows = [
        [
            line["graph"],
            f"{line['structures']:,}",
            *(f"{line['spread'][of]:.4f}" for of in ("structures", "seeds")),
        ]
        for line in newest("quality", "graph")
    ]
    return table("graph | structures | between structures | between seeds of one", rows, left=1)


def growth_table() -> str:
    """The lines of the growth benchmark as they were measured."""
    units = {"%": " %", "pc": " %", "x": " times"}
    lines = ["| what | measured | bar | |", "| --- | ---: | ---: | --- |"]
    for line in records("growth"):
        unit = units.get(line["unit"], f" {line['unit']}")
        bar = "" if line["bar"] is None else f"{line['bar']:g}{unit}"
        lines.append(f"| {line['what'].strip()} | {line['value']:,.4g}{unit} | {bar} | {line['note']} |")
    return "\n".join(lines) + "\n"


def comparison_table() -> str:
    """The rows of `autosf compare`, by graph, best first."""
    rows = [
        [
            row["graph"],
            row["model"],
            str(row["seeds"]),
            f"{row['valid']['mrr']:.4f}",
            *(f"{row['test'][name]:.4f}" for name in ("mrr", "hits_at_1", "hits_at_10")),
            f"{row['parameters']:,}",
            f"{row['seconds']:.0f}",
        ]
        for row in sorted(records("comparison"), key=lambda row: (row["graph"], -row["test"]["mrr"]))
    ]
    head = "graph | model | seeds | valid MRR | test MRR | Hits@1 | Hits@10 | numbers | seconds"
    return table(head, rows)


TABLES = {
    "comparison": comparison_table,
    "training": training_table,
    "search": search_table,
    "regret": regret_table,
    "predictors": predictor_table,
    "noise": noise_table,
    "best": best_table,
    "growth": growth_table,
    "statistics": statistics_table,
    "links": links_table,
    "large": large_searches_table,
    "named": named_table,
    "drawn": drawn_table,
    "finds": finds_table,
    "transfer": transfer_table,
    "classification": classification_table,
    "running": running_table,
    "curves": curves_table,
    "summary": summary_table,
}


def rebuilt(text: str) -> str:
    """A page with every table made anew."""
    return TABLE.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def pages() -> list[Path]:
    """Where tables stand: the pages of results, and the README with its summary."""
    return [*sorted(RESULTS.glob("*.md")), RESULTS.parents[1] / "README.md"]


def main() -> None:
    for page in pages():
        text = page.read_text(encoding="utf-8")
        if rebuilt(text) != text:
            page.write_text(rebuilt(text), encoding="utf-8")
            print(f"rebuilt {page.name}")


if __name__ == "__main__":
    main()
