"""`autosf data`: look at a graph, split one, list and download the well-known ones, make a synthetic one."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app import completing
from autosf.app.answer import answer, console, json_option
from autosf.app.table_form import table_options, told_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autosf.graph.download import Progress
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.registry import KnownGraph
    from autosf.graph.splitting import DroppedRelation, Split
    from autosf.graph.statistics import Statistics

HELD_OUT = "[default: a tenth, at most 1000]"


@click.group(epilog="Example: autosf data stats umls", invoke_without_command=True, no_args_is_help=False)
@click.pass_context
def data(context: click.Context) -> None:
    """Look at graphs, split them, get well-known ones."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@data.command(epilog="Example: autosf data stats umls")
@click.argument("graph", shell_complete=completing.graphs)
@click.option(
    "--relations", "most", type=click.IntRange(0), default=20, show_default=True,
    help="How many relations to show; 0 for no table.",
)  # fmt: skip
@json_option
def stats(graph: str, most: int, as_json: bool) -> None:
    """Counts, relation patterns and flaws of GRAPH: a folder, a file or a name."""
    from autosf.app.graphs import graph_as_it_is
    from autosf.graph.statistics import all_warnings, statistics

    read = graph_as_it_is(graph)
    found = statistics(read)
    warnings = all_warnings(read, found)

    def for_people() -> Any:
        from autosf.app.data_tables import statistics_for_people

        return statistics_for_people(found, read.relations, warnings, most)

    answer(stats_record(found, read, warnings), as_json, for_people)


def stats_record(found: Statistics, graph: KnowledgeGraph, warnings: Sequence[str]) -> dict[str, Any]:
    """The statistics under the names that programs rely on."""
    from dataclasses import asdict

    label = graph.relations.label
    leaked = asdict(found.leaked)
    leaked["pairs"] = [
        pair | {"source": label(pair["source"]), "target": label(pair["target"])} for pair in leaked["pairs"]
    ]
    return {
        "graph": found.name,
        "digest": graph.digest,
        "entities": found.entities,
        "relations": found.relations,
        **found.sizes,
        "tail_queries": found.tail_queries,
        "head_queries": found.head_queries,
        "patterns": found.patterns,
        "categories": found.categories,
        "degrees": {side: asdict(degrees) for side, degrees in found.degrees.items()},
        "unseen": asdict(found.unseen),
        "duplicates": sum(found.duplicates.values()),
        "duplicates_by_split": found.duplicates,
        "shared": found.shared,
        "leaked": leaked,
        "warnings": list(warnings),
        "relations_detail": [asdict(row) for row in found.details],
    }


@data.command(epilog="Example: autosf data split triples.tsv --out my-graph --valid 0.05 --test 1000")
@click.argument("file")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder for the splits.")
@click.option("--valid", default=0.1, show_default=True, help="Share below 1, or number of triples.")
@click.option("--test", default=0.1, show_default=True, help="Share below 1, or number of triples.")
@click.option("--keep-test", is_flag=True, help="Leave the test split as it is; valid comes from the rest.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, another split."
)
@click.option(
    "--remove-leakage",
    is_flag=True,
    help="Drop relations that another one nearly contains, straight or reversed, as FB15k-237 does.",
)
@click.option(
    "--layout", default="tsv", show_default=True, help="How to write: tsv, tsv.gz, csv, parquet, ..."
)
@table_options
@json_option
def split(
    file: str,
    out: Path,
    valid: float,
    test: float,
    keep_test: bool,
    seed: int,
    remove_leakage: bool,
    layout: str,
    columns: str | None,
    header: bool | None,
    delimiter: str | None,
    as_json: bool,
) -> None:
    """Split FILE (or a folder, joining its splits) so that train shows every entity and relation."""
    from dataclasses import replace

    from autosf.app.graphs import graph_as_it_is
    from autosf.graph.completing import warnings_of_reading
    from autosf.graph.splitting import joined, refuse_all, split, without_leakage
    from autosf.graph.writing import write_graph

    read = graph_as_it_is(file, **told_form(columns, header, delimiter))
    if keep_test and (remove_leakage or not len(read.test)):
        raise click.UsageError(
            "--keep-test: expected a graph with a test split, and no --remove-leakage, which would change it"
        )
    size = len(read.entities), len(read.relations)
    triples, repeated = joined(replace(read, test=read.test[:0]) if keep_test else read)
    kept, dropped = without_leakage(triples, *size) if remove_leakage else (triples, [])
    to_test = 0 if keep_test else test
    refuse_all(len(kept), valid=valid, test=to_test)
    made = split(kept, *size, valid=valid, test=to_test, seed=seed)
    if keep_test:
        made = replace(made, test=read.test, wished_test=len(read.test))
    graph = _graph_of(read, made)
    write_graph(graph, out, layout)
    result = split_record(read, graph, made, dropped) | {
        "folder": str(out),
        "seed": seed,
        "duplicates": repeated,
        "dropped_triples": len(triples) - len(kept),
        "warnings": warnings_of_reading(read),
    }

    def for_people() -> Any:
        from autosf.app.data_tables import split_for_people

        return split_for_people(result)

    answer(result, as_json, for_people)


def _graph_of(read: KnowledgeGraph, made: Split) -> KnowledgeGraph:
    """The split graph; labels that no triple has any more are gone."""
    from autosf.graph.knowledge_graph import KnowledgeGraph

    splits = {"train": made.train, "valid": made.valid, "test": made.test}
    return KnowledgeGraph.from_ids(read.name, read.entities.labels, read.relations.labels, splits)


def split_record(
    read: KnowledgeGraph, graph: KnowledgeGraph, made: Split, dropped: list[DroppedRelation]
) -> dict[str, Any]:
    """What a split came to, and what it could not have."""
    label = read.relations.label
    return {
        "entities": len(graph.entities),
        "relations": len(graph.relations),
        "train": len(made.train),
        "valid": len(made.valid),
        "test": len(made.test),
        "wished": {"valid": made.wished_valid, "test": made.wished_test},
        "available": made.available,
        "missing": made.missing,
        "dropped": [
            {"relation": label(one.relation), "kept": label(one.kept), "kind": one.kind} for one in dropped
        ],
    }


@data.command(name="list", epilog="Example: autosf data list")
@json_option
def list_(as_json: bool) -> None:
    """The well-known graphs, whether each is on this machine, and where."""
    from autosf.graph.registry import at_hand, graph_folders, known_graphs, search_path

    path = search_path(os.environ)
    rows = [known_record(graph, at_hand(graph.name, search_path=path)) for graph in known_graphs()]
    listed = {row["path"] for row in rows}
    unknown = dict.fromkeys(("entities", "relations", "train", "valid", "test"))
    for folder in path:
        others = [child for child in graph_folders(folder) if str(child) not in listed]
        names = {row["name"].casefold() for row in rows}
        rows += [
            {"name": child.name, **unknown, "path": str(child)}
            for child in others
            if child.name.casefold() not in names and at_hand(child.name, search_path=path) == child
        ]

    def for_people() -> Any:
        from autosf.app.data_tables import known_graphs_for_people

        return known_graphs_for_people(rows)

    answer({"graphs": rows, "search_path": [str(folder) for folder in path]}, as_json, for_people)


def known_record(graph: KnownGraph, path: Path | None) -> dict[str, Any]:
    """A well-known graph's facts, and its folder if it is on this machine."""
    return {
        "name": graph.name,
        "entities": graph.entities,
        "relations": graph.relations,
        **graph.sizes,
        "path": None if path is None else str(path),
        "licence": graph.licence,
        "source": graph.source,
        "verified_by": graph.algorithm or "counts",
        "note": graph.unverified,
    }


@data.command(epilog="Example: autosf data get WN18RR")
@click.argument("name")
@click.option(
    "--to", "folder", type=click.Path(path_type=Path), help="Folder for it, in the place of the cache."
)
@json_option
def get(name: str, folder: Path | None, as_json: bool) -> None:
    """Download the well-known graph NAME, verify it and keep it in the cache."""
    from autosf.graph.download import get_graph
    from autosf.graph.registry import at_hand, cache_folder, known_graph, search_path

    known = known_graph(name)
    found = None if folder else at_hand(known.name, search_path=search_path(os.environ))
    if found is None:
        target = (folder or cache_folder(os.environ)) / known.name
        with DownloadBars() as bars:
            found = get_graph(known, target, report=bars.report, pause=time.sleep)
    result = known_record(known, found)

    def for_people() -> Any:
        return f"{known.name} is in {found}\nlicence: {known.licence}\nsource: {known.source}"

    answer(result, as_json, for_people)


class DownloadBars:
    """Progress bars on stderr, one for each address; owns the live display while it is open."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        text = TextColumn("{task.description}", markup=False)
        self._bars = Progress(
            text, BarColumn(), DownloadColumn(), TransferSpeedColumn(), console=console(stderr=True)
        )
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> DownloadBars:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def report(self, progress: Progress) -> None:
        if progress.address not in self._tasks:
            name = progress.address.rpartition("/")[2].rpartition(":")[2].partition("?")[0]
            self._tasks[progress.address] = self._bars.add_task(name or progress.address, total=None)
        self._bars.update(
            self._tasks[progress.address], completed=progress.done, total=progress.total, refresh=False
        )


@data.command(epilog="Example: autosf data synthetic --entities 1000 --triples 10000 --out large")
@click.option("--entities", default=10_000, show_default=True, help="How many entities, exactly.")
@click.option("--relations", default=100, show_default=True, help="How many relations, exactly.")
@click.option(
    "--triples", default=100_000, show_default=True, help="How many triples in all splits together."
)
@click.option("--valid", type=int, help=f"How many of them are valid triples.  {HELD_OUT}")
@click.option("--test", type=int, help=f"How many of them are test triples.  {HELD_OUT}")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Another seed, another graph."
)
@click.option("--form", default="tsv", show_default=True, help="tsv, tsv.gz or parquet.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A new folder.")
@json_option
def synthetic(out: Path, form: str, valid: int | None, test: int | None, as_json: bool, **sizes: int) -> None:
    """Write a random graph with skewed degrees, of any size, in constant memory."""
    from autosf.graph.synthetic_large import LargeGraph, write_large_graph

    tenth = min(max(sizes["triples"], 0) // 10, 1000)
    sizes |= {"valid": tenth if valid is None else valid, "test": tenth if test is None else test}
    write_large_graph(LargeGraph(**sizes), out, form=form)
    result = {**sizes, "form": form, "folder": str(out)}
    answer(result, as_json, lambda: f"{sizes['triples']:,} triples written to {out}")
