"""The answers of `autosf data` as tables for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from autosf.counting import counted
from autosf.errors import quoted
from autosf.graph.statistics import QUANTILES, Statistics

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rich.console import RenderableType

    from autosf.graph.leakage import Leakage
    from autosf.graph.vocabulary import Vocabulary

DEGREE_NAMES = {"head": "as head", "tail": "as tail", "both": "in all"}


def label(text: str, longest: int = 120) -> Text:
    """A label of the user's, on one line, without control characters, and never read as markup."""
    return Text(quoted(text, longest)[1:-1])


def statistics_for_people(
    found: Statistics, relations: Vocabulary, warnings: Sequence[str], most: int
) -> list[RenderableType]:
    """All warnings first, then the numbers, then the largest relations."""
    pieces = warnings_for_people(warnings)
    pieces += [_sizes(found), _kinds(found), _degrees(found)]
    if most:
        pieces.append(_relations(found, most))
    if most and found.leaked.test_triples:
        pieces.append(_leaks(found.leaked, relations, most))
    return pieces


def warnings_for_people(warnings: Sequence[str]) -> list[RenderableType]:
    """Each warning on a line of its own."""
    return [Text(f"! {quoted(line, 500)[1:-1]}", "yellow") for line in warnings]


def _table(title: str, *columns: str, text: int = 1) -> Table:
    """A plain table; the first `text` columns are words, the others numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < text else "right", overflow="fold")
    return table


def _sizes(found: Statistics) -> Table:
    table = _table(f"\n{label(found.name)}", "", "")
    table.show_header = False
    rows = {
        "entities": found.entities,
        "relations": found.relations,
        **{f"{split} triples": count for split, count in found.sizes.items()},
        "queries (h, r, ?) in train": found.tail_queries,
        "queries (?, r, t) in train": found.head_queries,
    }
    for name, count in rows.items():
        table.add_row(name, f"{count:,}")
    return table


def _kinds(found: Statistics) -> Table:
    table = _table("\nRelations in train", "pattern", "relations", "category", "relations")
    table.columns[2].justify = "left"
    categories = found.categories.items()
    for (pattern, count), (category, size) in zip(found.patterns.items(), categories, strict=True):
        table.add_row(pattern.replace("_", "-"), f"{count:,}", category, f"{size:,}")
    return table


def _degrees(found: Statistics) -> Table:
    names = {0: "least", 50: "median", 100: "most"}
    columns = [names.get(percent, f"{percent} %") for percent in QUANTILES]
    table = _table("\nTrain triples of an entity", "", "mean", *columns)
    for side, degrees in found.degrees.items():
        quantiles = [f"{degrees.quantiles[percent]:,}" for percent in QUANTILES]
        table.add_row(DEGREE_NAMES[side], f"{degrees.mean:,.1f}", *quantiles)
    return table


def _relations(found: Statistics, most: int) -> Table:
    shown = found.details[:most]
    all_of_them = counted(len(found.details), "relation")
    largest = "The largest" if most == 1 else f"The {most:,} largest"
    title = all_of_them if len(shown) == len(found.details) else f"{largest} of {all_of_them}"
    table = _table(
        f"\n{title}",
        "relation",
        "pattern",
        "inverse of",
        "category",
        "triples",
        "tails/head",
        "heads/tail",
        text=4,
    )
    for row in shown:
        table.add_row(
            label(row.relation),
            row.pattern.replace("_", "-"),
            label(row.partner or ""),
            row.category,
            f"{row.triples:,}",
            f"{row.tails_per_head:.1f}",
            f"{row.heads_per_tail:.1f}",
        )
    return table


def _leaks(leaked: Leakage, relations: Vocabulary, most: int) -> Table:
    table = _table(
        "\nRelations that give test answers away",
        "relation",
        "how",
        "gives away",
        "overlap",
        "test triples",
        text=3,
    )
    for pair in leaked.pairs[:most]:
        table.add_row(
            label(relations.label(pair.source)),
            pair.kind.replace("_", "-"),
            label(relations.label(pair.target)),
            f"{pair.confidence:.0%}",
            f"{pair.test_triples:,}",
        )
    return table


def known_graphs_for_people(rows: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    """The well-known graphs, where they are, and what else lies on the search path."""
    table = _table("", "graph", "where", "entities", "relations", "train", "valid", "test", text=2)
    for row in rows:
        where = Text(row["path"]) if row["path"] else Text("-", "dim")
        counts = [f"{row[key]:,}" if row[key] is not None else "" for key in list(rows[0])[1:6]]
        table.add_row(label(row["name"]), where, *counts)
    return [table, Text("\n- : not on this machine; get it with: autosf data get NAME")]


def split_for_people(result: Mapping[str, Any]) -> list[RenderableType]:
    """What a split came to."""
    pieces: list[RenderableType] = [
        Text(f"{result['train']:,} train, {result['valid']:,} valid, {result['test']:,} test triples"),
        Text(f"written to {result['folder']}"),
    ]
    if result["duplicates"]:
        pieces.insert(0, Text(f"! {counted(result['duplicates'], 'repeated triple')} left out", "yellow"))
    if result["missing"]:
        told = (
            f"! {result['missing']:,} fewer than asked for in valid and test: only "
            f"{counted(result['available'], 'triple')} can leave train, which must show every entity and relation"
        )
        pieces.insert(0, Text(told, "yellow"))
    pieces = warnings_for_people(result["warnings"]) + pieces
    if result["dropped"]:
        table = _table("\nDropped relations", "relation", "how", "kept instead", text=3)
        for row in result["dropped"]:
            table.add_row(label(row["relation"]), row["kind"].replace("_", "-"), label(row["kept"]))
        pieces.append(table)
    return pieces
