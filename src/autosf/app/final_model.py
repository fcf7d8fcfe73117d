"""The last step of a search: its winner's model. Where trials saw a sample, or draws, the best are first trained
in full and play off.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from autosf.algebra.structure import from_rows
from autosf.app.live_file import LiveFile, both
from autosf.app.run_results import best_as_json, called, final_dimension, outcome_of
from autosf.app.search_sample import final_settings
from autosf.app.training import Diverged, Job, run_training, threads_for
from autosf.embedding.checkpoints import load_checkpoint
from autosf.embedding.model_folder import is_model_folder, load_model, manifest_of
from autosf.errors import UserError, shown
from autosf.runs.ledger import held
from autosf.runs.playoff import (
    Played,
    contestant_folder,
    figures_as_text,
    kept_figures,
    playoff_file,
    playoff_folder,
    to_play,
)
from autosf.search.verdict import is_human_designed
from autosf.whole import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from autosf.algebra.structure import Structure
    from autosf.app.run_results import Best, Outcome
    from autosf.embedding.model import Model
    from autosf.embedding.state import State
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.runs.run import Run


def final_model(
    run: Run,
    graph: KnowledgeGraph,
    device: str,
    report: Callable[[State], None] = lambda _: None,
    *,
    contestant: Callable[[int], Callable[[State], None]] = lambda _: lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Train the winner, if it is not the run's model already, and save it in the run; no test triple is used.

    Where trials saw a sample, or drawn entities, the first ones are trained in full, as far as the budget goes;
    `contestant` gives ears for the epochs of each. The best then has won.
    """
    outcome = outcome_of(run)
    if not outcome.is_played_off and (is_of_all(run) or graph.digest == run.whole_graph):
        play_off(run, outcome, graph, device, contestant, say)
        outcome = outcome_of(run)
    if outcome.playoff:
        keep_champion(run, outcome.playoff)
    best = outcome.best
    if best is None and not outcome.records:
        raise UserError(
            f"{shown(run.folder)}: no trial was finished in time; `autosf resume` with a larger --budget goes on"
        )
    if best is None:
        raise UserError(f"{shown(run.folder)}: no trial succeeded; see its logs, or try other settings")
    facts = facts_of_winner(run, best)
    train_in_run(run, model_job(run, graph, best.structure, run.model, device, facts), report)


def facts_of_winner(run: Run, best: Best) -> dict[str, Any]:
    """What a model's file says of the search it comes from."""
    search = {"strategy": run.plan.search["strategy"], "sample": run.plan.search.get("sample")}
    return {"search": {**search, "best": best_as_json(best)}}


def play_off(
    run: Run,
    outcome: Outcome,
    graph: KnowledgeGraph,
    device: str,
    contestant: Callable[[int], Callable[[State], None]],
    say: Callable[[str], None],
) -> None:
    """Give every contestant its figure when trained in full, and further ones to those who may be the best.

    By training them, unless the time is used up.
    """
    kept = kept_figures(run).values()
    figures = {one.structure: one for one in kept if one.valid_mrr is not None}  # others may have time now
    whole = run.plan.search["budget"]
    meeting = {one.structure: (number, one) for number, one in enumerate(outcome.contestants, 1)}
    while turns := to_play(figures, list(meeting), outcome.rules):
        number, one = meeting[turns[0]]
        before = figures.get(one.structure, Played(one.structure))
        spent = [figures[other] for other in meeting if other in figures]
        if whole is not None and spent and outcome.seconds + expected_seconds(spent) > whole:
            figures[one.structure] = replace(before, is_cut=True)
            seed = "another seed of " if before.values else ""
            say(f"play-off: no time is left for {seed}{called(one.structure)}")
        else:
            place = f"{number} of {len(meeting)}"
            seed = f", seed {len(before.values) + 1}" if before.values else ""
            say(f"play-off, trained in full: {called(one.structure)} ({place}{seed})")
            facts = facts_of_winner(run, one)
            job = contestant_job(run, graph, one.structure, len(before.values), device, facts)
            figures[one.structure] = played(run, before, job, contestant(number), say)
        write_whole(playoff_file(run), figures_as_text(figures.values()))
        if before.values:
            discard(contestant_folder(run, one.structure, len(before.values)))
    if not any(figures[one.structure].valid_mrr for one in outcome.contestants):
        raise UserError(
            f"{shown(run.folder)}: all trainings in full diverged; search once more with a lower"
            " learning_rate"
        )


def expected_seconds(spent: Sequence[Played]) -> float:
    """What has been played, and one training more, as long as the longest so far."""
    longest = max(one.seconds / max(1, len(one.values)) for one in spent)
    return sum(one.seconds for one in spent) + longest


def contestant_job(
    run: Run, graph: KnowledgeGraph, structure: Structure, seed: int, device: str, facts: Mapping[str, Any]
) -> Job:
    """A contestant's training with its first seed, 0, or a further one."""
    job = model_job(run, graph, structure, contestant_folder(run, structure, seed), device, facts)
    return replace(job, seed=job.seed + seed)


def played(
    run: Run, before: Played, job: Job, report: Callable[[State], None], say: Callable[[str], None]
) -> Played:
    """A contestant with one more figure. One that diverges has lost, and the others go on."""
    started = time.monotonic()
    try:
        train_in_run(run, job, report)
    except Diverged as error:
        say(f"  {error}")
        mrr, seconds = 0.0, time.monotonic() - started
    else:
        facts = manifest_of(job.out)
        mrr, seconds = float(facts["metrics"]["valid"]["mrr"]), float(facts["train_seconds"])
        say(f"  validation MRR {mrr:.4f}")
    return replace(before, values=(*before.values, mrr), seconds=before.seconds + seconds)


def keep_champion(run: Run, playoff: Sequence[Played]) -> None:
    """The model of who won becomes the run's, the best human-designed one's stays to compare with; others go.

    Folders are renamed before they are deleted: a kill leaves no half of one where another looks for a whole.
    """
    first, *others = (one.structure for one in playoff)
    kept = {run.model: first}
    if human := next(filter(is_human_designed, others), None):
        kept[human_folder(run)] = human
    with held(run.lock):
        for place, structure in kept.items():
            trained = contestant_folder(run, structure)
            if is_model_folder(trained):
                discard(place)
                trained.rename(place)
        discard(playoff_folder(run))


def discard(folder: Path) -> None:
    """Delete a folder, which is gone from its place at once."""
    away = folder.with_name(f".{folder.name}.discarded")
    shutil.rmtree(away, ignore_errors=True)
    if folder.exists():
        folder.rename(away)
        shutil.rmtree(away, ignore_errors=True)


def human_folder(run: Run) -> Path:
    """Where the model of a human-designed structure is, trained as the winner to compare with."""
    return run.folder / "human"


def model_job(
    run: Run, graph: KnowledgeGraph, structure: Structure, out: Path, device: str, facts: Mapping[str, Any]
) -> Job:
    """The training of a structure as a run trains its winner."""
    return Job(
        graph=graph,
        structure=structure,
        settings=final_settings(run, len(graph.entities)),
        seed=run.plan.seed,
        device=device,
        out=out,
        source=run.plan.source,
        facts=facts,
        blind=not run.plan.hide_test,
    )


def train_in_run(run: Run, job: Job, report: Callable[[State], None]) -> None:
    """Train and save a model of the run, unless it is there already; one of the sample gives way to one of all."""
    with held(run.lock), threads_for(job.graph, job.settings), LiveFile(run) as live:
        kept = kept_model(run, job.out, job.structure)
        if kept is None or len(kept.entities) < len(job.graph.entities):
            if not is_model_folder(job.out):
                discard(job.out)  # what a disk or somebody has left of one
            discard_other_checkpoint(job)
            heard = live.winner(job.structure, job.settings.epochs, job.seed)
            run_training(job, True, both(heard, report), run.plan.command)


def kept_model(run: Run, folder: Path, structure: Structure) -> Model | None:
    """The model of a structure as the run trains its winner, if the folder holds it."""
    return None if kept_entities(run, folder, structure) is None else load_model(folder).model


def kept_entities(run: Run, folder: Path, structure: Structure) -> int | None:
    """How many entities that model has, if the folder holds it, by what the folder says of itself."""
    if not is_model_folder(folder):
        return None
    kept = manifest_of(folder)
    is_meant = (from_rows(kept["structure"]), kept["dimension"]) == (structure, final_dimension(run))
    return int(kept["entities"]) if is_meant else None


def has_model_of_winner(run: Run, outcome: Outcome) -> bool:
    """Whether the run's model is that of its winner, and not of what led before the search went on.

    Where the play-off could not be, for want of the whole graph, it is one of the sample.
    """
    best = outcome.best
    entities = kept_entities(run, run.model, best.structure) if best else None
    if entities is None or playoff_folder(run).exists():
        return False
    return outcome.is_played_off or (not is_of_all(run) and entities == sampled_entities(run))


def is_of_all(run: Run) -> bool:
    """Whether the run holds all of the graph that was given, but for its test triples."""
    return not run.plan.search.get("sample")


def sampled_entities(run: Run) -> int:
    return int(run.plan.search["sample"]["entities"])


def discard_other_checkpoint(job: Job) -> None:
    """A checkpoint of an earlier winner is in the way of the present one."""
    if job.checkpoint.exists():
        try:
            load_checkpoint(job.checkpoint, job.who)
        except UserError:
            job.checkpoint.unlink()
