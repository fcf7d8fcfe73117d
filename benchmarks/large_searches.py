"""Searches whose outcome is worth a record, on large graphs and on small ones, each a run of `autosf search`.

    autosf search WN18RR --sample 12000 --trials 48 --out RUN
    python -m benchmarks.large_searches RUN

Lines go to docs/results/records/large_searches.jsonl; that of a run which is there already takes its place.
"""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app.predicting import load
from autosf.app.run_results import called, outcome_of, search_settings, zoo_names
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.runs.history import trained_epochs
from autosf.runs.run import facts_of, open_run
from autosf.runs.shared_graph import entity_count
from autosf.search.verdict import verdict
from benchmarks.stored import RESULTS, records

if TYPE_CHECKING:
    from autosf.runs.run import Run

RECORDS = RESULTS / "records" / "large_searches.jsonl"


def recorded(folder: Path) -> dict[str, Any]:
    """What the search came to; the test split is read here for the first time, with the winner's model."""
    run, model = open_run(folder), load(folder)
    outcome = outcome_of(run)
    decided = verdict(outcome.records, search_settings(run))
    if decided is None or outcome.state != "ended":
        raise click.UsageError(f"{folder}: not a finished search of `free`")
    new = [row for row in outcome.standings if not zoo_names(row.structure)]
    test = summarise(rank(model.trained.model, model.graph.test, model.known_answers()))
    return {
        "graph": facts_of(folder)["graph"]["name"],
        "command": re.sub(r" --out \S+| --json", "", run.plan.command),
        "sample": run.plan.search.get("sample"),
        "draw": seen_by_steps(run),
        "structures": len(outcome.standings),
        "trials": len(outcome.records),
        "epochs": trained_epochs(outcome.records)[-1],
        "cpu_seconds": round(sum(record.seconds for record in outcome.records)),
        "ending": outcome.ending,
        "winner": finalist(decided.winner),
        "beats_runner_up": round(decided.beats_runner_up, 3),
        "human": finalist(decided.human) if decided.human else None,
        "beats_human": decided.beats_human if decided.beats_human is None else round(decided.beats_human, 3),
        "best_new": {
            "structure": str(new[0].structure),
            "valid_mrr": round(new[0].valid_mrr, 5),
            "seeds": new[0].seeds,
        },
        "new": len(new),
        "playoff": [(called(one.structure), one.valid_mrr) for one in outcome.playoff],
        "test_mrr": round(test.mrr, 5),
        "date": str(datetime.date.today()),
    }


def seen_by_steps(run: Run) -> dict[str, Any] | None:
    """The entities that a step of a trial drew, whether its winner's training does so or not; None for all."""
    used = run.plan.settings
    drew = {"entities": used.negatives, "of": entity_count(run.graph_folder)}
    return drew if used.loss == "sampled-softmax" else None


def finalist(one: Any) -> dict[str, Any]:
    return {
        "structure": next(iter(zoo_names(one.structure)), str(one.structure)),
        "valid_mrr": round(one.valid_mrr, 5),
        "spread": None if one.spread is None else round(one.spread, 5),
        "seeds": len(one.values),
    }


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path))
def main(folder: Path) -> None:
    line = recorded(folder)
    others = [past for past in records("large_searches") if past["command"] != line["command"]]
    RECORDS.write_text("".join(json.dumps(past) + "\n" for past in [*others, line]), encoding="utf-8")
    print(json.dumps(line))


if __name__ == "__main__":
    main()
