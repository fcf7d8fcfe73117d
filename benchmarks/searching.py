"""Searches side by side (the paper's Fig. 6, 7): best validation MRR against trained epochs, a line of JSON each.

    python -m benchmarks.searching UMLS --strategies free,paper --seeds 0,1 --runs FOLDER [--hide-test]

Every strategy trains with the graph's preset. When a search has ended, what it would have named after a tenth, a
fifth, half and all of the paper's epochs is trained with three fresh seeds, since the best of many noisy figures
says little about a structure. Lines go to
docs/results/records/search.jsonl; a search that is there already is not repeated, one that was interrupted goes
on from its run folder.
"""

from __future__ import annotations

import datetime
import json
import time
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import click

from autosf.app.graphs import graph_of
from autosf.app.wanted_settings import parsed_pair
from autosf.embedding.gen_approx import fitting, train_gen_approx
from autosf.embedding.presets import preset
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.graph.known_answers import known_answers
from autosf.runs.history import search_curve, trained_epochs
from autosf.runs.run import Plan, Run, create_run, open_run
from autosf.runs.serving import Outer, Service, serve
from autosf.runs.shared_graph import without_test
from autosf.runs.workers import Crew
from autosf.search.free import seen
from autosf.search.record import Trial, search
from autosf.search.settings import SearchSettings
from autosf.search.strategies import strategy_named
from autosf.search.verdict import SEEDS_APART, fresh_seeds, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autosf.algebra.structure import Structure
    from autosf.search.record import Record, Round, Strategy

RECORDS = Path(__file__).parents[1] / "docs" / "results" / "records" / "search.jsonl"
TRIALS = {"free": 96}  # distinct structures, most of them trained briefly
PAPER_TRIALS = 133  # the five f^4, then 8 rounds of 8 for each of b = 6 and b = 8
SHARES = (0.1, 0.2, 0.5, 1.0)  # of the epochs of PAPER_TRIALS full trainings
ROUNDS, BLOCKS = 8, {"random": 6, "tpe": 6}


def settings_of(strategy: str, epochs: int, grain: int, seed: int) -> SearchSettings:
    """The same budget of full trainings for all but `free`, which ends by itself."""
    return SearchSettings(
        strategy=strategy,
        epochs=epochs,
        seed=seed,
        trials=TRIALS.get(strategy, PAPER_TRIALS),
        blocks=BLOCKS.get(strategy, 8),
        rounds=ROUNDS,
        grain=grain,
    )


def with_finals(strategy: Strategy, settings: SearchSettings) -> Strategy:
    """The strategy, then fresh seeds for what it would have named at each of SHARES, and for what it names."""
    rounds: list[Sequence[Record]] = []
    try:
        trials = next(strategy)
        while True:
            answers = yield trials
            rounds.append(answers)
            trials = strategy.send(answers)
    except StopIteration as end:
        structures = {named_after(rounds, share, settings): None for share in SHARES}
        yield [
            Trial(structure, settings.epochs, seed)
            for structure in structures
            for seed in fresh_seeds(settings)
        ]
        return end.value


def named_after(rounds: Sequence[Sequence[Record]], share: float, settings: SearchSettings) -> Structure:
    """What a search would name after a share of the epochs of PAPER_TRIALS trainings: the first round at least.

    `free` names the leader of its posterior, or the winner of its finals; the others the best single figure.
    """
    fresh = set(fresh_seeds(settings))
    past: list[Record] = []
    for records in rounds:
        more = [record for record in records if record.trial.seed not in fresh]
        if past and trained_epochs([*past, *more])[-1] > share * PAPER_TRIALS * settings.epochs:
            break
        past += more
    if settings.strategy != "free":
        return max(past, key=lambda record: record.valid_mrr).trial.structure
    finals = verdict(rounds[-1], settings)
    ended = sum(len(records) for records in rounds[:-1]) == len(past)
    return finals.winner.structure if finals and ended else seen(past, settings).leader


def curve(records: Sequence[Record], settings: SearchSettings) -> list[tuple[int, float]]:
    """(epochs trained so far, best validation MRR of a full training), before the finals."""
    return [(spent, round(best, 5)) for spent, best in search_curve(records, settings)]


def fresh_values(records: Sequence[Record], structure: Structure, settings: SearchSettings) -> list[float]:
    """The structure's validation MRR with each fresh seed."""
    seeds = fresh_seeds(settings)
    found = {
        r.trial.seed: r.valid_mrr for r in records if r.trial.structure == structure and r.trial.seed in seeds
    }
    return [found[seed] for seed in seeds]


def named(strategy: Strategy, settings: SearchSettings, records: Sequence[Record]) -> dict[str, Any]:
    """What the search would have named at each share, with its mean over fresh seeds; and its verdict."""
    rounds: list[Sequence[Record]] = []
    known = {(r.trial.structure, r.trial.epochs, r.trial.seed): r for r in records}

    def again(trials: Round) -> list[Record]:
        rounds.append([known[trial.structure, trial.epochs, trial.seed] for trial in trials])
        return list(rounds[-1])

    search(strategy, again)
    structures = [named_after(rounds, share, settings) for share in SHARES]
    values = fresh_values(records, structures[-1], settings)
    finals = verdict(rounds[-1], settings)
    return {
        "structure": structures[-1].rows,
        "fresh_mrr": round(fmean(values), 5),
        "fresh_spread": round(stdev(values), 5),
        "named": [
            (share, structure.rows, round(fmean(fresh_values(records, structure, settings)), 5))
            for share, structure in zip(SHARES, structures, strict=True)
        ],
        **({"beats_human": finals.beats_human, "beats_runner_up": finals.beats_runner_up} if finals else {}),
    }


def searched(
    graph_name: str, strategy: str, seed: int, folder: Path, hide_test: bool, changes: dict[str, Any]
) -> dict[str, Any]:
    """Run one search, or go on with it, and tell what came of it."""
    graph = graph_of(graph_name)
    training = preset(graph.name).changed({**changes, "patience": 0})
    settings = settings_of(strategy, training.epochs, training.validate_every, seed)
    plan = Plan(training, asdict(settings), seed=seed, source=graph_name, hide_test=hide_test)
    run: Run = open_run(folder) if folder.exists() else create_run(folder, graph, plan)
    service = Service(Crew(1), keep=strategy == "free")
    started = time.perf_counter()
    records, ending = serve(
        run,
        with_finals(strategy_named(strategy, settings), settings),
        service,
        Outer(time.monotonic, time.time),
    )
    return {
        "graph": graph_name,
        "strategy": strategy,
        "seed": seed,
        "hide_test": hide_test,
        "ending": ending,
        "curve": curve(records, settings),
        **named(strategy_named(strategy, settings), settings, records),
        "trainings": len(records),
        "seconds": round(time.perf_counter() - started, 1),
        "settings": training.as_dict(),
        "search": asdict(settings),
        "date": str(datetime.date.today()),
    }


def approximated(graph_name: str, seed: int, hide_test: bool, changes: dict[str, Any]) -> dict[str, Any]:
    """Gen-Approx in a search's place: one flexible function in the epochs of as many seeds as a verdict has."""
    whole = graph_of(graph_name)
    graph = whole if hide_test else without_test(whole)
    known = known_answers(graph)
    training = fitting(preset(graph.name).changed({**changes, "patience": 0}))
    points, values, started = [], [], time.perf_counter()
    for number in range(3):
        trained = train_gen_approx(
            graph,
            training,
            seed=seed * SEEDS_APART + number,
            clock=time.perf_counter,
            validate=lambda model: summarise(rank(model, graph.valid, known)).mrr,
        )
        best = trained.state.best
        values.append(best.valid_mrr if best and best.valid_mrr else 0.0)
        points.append(((number + 1) * training.epochs, round(max(values), 5)))
    fresh = round(fmean(values), 5)
    return {
        "graph": graph_name,
        "strategy": "gen-approx",
        "seed": seed,
        "hide_test": hide_test,
        "ending": "three seeds are trained",
        "curve": points,
        "structure": None,
        "fresh_mrr": fresh,
        "fresh_spread": round(stdev(values), 5),
        "named": [[share, None, fresh] for share in SHARES],  # one function, whatever the share
        "trainings": 3,
        "seconds": round(time.perf_counter() - started, 1),
        "settings": training.as_dict(),
        "search": {},
        "date": str(datetime.date.today()),
    }


def past() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


@click.command()
@click.argument("graph")
@click.option("--strategies", default="free,paper,greedy,random,tpe,gen-approx")
@click.option("--seeds", default="0,1,2,3,4")
@click.option("--runs", type=click.Path(path_type=Path), required=True, help="Folder for the run folders.")
@click.option("--hide-test", is_flag=True)
@click.option("--set", "pairs", multiple=True)
def main(
    graph: str, strategies: str, seeds: str, runs: Path, hide_test: bool, pairs: tuple[str, ...]
) -> None:
    changes = dict(parsed_pair(pair) for pair in pairs)
    for seed in map(int, seeds.split(",")):
        for strategy in strategies.split(","):
            wanted = (graph, strategy, seed, hide_test)
            if wanted in [(r["graph"], r["strategy"], r["seed"], r["hide_test"]) for r in past()]:
                continue
            name = "-".join([graph, strategy, str(seed), *(["hidden"] if hide_test else [])])
            if strategy == "gen-approx":
                record = approximated(graph, seed, hide_test, changes)
            else:
                record = searched(graph, strategy, seed, runs / name, hide_test, changes)
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            click.echo(f"{name}: {record['curve'][-1]} fresh {record['fresh_mrr']} in {record['seconds']} s")


if __name__ == "__main__":
    main()
