"""A run whose trials are made up, so that it takes no training: on a graph with the worst of labels."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path
from random import Random

import polars as pl

from autosf.algebra.invariance import canonical
from autosf.algebra.structure import Structure, from_cells
from autosf.algebra.zoo import named
from autosf.app.final_model import final_model
from autosf.embedding.settings import TrainingSettings
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.graph.synthetic import patterned_graph
from autosf.graph.vocabulary import Vocabulary
from autosf.runs.ledger import opened_ledger
from autosf.runs.run import Plan, Run, create_run
from autosf.runs.task import key_of
from autosf.search.moves import neighbour
from autosf.search.record import Record, Trial
from autosf.search.settings import SearchSettings
from autosf.search.typical import known_good
from autosf.search.verdict import fresh_seeds
from fake_training import known_score

SETTINGS = TrainingSettings(epochs=4, dimension=8, learning_rate=0.3, validate_every=1)
NASTY = (
    "<script>document.title = 'broken'</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></svg><h1>big</h1>",
    "'; {{ 7 * 7 }} {% raw %}",
    "&lt;b&gt; & \u202eright to left",
    "=1+1\u0007\u2028 bell",
)


def nasty_graph() -> KnowledgeGraph:
    """A graph whose name, entities and relations are scripts, quotes, HTML and control characters."""
    made = patterned_graph(
        symmetric=2, anti_symmetric=2, general=2, entities=24, triples=40, valid=0.15, test=0.1
    )
    entities = sorted(f"{NASTY[number % len(NASTY)]} {number}" for number in range(len(made.entities)))
    relations = sorted(f"{text} relation" for text in NASTY)
    return replace(
        made,
        name=NASTY[0],
        entities=Vocabulary(pl.Series("label", entities), "entity"),
        relations=Vocabulary(pl.Series("label", relations), "relation"),
    )


def made_run(
    folder: Path,
    graph: KnowledgeGraph,
    strategy: str = "free",
    settings: TrainingSettings = SETTINGS,
    hide_test: bool = False,
) -> Run:
    """A run that has not begun."""
    search = SearchSettings(strategy=strategy, epochs=SETTINGS.epochs, trials=24)
    beside = {"budget": None, "final_dimension": None, "tuning": None}
    command = "autosf search '<graph>'"
    plan = Plan(settings, asdict(search) | beside, hide_test=hide_test, source="gone", command=command)
    return create_run(folder, graph, plan)


def tried(number: int = 24) -> list[Structure]:
    """Structures as a search would try them: what is known first, then neighbours."""
    rng, structures = Random(0), list(known_good())
    while len(structures) < number:
        found = canonical(from_cells(neighbour(structures, rng)), "extended")
        structures += [] if found in structures else [found]
    return structures[:number]


def add_trials(
    run: Run, structures: Sequence[Structure], *, seed: int = 0, bonus: float = 0.0, seconds: float = 0.5
) -> None:
    """A full trial of each structure with a made-up curve, one after the other."""
    with opened_ledger(run.ledger, count(1_000 + seed + seconds, seconds).__next__, writes=True) as ledger:
        for structure in structures:
            trial = Trial(structure, SETTINGS.epochs, seed)
            last = known_score(structure) + bonus + 0.001 * (seed % 7)
            curve = tuple((epoch, last * (1 - 0.5**epoch)) for epoch in range(1, trial.epochs + 1))
            record = Record(trial, curve[-1][1], trial.epochs, curve, seconds)
            ledger.add(key_of(trial, run.graph, run.plan.settings), record)


def finish(run: Run, ending: str = "all 24 structures are tried") -> None:
    """The search is over, after 30 seconds."""
    with opened_ledger(run.ledger, lambda: 9_000.0, writes=True) as ledger:
        ledger.add_event("began", "")
        ledger.spend(30.0)
        ledger.add_event("ended", ending)


def ended_run(
    folder: Path, graph: KnowledgeGraph, seconds: float = 0.5, settings: TrainingSettings = SETTINGS
) -> Run:
    """A run that ended with a new structure as its winner, ahead of ComplEx in the finals, and trained."""
    run, structures = made_run(folder, graph, settings=settings), tried()
    add_trials(run, structures, seconds=seconds)
    for seed in fresh_seeds(SearchSettings(strategy="free", epochs=SETTINGS.epochs)):
        add_trials(run, [structures[-1]], seed=seed, bonus=0.5)
        add_trials(run, [canonical(named("complex").structure, "extended")], seed=seed, bonus=0.2)
    finish(run)
    final_model(run, graph, "cpu")
    return run
