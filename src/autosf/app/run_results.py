"""What a run has come to, from its ledger alone: while it runs, after a kill, and at its end alike."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.algebra.invariance import canonical
from autosf.algebra.notebook import beside, facts, grid
from autosf.algebra.structure import PARTS, Structure, from_rows
from autosf.algebra.zoo import ZOO, structure_from
from autosf.app.drawing import formula
from autosf.embedding.model_folder import is_model_folder, structure_of
from autosf.errors import UserError, shown
from autosf.runs.leaderboard import leaderboard
from autosf.runs.ledger import is_held, opened_ledger
from autosf.runs.playoff import Rules, kept_playoff, pooled_spread
from autosf.runs.run import facts_of, open_run
from autosf.search.settings import SearchSettings
from autosf.search.verdict import is_human_designed, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autosf.runs.leaderboard import Standing
    from autosf.runs.playoff import Played
    from autosf.runs.run import Run
    from autosf.search.record import Record
    from autosf.search.verdict import Finalist, Verdict

BESIDE_THE_STRATEGY = (
    "budget",
    "final_dimension",
    "tuning",
    "sample",
    "draw",
    "playoff",
    "playoff_seeds",
)  # what a plan's search holds besides its settings


@dataclass(frozen=True, slots=True)
class Best:
    """The best structure: mean and standard deviation over seeds, with a verdict where finals decided."""

    structure: Structure
    valid_mrr: float
    spread: float | None
    seeds: int
    verdict: Verdict | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return zoo_names(self.structure)

    def _repr_html_(self) -> str:
        spread = "" if self.spread is None else f" ± {self.spread:.4f}"
        shown = [("validation MRR", f"{self.valid_mrr:.4f}{spread}"), ("seeds", self.seeds)]
        return beside(grid(self.structure), facts(", ".join(self.names) or "the best found", shown))


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that a ledger tells of a run; `state` is running, stopped or ended."""

    records: tuple[Record, ...]
    standings: tuple[Standing, ...]
    best: Best | None
    state: str
    ending: str | None  # why, of one that has ended
    seconds: float  # of all sessions, with the tuning before them
    contestants: tuple[Best, ...] = ()  # who are trained in full, where trials were not
    playoff: tuple[Played, ...] = ()  # how they came out there, best first
    rules: Rules = field(default_factory=Rules)

    @property
    def decided_by(self) -> str | None:
        """What named the winner of an ended search: the finals, the play-off, or what all trainings say together,
        which for other strategies than `free` is the best figure."""
        if self.state != "ended" or self.best is None:
            return None
        if any(one.valid_mrr for one in self.playoff):
            return "playoff"
        return "finals" if self.best.verdict else "trainings"

    @property
    def is_played_off(self) -> bool:
        """Whether nothing but the winner's training can be missing."""
        return bool(self.playoff) or not self.contestants


def outcome_of(run: Run) -> Outcome:
    """The outcome so far. Finals that are under way decide nothing yet."""
    with opened_ledger(run.ledger, time.time) as ledger:
        records, events, seconds = ledger.records(), ledger.events(), ledger.seconds_spent()
    turns = [event for event in events if event.what in ("began", "ended", "stopped")]
    has_ended = bool(turns) and turns[-1].what == "ended"
    running = not has_ended and is_held(run.lock)
    settings = search_settings(run)
    decided = verdict(records, settings) if has_ended and settings.strategy == "free" else None
    standings = tuple(leaderboard(records))
    ranking = ranked(standings, decided)
    if has_ended and settings.strategy == "free" and decided is None:
        ranking = by_posterior(ranking, records, settings)
    meeting = contestants(ranking, playoff_size(run)) if has_ended else ()
    rules = Rules(playoff_seeds(run), seeds_spread(meeting))
    played = kept_playoff(run, [one.structure for one in meeting], rules)
    leads = played[0].structure if played and played[0].valid_mrr else None
    return Outcome(
        records=tuple(records),
        standings=standings,
        best=next((one for one in ranking if leads in (None, one.structure)), None),
        state="ended" if has_ended else "running" if running else "stopped",
        ending=turns[-1].detail if has_ended else None,
        seconds=seconds + tuning_seconds(run),
        contestants=tuple(meeting),
        playoff=played,
        rules=rules,
    )


def ranked(standings: tuple[Standing, ...], decided: Verdict | None) -> list[Best]:
    """The finalists by what the finals say, or else all structures as on the leaderboard; best first."""
    if decided is None:
        return [Best(row.structure, row.valid_mrr, row.spread, row.seeds) for row in standings]
    first, *others = (
        Best(one.structure, one.valid_mrr, one.spread, len(one.values)) for one in decided.finalists
    )
    return [replace(first, verdict=decided), *others]


def by_posterior(ranking: list[Best], records: Sequence[Record], settings: SearchSettings) -> list[Best]:
    """Structures trained to the full first, in the order in which the search has gone on from them: where there
    were no finals, the highest figure of all is that of a lucky seed."""
    from autosf.search.free import seen

    if not any(record.trial.epochs == settings.epochs and not record.failed for record in records):
        return ranking
    order = [canonical(structure, "extended") for structure in seen(records, settings).ranking]
    places = {structure: place for place, structure in reversed(list(enumerate(order)))}
    return sorted(ranking, key=lambda one: places.get(one.structure, len(order)))


def contestants(ranking: list[Best], count: int) -> list[Best]:
    """Who are trained in full: the first ones, the best human-designed one among them; nobody alone."""
    first = ranking[:count]
    human = next((one for one in ranking if is_human_designed(one.structure)), None)
    if human and human not in first:
        first[-1:] = [human]
    return first if count > 1 and len(first) > 1 else []


def seeds_spread(finalists: Sequence[Best]) -> float:
    """What a seed does to an MRR, pooled over finalists that have several; 0 where none has."""
    return pooled_spread([(one.spread, one.seeds - 1) for one in finalists if one.spread is not None])


def final_dimension(run: Run) -> int:
    """The dimension of the winner's model."""
    return int(run.plan.search["final_dimension"] or run.plan.settings.dimension)


def playoff_size(run: Run) -> int:
    """How many structures are to be trained in full; one where trials were."""
    less = run.plan.search.get("sample") or run.plan.search.get("draw")
    return int(run.plan.search.get("playoff", 1)) if less else 1


def playoff_seeds(run: Run) -> int:
    """With how many seeds each of them may be trained there; runs begun before there were several have one."""
    return int(run.plan.search.get("playoff_seeds", 1))


def search_settings(run: Run) -> SearchSettings:
    """The strategy's settings of a run."""
    chosen = {name: value for name, value in run.plan.search.items() if name not in BESIDE_THE_STRATEGY}
    return SearchSettings(**chosen)


def tuning_seconds(run: Run) -> float:
    """How long the tuning before the search took."""
    tuning = run.plan.search.get("tuning")
    return float(tuning["seconds"]) if tuning else 0.0


def result_of(run: Run, outcome: Outcome | None = None) -> dict[str, Any]:
    """The outcome under the names that programs rely on."""
    found = outcome or outcome_of(run)
    return {
        "best": best_as_json(found.best) if found.best else None,
        "leaderboard": [standing_as_json(row) for row in found.standings],
        "trials": len(found.records),
        "failed": sum(record.failed for record in found.records),
        "seconds": found.seconds,
        "state": found.state,
        "ending": found.ending,
        "decided_by": found.decided_by,
        "run": near(run.folder),
        "model": near(run.model) if is_model_folder(run.model) else None,
        "strategy": run.plan.search["strategy"],
        "hide_test": run.plan.hide_test,
        "settings": run.plan.settings.as_dict(),
        "tuning": run.plan.search.get("tuning"),
        "sample": run.plan.search.get("sample"),
        "draw": run.plan.search.get("draw"),
        "playoff": playoff_as_json(found),
    }


def playoff_as_json(outcome: Outcome) -> list[dict[str, Any]] | None:
    """How the play-off came out, best first; None where there was none, or not yet."""
    rows = [
        {
            "structure": one.structure.rows,
            "names": zoo_names(one.structure),
            "valid_mrr": one.valid_mrr,
            "spread": one.spread,
            "seeds": len(one.values),
        }
        for one in outcome.playoff
    ]
    return rows or None


def best_as_json(best: Best) -> dict[str, Any]:
    decided = best.verdict
    return {
        "structure": best.structure.rows,
        "names": best.names,
        "formula": formula(best.structure),
        "blocks": best.structure.blocks,
        "valid_mrr": best.valid_mrr,
        "spread": best.spread,
        "seeds": best.seeds,
        "runner_up": finalist_as_json(decided.runner_up) if decided else None,
        "beats_runner_up": decided.beats_runner_up if decided else None,
        "human": finalist_as_json(decided.human) if decided else None,
        "beats_human": decided.beats_human if decided else None,
    }


def finalist_as_json(finalist: Finalist | None) -> dict[str, Any] | None:
    if finalist is None:
        return None
    return {
        "structure": finalist.structure.rows,
        "names": zoo_names(finalist.structure),
        "valid_mrr": finalist.valid_mrr,
        "spread": finalist.spread,
        "seeds": len(finalist.values),
    }


def standing_as_json(standing: Standing) -> dict[str, Any]:
    return {
        "structure": standing.structure.rows,
        "valid_mrr": standing.valid_mrr,
        "spread": standing.spread,
        "seeds": standing.seeds,
        "epochs": standing.epochs,
        "trial_epochs": standing.trial_epochs,
        "blocks": standing.structure.blocks,
        "names": zoo_names(standing.structure),
    }


def zoo_names(structure: Structure) -> tuple[str, ...]:
    """The zoo's names of the structure's class; none for most, and for none of another size than the zoo's."""
    if structure.parts != PARTS:
        return ()
    return zoo_forms().get(canonical(structure, "extended"), ())


@cache
def zoo_forms() -> dict[Structure, tuple[str, ...]]:
    forms: dict[Structure, tuple[str, ...]] = {}
    for known in ZOO:
        form = canonical(known.structure, "extended")
        forms[form] = (*forms.get(form, ()), *known.names)
    return forms


def called(structure: Structure) -> str:
    """What to call a structure in a line: its name in the zoo, or its rows."""
    names = zoo_names(structure)
    return names[0] if names else str(structure)


def near(path: Path) -> str:
    """A path as short as it can be typed here."""
    here = Path(os.path.relpath(path))
    return str(path) if here.parts[:1] == ("..",) else str(here)


def is_run(path: Path | str) -> bool:
    """Whether a path is a folder that says it holds a run."""
    try:
        return (Path(path) / "run.json").is_file()
    except OSError:  # a name too long to be one
        return False


def model_of_run(folder: Path) -> Path:
    """The model folder of a run whose search has ended and whose winner is trained."""
    facts_of(folder)
    if not is_model_folder(folder / "model"):
        raise UserError(
            f"{shown(folder)}: the search has not come to its model yet; `autosf resume {shown(folder)}` goes on"
        )
    return folder / "model"


def structure_given(value: object) -> Structure:
    """The structure that a program gives: as such, as rows or an array of them, or as a user's text or a path."""
    if isinstance(value, Structure):
        return value
    if isinstance(value, (str, Path)):
        return structure_meant(str(value))
    return from_rows(value.tolist() if hasattr(value, "tolist") else value)


def structure_meant(text: str) -> Structure:
    """The structure of a user's text: the best so far of a run's folder, a model's, a name of the zoo, or rows."""
    is_rows = text.lstrip().startswith(("[", "{"))
    if not is_rows and is_model_folder(text):
        return structure_of(text)
    if not is_rows and is_run(text):
        best = outcome_of(open_run(Path(text))).best
        if best is None:
            raise UserError(f"{shown(Path(text))}: no trial of the search is finished yet")
        return best.structure
    return structure_from(text)
