"""AutoSF-Bench: every structure that Alg. 2 can reach with 4, 5 and 6 blocks, trained once and for all.

    python -m benchmarks.table UMLS --runs FOLDER --workers 1
    python -m benchmarks.table UMLS --runs FOLDER --name UMLS-d16 --set dimension=16 --seeds 1 --structures 256

Classes are those of the extended group. Beside the reachable ones there are the zoo's and a sample of f^6
that Alg. 2 cannot reach. Each is trained with the graph's recipe (its preset, as changed by --set) and several
seeds, validated after every epoch with the test answers hidden, as most papers do. What there is so far goes
to docs/results/records/table-NAME.parquet now and then, and at the end. The command can be killed and given
again: what is in the table, or in the run folder since, is not trained again.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import click
import polars

from autosf.algebra.space import classes, reachable_classes
from autosf.app.graphs import graph_of
from autosf.app.wanted_settings import parsed_pair
from autosf.embedding.presets import preset
from autosf.runs.run import Plan, create_run, open_run
from autosf.runs.serving import Outer, Service, serve
from autosf.runs.workers import Crew
from autosf.search.record import Trial
from autosf.search.settings import SearchSettings
from autosf.search.typical import known_good

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record, Strategy

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "records"
BLOCKS = (4, 5, 6)
UNREACHABLE = 240  # f^6 that Alg. 2 cannot reach, drawn at random
ROUND = 64
SAVE_ROUNDS = 4
SCHEMA = {
    "structure": polars.String,  # rows, canonical under the extended group
    "blocks": polars.UInt8,
    "reachable": polars.Boolean,  # by Alg. 2
    "seed": polars.UInt8,
    "valid_mrr": polars.Float32,  # the best over epochs
    "curve": polars.List(polars.Float32),  # by epoch
    "seconds": polars.Float32,
}


@cache
def listed() -> tuple[Structure, ...]:
    """Canonical structures of the table: known good ones, then the rest in random order, so that a table that
    is not finished yet is a fair sample."""
    rng = Random(0)
    reached = [reachable_classes(blocks, "extended") for blocks in BLOCKS]
    others = sorted(set(classes(BLOCKS[-1], "extended")) - set(reached[-1]))
    pool = [*reached[0], *reached[1], *reached[2], *rng.sample(others, UNREACHABLE)]
    rng.shuffle(pool)
    return tuple(dict.fromkeys([*known_good(), *pool]))


def missing_trials(
    known: polars.DataFrame, structures: Sequence[Structure], epochs: int, seeds: int
) -> list[Trial]:
    """Every structure with the first seed, then with the second, ..., as far as the table lacks them."""
    there = set(known.select("structure", "seed").iter_rows())
    wanted = [Trial(structure, epochs, seed) for seed in range(seeds) for structure in structures]
    return [trial for trial in wanted if (str(trial.structure), trial.seed) not in there]


def in_rounds(trials: Sequence[Trial], keep: Callable[[Sequence[Record]], None]) -> Strategy:
    """The trials round by round; what is done is kept now and then, and at the end."""
    done: list[Record] = []
    for number, start in enumerate(range(0, len(trials), ROUND), 1):
        done += yield trials[start : start + ROUND]
        if number % SAVE_ROUNDS == 0:
            keep(done)
            click.echo(f"{len(done)} of {len(trials)} trainings")
    keep(done)
    return "the table is whole"


def table_of(records: Sequence[Record]) -> polars.DataFrame:
    """A row for each training: its structure, seed and validation MRR after each epoch."""
    reached = {structure for blocks in BLOCKS for structure in reachable_classes(blocks, "extended")}
    rows = [
        (
            str(record.trial.structure),
            record.trial.structure.blocks,
            record.trial.structure in reached,
            record.trial.seed,
            record.valid_mrr,
            [mrr for _, mrr in record.curve],
            record.seconds,
        )
        for record in records
        if not record.failed
    ]
    return polars.DataFrame(rows, schema=SCHEMA, orient="row")


def path_of(name: str) -> Path:
    return RECORDS / f"table-{name.lower()}.parquet"


def read(name: str) -> polars.DataFrame:
    """The table so far, empty if there is none."""
    path = path_of(name)
    return polars.read_parquet(path) if path.exists() else polars.DataFrame(schema=SCHEMA)


def save(table: polars.DataFrame, name: str) -> None:
    beside = path_of(name).with_suffix(".partial")
    table.sort("structure", "seed").write_parquet(beside, compression="zstd", compression_level=19)
    beside.replace(path_of(name))


@click.command()
@click.argument("graph")
@click.option("--runs", type=click.Path(path_type=Path), required=True, help="Folder for the run folder.")
@click.option("--workers", default=1, show_default=True)
@click.option("--seeds", default=3, show_default=True)
@click.option("--structures", type=int, help="Only so many, a fair sample. [default: all]")
@click.option("--name", help="Of the table. [default: the graph's]")
@click.option(
    "--set", "pairs", multiple=True, help="A setting of the training, as reciprocal=false; repeatable."
)
def main(
    graph: str,
    runs: Path,
    workers: int,
    seeds: int,
    structures: int | None,
    name: str | None,
    pairs: tuple[str, ...],
) -> None:
    name = name or graph
    known, folder = graph_of(graph), runs / f"table-{name}"
    recipe = preset(known.name).changed(dict(parsed_pair(pair) for pair in pairs))
    training = recipe.changed({"patience": 0, "validate_every": 1})
    settings = asdict(SearchSettings(strategy="table", epochs=training.epochs, grain=1))
    plan = Plan(training, settings, source=graph, hide_test=True)
    run = open_run(folder) if folder.exists() else create_run(folder, known, plan)
    past = read(name)

    def keep(records: Sequence[Record]) -> None:
        save(past.vstack(table_of(records)), name)

    missing = missing_trials(past, listed()[:structures], training.epochs, seeds)
    strategy = in_rounds(missing, keep)
    serve(run, strategy, Service(Crew(workers)), Outer(time.monotonic, time.time))


if __name__ == "__main__":
    main()
