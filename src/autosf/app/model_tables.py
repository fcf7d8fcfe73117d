"""The answers of the commands on models as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from autosf.app.data_tables import label
from autosf.counting import counted, have

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

SHARES = {
    "mrr": "MRR",
    "hits_at_1": "Hits@1",
    "hits_at_3": "Hits@3",
    "hits_at_10": "Hits@10",
    "adjusted_mean_rank_index": "AMRI",
}
WORDS = ("head", "relation", "tail", "entity")
TITLES = (*SHARES.values(), "mean rank", "count")


def _table(title: str, words: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in words:
        table.add_column(column, overflow="fold")
    for column in numbers:
        table.add_column(column, justify="right")
    return table


def _numbers(row: Mapping[str, Any]) -> list[str]:
    """The metrics of a row as people read them."""
    shown = [f"{row[key]:.4f}" for key in SHARES]
    return [*shown, f"{row['mean_rank']:,.1f}", f"{row['count']:,}"]


def evaluation_for_people(result: Mapping[str, Any], by: str | None) -> list[RenderableType]:
    """All triples, those without unseen entities, and the groups."""
    ranks = f", ranks estimated from {result['candidates']:,} candidates" if result["sampled"] else ""
    title = f"\n{label(result['graph'])}, {result['split']}, filtered{ranks}"
    table = _table(title, [""], TITLES)
    table.add_row("all triples", *_numbers(result))
    if result["seen"] and result["unseen_count"]:
        table.add_row("seen in train", *_numbers(result["seen"]), style="dim")
    low, high = result["mrr_interval"]
    pieces: list[RenderableType] = [table, Text(f"MRR {low:.4f} to {high:.4f} with 95 % confidence", "dim")]
    if result["unseen_count"]:
        unseen = result["unseen_count"]
        told = f"{counted(unseen, 'triple')} {have(unseen)} an entity or relation that train never shows"
        pieces.append(Text(told, "dim"))
    if result["groups"]:
        groups = _table(f"\nBy {by}", [by or ""], TITLES)
        for name, row in result["groups"].items():
            shown = name.replace("_", "-") if by == "pattern" else name
            groups.add_row(label(shown), *_numbers(row))
        pieces.append(groups)
    return pieces


def classification_for_people(result: Mapping[str, Any], most: int = 20) -> list[RenderableType]:
    """The accuracy, how negatives came about, and the relations with the most triples."""
    triples = counted(result["fallback_count"], "triple")
    relations = counted(result["fallback_relations"], "relation")
    overall = f"{result['overall_threshold']:.4f}"
    fallback = f"judged by the overall threshold {overall}: {triples} of {relations}"
    pieces: list[RenderableType] = [
        Text(f"\naccuracy {result['accuracy']:.2%} on {counted(result['count'], 'triple')}", "bold"),
        Text(f"negatives: {result['negatives']}", "dim"),
        Text(fallback if result["fallback_count"] else "every relation has a threshold of its own", "dim"),
    ]
    rows = sorted(result["relations"], key=lambda row: -row["count"])[:most]
    table = _table(
        f"\nMost frequent: {counted(len(rows), 'relation')}",
        ["relation"],
        ["accuracy", "threshold", "triples"],
    )
    for row in rows:
        table.add_row(
            label(row["relation"]), f"{row['accuracy']:.2%}", f"{row['threshold']:.4f}", f"{row['count']:,}"
        )
    return [*pieces, table]


def predictions_for_people(rows: Sequence[Mapping[str, Any]], question: str) -> list[RenderableType]:
    """The answers, best first, known ones marked; of many questions each with its number."""
    if not rows:
        return [Text("no answer: all are known already, or have no score")]
    words = [key for key in rows[0] if key in WORDS]
    numbers = [key for key in rows[0] if key not in (*WORDS, "asked", "known")]
    table = _table(f"\n{question}", words, [key.replace("_", " ") for key in numbers])
    table.add_column("")
    for row in rows:
        mark = Text("known", "dim") if row.get("known") else Text("")
        table.add_row(
            *(label(row[word]) for word in words), *(_number(key, row[key]) for key in numbers), mark
        )
    return [table]


def _number(key: str, value: float | None) -> str:
    """A score, or a count or place; a dash for what is not known."""
    if value is None:
        return "-"
    return f"{value:,.10g}" if key.endswith(("question", "rank", "candidates")) else f"{value:.4f}"


def judgement_for_people(row: Mapping[str, Any], triple: str) -> list[RenderableType]:
    """What the model says of one triple, a line each."""
    lines = [("score", f"{row['score']:.4f}")]
    if row["probability"] is not None:
        lines.append(("probability", f"{row['probability']:.2f} among as many true as false triples"))
    for side in ("tail", "head"):
        if (place := row[f"{side}_rank"]) is not None:
            of_all = f"{row[f'{side}_candidates']:,} that are not known answers"
            lines.append((f"{side}'s place", f"{place:,.10g} of {of_all}"))
    if row["known"] is not None:
        lines.append(("in the graph", "yes" if row["known"] else "no"))
    table = _table(f"\n{triple}", ["", " "], [])
    table.show_header = False
    for name, said in lines:
        table.add_row(Text(name, "dim"), said)
    return [table]
