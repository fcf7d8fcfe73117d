"""The best human-designed structure that a run has tried, trained as the winner was and kept to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from autosf.algebra.invariance import canonical
from autosf.algebra.zoo import HUMAN_DESIGNED_FOUR, named
from autosf.app.final_model import human_folder, model_job, train_in_run
from autosf.app.report.portrait import title_of
from autosf.app.search_sample import times_a_trial
from autosf.app.searching import graph_again
from autosf.runs.history import added_epochs
from autosf.runs.labels import labelled_graph
from autosf.search.verdict import is_human_designed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from autosf.algebra.structure import Structure
    from autosf.app.run_results import Outcome
    from autosf.embedding.state import State
    from autosf.runs.run import Run
    from autosf.search.record import Record

CHEAP = 60.0  # seconds: a shorter training is not asked about
UNTRIED = "complex"  # stands for what people designed where a search has tried none of it


@dataclass(frozen=True, slots=True)
class Opponent:
    """Which human-designed structure the winner meets, where its model is kept, and what training it takes."""

    structure: Structure
    title: str
    role: str  # why this one, in words that follow its title
    folder: Path
    seconds: float | None  # estimated


def opponent_of(run: Run, outcome: Outcome) -> Opponent:
    """The best of those tried, QuatE too, but for the winner itself: by play-off, finals, or the leaderboard."""
    structure = best_human(outcome)
    return Opponent(
        structure=structure,
        title=title_of(structure),
        role=role_of(structure, outcome),
        folder=human_folder(run),
        seconds=training_seconds(run, outcome.records),
    )


def best_human(outcome: Outcome) -> Structure:
    """Its canonical form, which is what a search trains."""
    best = outcome.best
    assert best is not None, "a search without any success has no winner to compare with"
    own = canonical(best.structure, "extended")
    finals = [best.verdict.human.structure] if best.verdict and best.verdict.human else []
    played = [one.structure for one in outcome.playoff if is_human_designed(one.structure)]
    tried = [row.structure for row in outcome.standings if is_human_designed(row.structure)]
    untried = [named(name).structure for name in (UNTRIED, *HUMAN_DESIGNED_FOUR)]
    forms = (canonical(structure, "extended") for structure in (*played, *finals, *tried, *untried))
    return next(form for form in forms if form != own)


def role_of(structure: Structure, outcome: Outcome) -> str:
    """What the opponent is to the search: the best of several only if it has tried some."""
    assert outcome.best is not None
    people_won = is_human_designed(outcome.best.structure)
    if any(row.structure == structure for row in outcome.standings):
        return "the best human-designed structure" + (" but for the winner itself" if people_won else "")
    tried = "nothing else" if people_won else "none"
    return f"which stands for what people designed (this search tried {tried} of it)"


def training_seconds(run: Run, records: Sequence[Record]) -> float | None:
    """What a training as the winner's should take, by the trials' seconds for an epoch."""
    spent = [
        record.seconds / cost
        for record, cost in zip(records, added_epochs(records), strict=True)
        if cost and not record.failed
    ]
    if not spent:
        return None
    return median(spent) * run.plan.settings.epochs * times_a_trial(run)


def train_opponent(
    run: Run, opponent: Opponent, device: str, say: Callable[[str], None], report: Callable[[State], None]
) -> None:
    """Train it in the run's folder, where the next report finds it."""
    facts = {"opponent": opponent.role}
    outside = run.plan.hide_test or run.plan.search.get("sample")  # the run does not hold all that it needs
    graph = graph_again(run, say) if outside else labelled_graph(run.graph_folder, run.labels)
    job = model_job(run, graph, opponent.structure, opponent.folder, device, facts)
    train_in_run(run, job, report)
