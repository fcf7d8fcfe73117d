"""Searches replayed on AutoSF-Bench: seconds instead of hours, so that every strategy has a hundred seeds.

    python -m benchmarks.tabular replay UMLS --strategies free,paper --seeds 100
    python -m benchmarks.tabular quality UMLS

A replayed training looks its curve up in the table; which of the table's seeds it sees is drawn anew for every
search seed. A structure's true value is its mean over all seeds of the table. Regret is how far the structure
that a search would name lies below the best one of the table. Lines go to docs/results/records/tabular.jsonl.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from scipy.stats import spearmanr

from autosf.algebra.features import ENCODERS
from autosf.algebra.invariance import canonical
from autosf.algebra.space import five_f4
from autosf.algebra.structure import from_json
from autosf.runs.history import trained_epochs
from autosf.search.baselines import structure_at
from autosf.search.fidelity import seed_variance
from autosf.search.free import seen
from autosf.search.predictor import HIDDEN, fit_predictor
from autosf.search.record import Record, Trial
from autosf.search.settings import SearchSettings
from autosf.search.strategies import STRATEGIES
from autosf.search.surrogate import Estimate, fit_surrogate
from benchmarks.table import RECORDS, read

if TYPE_CHECKING:
    from collections.abc import Sequence

    import optuna

    from autosf.algebra.structure import Structure
    from autosf.search.record import Round

LINES = RECORDS / "tabular.jsonl"
ROUNDS = 32  # of Alg. 2 for b = 6, as in the paper
TRAININGS = 5 + ROUNDS * 8
SHARES = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)  # of TRAININGS full trainings' epochs
NARROWER = (16, 32)  # dimensions of tables NAME-dN beside the one of NAME
LABELS = 24  # that a predictor learns from, where predictors are compared
FIVE = five_f4()
BOUND = {"free", "random", "tpe"}  # the others stay within f^4 and f^6 that Alg. 2 reaches by themselves


@dataclass(frozen=True, slots=True)
class Table:
    """Validation MRR after each epoch of every training; structures are canonical under the extended group."""

    graph: str
    epochs: int
    curves: dict[Structure, tuple[tuple[float, ...], ...]]  # one curve a seed

    def truth(self, structure: Structure) -> float:
        """The mean over seeds of the best validation."""
        return float(np.mean([max(curve) for curve in self.curves[structure]]))

    def record(self, trial: Trial, search_seed: int) -> Record:
        """What the training would have come to."""
        form = form_of(trial.structure)
        curves = self.curves[form]
        curve = Random(f"{search_seed} {form} {trial.seed}").choice(curves)[: trial.epochs]
        return Record(trial, max(curve), len(curve), tuple(enumerate(curve, 1)))


@cache
def form_of(structure: Structure) -> Structure:
    return canonical(structure, "extended")


def read_table(graph: str) -> Table:
    """The table of a graph; a seed that not all structures have yet is left out."""
    grouped = read(graph).sort("seed").group_by("structure", maintain_order=True).agg("curve")
    seeds = min(map(len, grouped["curve"]), default=0)
    curves = {
        from_json(structure): tuple(map(tuple, curves[:seeds])) for structure, curves in grouped.iter_rows()
    }
    return Table(graph, max((len(of_one[0]) for of_one in curves.values()), default=0), curves)


def replayed(table: Table, strategy: str, seed: int, **changes: int) -> dict[str, Any]:
    """One search on the table: its regret at each share of the paper's epochs."""
    usual = SearchSettings(
        strategy=strategy, epochs=table.epochs, seed=seed, rounds=ROUNDS, trials=TRAININGS, candidates=128,
        grain=max(1, table.epochs // 8),
    )  # fmt: skip
    settings = replace(usual, **changes)
    bound: dict[str, Any] = {"within": table.curves.__contains__} if strategy in BOUND else {}
    if strategy == "tpe":
        bound["at"] = grown_at
    search, past = STRATEGIES[strategy](settings, **bound), []
    named: list[tuple[int, float]] = []  # (epochs so far, true value of what would be named)

    def answered(trials: Round) -> list[Record]:
        return [table.record(trial, seed) for trial in trials]

    ended, trials = "", next(search)
    while not ended:
        answers = answered(trials)
        past += answers
        spent = trained_epochs(past)[-1]
        named.append((spent, table.truth(form_of(leader(past, settings)))))
        try:
            trials = search.send(answers)
        except StopIteration as end:
            ended = end.value
    best = max(map(table.truth, table.curves))
    whole = TRAININGS * table.epochs
    regrets = [
        best - next((v for spent, v in reversed(named) if spent <= s * whole), named[0][1]) for s in SHARES
    ]
    return {"regret": [round(r, 5) for r in regrets], "epochs": named[-1][0], "ending": ended}


def grown_at(point: optuna.Trial, blocks: int) -> Structure:
    """A point of TPE as one of the five f^4 and what is added: in the table, where few of all matrices are."""
    return structure_at(point, blocks, FIVE[point.suggest_categorical("f4", range(len(FIVE)))])


def leader(past: Sequence[Record], settings: SearchSettings) -> Structure:
    """What a search would name: `free` by its posterior, the others by the best single figure."""
    if settings.strategy == "free":
        return seen(past, settings).leader
    return max(past, key=lambda record: record.valid_mrr).trial.structure


def predictors(table: Table, seed: int) -> dict[str, float]:
    """Rank correlation with the truth of what each predictor says of the rest, from a few labels."""
    rng = Random(seed)
    structures = sorted(table.curves)
    chosen = rng.sample(structures, LABELS)
    rest = [structure for structure in structures if structure not in set(chosen)]
    truth = [table.truth(structure) for structure in rest]
    past = [table.record(Trial(structure, table.epochs, 0), seed) for structure in chosen]
    noise = seed_variance(past, table.epochs)
    labels = {record.trial.structure: Estimate(record.valid_mrr, noise) for record in past}
    found = {"surrogate on invariants": fit_surrogate(labels).posterior(rest)[0]}
    for encoder in HIDDEN:
        found[f"paper's MLP on {encoder}"] = fit_predictor(past, ENCODERS[encoder], HIDDEN[encoder], seed)(
            rest
        )
    return {name: round(float(spearmanr(values, truth).statistic), 4) for name, values in found.items()}


def fidelities(table: Table) -> dict[str, float]:
    """Rank correlation of one training of so many epochs with the mean of the other seeds' full ones."""
    curves = [of_one for of_one in table.curves.values() if len(of_one) > 1]
    if not curves:
        return {}
    found = {}
    for share in (1 / 8, 1 / 4, 1 / 2, 1):
        epochs = max(1, round(share * table.epochs))
        values = []
        for seed in range(len(curves[0])):
            one = [max(of_one[seed][:epochs]) for of_one in curves]
            others = [np.mean([max(c) for n, c in enumerate(of_one) if n != seed]) for of_one in curves]
            values.append(spearmanr(one, others).statistic)
        found[f"{epochs} epochs"] = round(float(np.mean(values)), 4)
    return found | smaller_dimensions(table)


def smaller_dimensions(table: Table) -> dict[str, float]:
    """The same of full trainings with narrower embeddings, where tables of a sample of structures have them."""
    found = {}
    for dimension in NARROWER:
        narrow = read_table(f"{table.graph}-d{dimension}")
        if narrow.curves:
            one = [max(of_one[0]) for of_one in narrow.curves.values()]
            others = [np.mean([max(c) for c in table.curves[structure][1:]]) for structure in narrow.curves]
            found[f"d = {dimension}"] = round(float(spearmanr(one, others).statistic), 4)
    return found


def spreads(table: Table) -> dict[str, float]:
    """Standard deviation of the true values, and of one structure's trainings around theirs."""
    values = [table.truth(structure) for structure in table.curves]
    bests = [[max(curve) for curve in of_one] for of_one in table.curves.values() if len(of_one) > 1]
    noise = float(np.mean([np.var(of_one, ddof=1) for of_one in bests]) ** 0.5) if bests else 0.0
    return {"structures": round(float(np.std(values)), 5), "seeds": round(noise, 5)}


def append(line: dict[str, Any]) -> None:
    with LINES.open("a") as file:
        file.write(json.dumps({**line, "date": str(datetime.date.today())}) + "\n")


def past_lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LINES.read_text().splitlines()] if LINES.exists() else []


@click.group()
def main() -> None:
    pass


@main.command()
@click.argument("graph")
@click.option("--strategies", default=",".join(STRATEGIES))
@click.option("--seeds", default=100, show_default=True)
@click.option("--set", "pairs", multiple=True, help="A setting of the search, as chosen=4; repeatable.")
def replay(graph: str, strategies: str, seeds: int, pairs: tuple[str, ...]) -> None:
    table = read_table(graph)
    changes = {name: int(value) for name, _, value in (pair.partition("=") for pair in pairs)}
    for strategy in strategies.split(","):
        runs = [replayed(table, strategy, seed, **changes) for seed in range(seeds)]
        medians = np.median([run["regret"] for run in runs], 0).round(5).tolist()
        line = {
            "kind": "replay",
            "graph": graph,
            "strategy": ", ".join([strategy, *pairs]),
            "seeds": seeds,
            "table_seeds": min(map(len, table.curves.values())),
            "structures": len(table.curves),
            "shares": SHARES,
            "median_regret": medians,
            "median_epochs": float(np.median([run["epochs"] for run in runs])),
        }
        append(line)
        click.echo(f"{graph} {line['strategy']}: {medians} after {line['median_epochs']:.0f} epochs")


@main.command()
@click.argument("graph")
@click.option("--seeds", default=100, show_default=True)
def quality(graph: str, seeds: int) -> None:
    table = read_table(graph)
    runs = [predictors(table, seed) for seed in range(seeds)]
    line = {
        "kind": "quality",
        "graph": graph,
        "structures": len(table.curves),
        "labels": LABELS,
        "predictors": {name: round(float(np.median([run[name] for run in runs])), 4) for name in runs[0]},
        "fidelities": fidelities(table),
        "spread": spreads(table),
    }
    append(line)
    click.echo(json.dumps(line))


if __name__ == "__main__":
    main()
