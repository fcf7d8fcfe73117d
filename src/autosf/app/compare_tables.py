"""A comparison as people read it: one table for a graph, and a matrix for several (Tables IV and V)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from autosf.app.data_tables import label

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

METRICS = {"mrr": "MRR", "hits_at_1": "Hits@1", "hits_at_10": "Hits@10"}


def comparison_for_people(result: Mapping[str, Any]) -> list[RenderableType]:
    """The matrix, if there are several graphs, then each graph's table, then what the marks mean."""
    pieces: list[RenderableType] = [] if result["matrix"] is None else [matrix_table(result)]
    for graph in result["graphs"]:
        pieces.append(graph_table(result, graph, [row for row in result["rows"] if row["graph"] == graph]))
    pieces += [Text(line, "dim") for line in remarks(result)]
    return pieces


def graph_table(result: Mapping[str, Any], graph: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each model; the best figure of each column is bold."""
    split = result["split"]
    table = plain_table(f"\n{label(graph)}, {split}, filtered, both sides")
    if split == "test":
        table.add_column("valid MRR", justify="right")
    for title in METRICS.values():
        table.add_column(title, justify="right")
    table.add_column("numbers", justify="right")
    table.add_column("time", justify="right")
    best = {key: max((row[split][key] or 0 for row in rows if row[split]), default=0) for key in METRICS}
    for row in rows:
        cells = [figure(row[split], key, best[key]) for key in METRICS]
        if row["spread"][split] is not None:
            cells[0] = Text.assemble(cells[0], f" ± {row['spread'][split]:.4f}")
        valid = [figure(row["valid"], "mrr", None)] if split == "test" else []
        table.add_row(name_of(row), *valid, *cells, numbers(row["parameters"]), seconds(row["seconds"]))
    return table


def matrix_table(result: Mapping[str, Any]) -> Table:
    """MRR by model and graph; the best of each graph is bold."""
    table = plain_table(f"\nMRR on {result['split']}")
    for graph in result["graphs"]:
        table.add_column(label(graph), justify="right")
    columns = list(zip(*result["matrix"], strict=True))
    best = [max((value for value in column if value is not None), default=None) for column in columns]
    rows = {row["model"]: row for row in result["rows"]}
    for model, values in zip(result["models"], result["matrix"], strict=True):
        cells = [figure({"mrr": value}, "mrr", top) for value, top in zip(values, best, strict=True)]
        table.add_row(name_of(rows[model]) if model in rows else label(model), *cells)
    return table


def plain_table(title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("model", overflow="fold")
    return table


def name_of(row: Mapping[str, Any]) -> Text:
    """The model as the user named it, with the graph that a structure was found on and the marks."""
    found_on = f" (found on {label(row['found_on'])})" if row["found_on"] else ""
    mark = " *" if row["published"] else " !" if row["failed"] else ""
    return Text.assemble(label(row["model"]), found_on, mark)


def figure(metrics: Mapping[str, Any] | None, key: str, best: float | None) -> Text:
    value = metrics[key] if metrics else None
    if value is None:
        return Text("-", "dim")
    return Text(f"{value:.4f}", "bold" if value == best else "")


def numbers(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f} s"


def remarks(result: Mapping[str, Any]) -> list[str]:
    """What the marks mean, for those that are there."""
    lines = []
    if len(result["seeds"]) > 1:
        lines.append(f"means over {len(result['seeds'])} seeds, ± their standard deviation")
    if any(row["published"] for row in result["rows"]):
        lines.append("* as published (Zhang et al., ICDE 2020, Table IV), not measured here")
    lines += [
        f"! {label(row['model'])}, {label(row['graph'])}: {label(row['failed'], 300)}"
        for row in result["rows"]
        if row["failed"]
    ]
    return lines
