"""All that a report tells, gathered once: the page, its figures and the JSON are made of this alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autosf import __version__
from autosf.algebra.invariance import canonical
from autosf.app.duration import span_in_words
from autosf.app.final_model import has_model_of_winner, kept_model
from autosf.app.graphs import folder_with_negatives
from autosf.app.report.comparison import Comparison, Ground, compared, ranking_seconds
from autosf.app.report.opponent import opponent_of
from autosf.app.report.portrait import Portrait, human_designed, portrait, spoken
from autosf.app.report.search_story import (
    LearningCurve,
    Prediction,
    SearchCurve,
    TimeSpent,
    learning_curves,
    prediction,
    search_curves,
    time_spent,
)
from autosf.app.run_results import outcome_of, result_of, search_settings
from autosf.app.search_sample import final_settings, told_part
from autosf.app.search_tables import (
    in_disguise,
    lacks_finals,
    measured,
    on_the_whole,
    standard_error,
    title_of,
)
from autosf.app.searching import graph_again
from autosf.embedding.model_folder import manifest_of
from autosf.errors import UserError, quoted, shown
from autosf.graph.known_answers import known_answers
from autosf.graph.statistics import RelationDetail, all_warnings, statistics
from autosf.runs.labels import labelled_graph
from autosf.runs.run import facts_of
from autosf.runs.shared_graph import shared, without_test
from autosf.search.verdict import is_human_designed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autosf.algebra.structure import Structure
    from autosf.app.report.opponent import Opponent
    from autosf.app.run_results import Outcome
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.negatives import Negatives
    from autosf.runs.run import Run

MODELLED_BY = {"symmetric": "symmetric", "anti-symmetric": "anti-symmetric", "inverse": "inverse",
               "general": "asymmetric"}  # fmt: skip  # the kind of Table II that a pattern of a graph needs


@dataclass(frozen=True, slots=True)
class PatternShare:
    """How much of a graph follows a pattern, and whether the winner can model it exactly."""

    name: str
    relations: int
    train_share: float
    can_model: bool | None  # unknown before there is a winner


@dataclass(frozen=True, slots=True)
class GraphProfile:
    """The graph in numbers, with what a user should know of it. Without --test its test split is not read."""

    name: str
    entities: int
    relations: int
    splits: dict[str, int]
    tail_queries: int
    head_queries: int
    patterns: tuple[PatternShare, ...]
    categories: dict[str, int]
    warnings: tuple[str, ...]
    details: tuple[RelationDetail, ...]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What it takes to do the search again."""

    command: str
    source: str
    digest: str
    settings: dict[str, Any]
    search: dict[str, Any]
    asked: dict[str, Any]  # of these, what was asked for after the search had begun
    seed: int
    seeds: tuple[int, ...]  # of all trials
    threads: int
    hide_test: bool
    versions: dict[str, str]
    report_version: str


@dataclass(frozen=True, slots=True)
class Report:
    """A run as a page tells it; what is not there yet is None, and `missing` says why."""

    graph: GraphProfile
    result: dict[str, Any]  # as `autosf leaderboard --json` gives it
    headline: tuple[str, ...]  # the outcome in sentences
    winner: Portrait | None
    human: tuple[Portrait, ...]
    search_curves: tuple[SearchCurve, ...]
    learning_curves: tuple[LearningCurve, ...]
    prediction: Prediction | None
    comparison: Comparison | None
    opponent: str  # what the winner is compared with is to the search
    test: Comparison | None
    time: TimeSpent
    circumstances: Circumstances
    missing: tuple[str, ...]


def content_of(run: Run, rivals: Sequence[Run] = (), test: bool = False) -> Report:
    """The report of a run as it is now; whatever has to be trained for it is there already."""
    outcome = outcome_of(run)
    graph = tested_graph(run) if test else labelled_graph(run.graph_folder, run.labels)
    best = outcome.best
    opponent = opponent_of(run, outcome) if best else None
    comparison, tested, one_ranking = comparisons(run, outcome, opponent, graph, test)
    told = prediction(run, outcome.records)
    winner = None if best is None else portrait(best.structure)
    return Report(
        graph=profile(graph, winner, test),
        result=result_of(run, outcome),
        headline=headline(run, outcome),
        winner=winner,
        human=human_designed(),
        search_curves=search_curves(run, outcome, rivals),
        learning_curves=learning_curves(
            outcome.records,
            curves_wanted(outcome),
            best.structure if best else None,
            search_settings(run).epochs,
        ),
        prediction=told,
        comparison=comparison,
        opponent=opponent.role if opponent else "",
        test=tested,
        time=time_spent(run, outcome.records, one_ranking),
        circumstances=circumstances(run, outcome),
        missing=missing(run, outcome, opponent, comparison, told),
    )


def tested_graph(run: Run) -> KnowledgeGraph:
    """The run's graph with its test split, or one line on why there is none."""
    lost: list[str] = []
    graph = graph_again(run, lost.append)
    if not len(graph.test):
        why = "its source is gone" if lost else "it has none"
        raise UserError(f"{shown(run.folder)}: no test triples of {quoted(graph.name)} to measure on: {why}")
    return graph


def curves_wanted(outcome: Outcome) -> dict[Structure, int]:
    """Whose learning is shown, each with its place: the winner, what people designed, the first of the others."""
    places = {row.structure: place for place, row in enumerate(outcome.standings, 1)}
    best = [canonical(outcome.best.structure, "extended")] if outcome.best else []
    human = [structure for structure in places if is_human_designed(structure)]
    wanted = dict.fromkeys((*best, *human, *list(places)[:2]))
    return {structure: places[structure] for structure in wanted}


def comparisons(
    run: Run, outcome: Outcome, opponent: Opponent | None, graph: KnowledgeGraph, test: bool
) -> tuple[Comparison | None, Comparison | None, float | None]:
    """The winner's model beside its opponent's on validation and, if wanted, on test; a ranking's seconds."""
    best = outcome.best
    model = kept_model(run, run.model, best.structure) if best else None
    if opponent is None or model is None:
        return None, None, None
    ground = common_ground(run, graph, len(model.entities))
    if ground is None:
        return None, None, None
    other = kept_model(run, opponent.folder, opponent.structure)
    titles = ["the winner", opponent.title]
    alike = other is not None and len(other.entities) == len(model.entities)
    models = dict(zip(titles, [model, other], strict=True)) if other and alike else {titles[0]: model}
    valid = compared(models, ground)
    sampled = run.plan.search.get("sample")  # then a trial's ranking was another
    seconds = None if sampled else ranking_seconds(model, ground, run.plan.threads)
    if not test:
        return valid, None, seconds
    tested = compared(models, Ground(graph, known_answers(graph), "test"), given_negatives(run, graph))
    return valid, tested, seconds


def common_ground(run: Run, graph: KnowledgeGraph, entities: int) -> Ground | None:
    """Where a model of so many entities is validated: the run's graph, or all that its sample is of."""
    if not run.plan.search.get("sample"):
        known = shared(run.graph_folder).known
        return Ground(graph, known, "valid", run.plan.settings.validation_candidates)
    whole = graph_again(run)
    if entities != len(whole.entities):
        return None
    known = known_answers(whole if run.plan.hide_test else without_test(whole))
    return Ground(whole, known, "valid", final_settings(run, entities).validation_candidates)


def given_negatives(run: Run, graph: KnowledgeGraph) -> Negatives | None:
    """The labelled triples that came with the graph, if any did."""
    from autosf.graph.negatives import read_negatives

    folder = folder_with_negatives(manifest_of(run.model))
    return None if folder is None else read_negatives(folder, graph)


def profile(graph: KnowledgeGraph, winner: Portrait | None, test: bool) -> GraphProfile:
    """The graph as `autosf data stats` sees it."""
    found = statistics(graph)
    sizes = {split: size for split, size in found.sizes.items() if test or split != "test"}
    triples = dict.fromkeys(found.patterns, 0)
    for row in found.details:
        triples[row.pattern] += row.triples
    patterns = []
    for name, count in found.patterns.items():
        pattern = name.replace("_", "-")
        able = None if winner is None else MODELLED_BY[pattern] in winner.relation_kinds
        patterns.append(PatternShare(pattern, count, triples[name] / max(found.sizes["train"], 1), able))
    return GraphProfile(
        name=found.name,
        entities=found.entities,
        relations=found.relations,
        splits=sizes,
        tail_queries=found.tail_queries,
        head_queries=found.head_queries,
        patterns=tuple(patterns),
        categories=found.categories,
        warnings=tuple(all_warnings(graph, found)),
        details=found.details,
    )


def headline(run: Run, outcome: Outcome) -> tuple[str, ...]:
    """The outcome in a few sentences."""
    result = result_of(run, outcome)
    best = result["best"]
    if best is None:
        return ("No trial is finished yet.",)
    name = f"The winner is {spoken(title_of(best))}" if best["names"] else "The winner is a new structure"
    so_far = "" if outcome.state == "ended" else ", so far"
    lines = [f"{name}{so_far}: validation MRR {measured(best)}."]
    lines += [f"It is {told}." for told in in_disguise(best)]
    if best["beats_runner_up"] is not None:
        lines.append(f"It is better than the runner-up with probability {best['beats_runner_up']:.2f}.")
    human = best["human"]
    if human and best["beats_human"] is not None:
        gain, error = best["valid_mrr"] - human["valid_mrr"], standard_error(best, human)
        lines.append(
            f"It is better than {title_of(human)}, the best human-designed one at {measured(human)},"
            f" by {gain:.4f} ± {error:.4f}, with probability {best['beats_human']:.2f}."
        )
    elif human and human["structure"] != best["structure"]:
        lines.append(
            f"It is ahead of {title_of(human)}, the best human-designed one at {measured(human)};"
            " one seed each does not tell how surely."
        )
    elif human:
        lines.append("It was designed by people: no other was found to be better.")
    if lacks_finals(result):
        lines.append("The time ended before the finals: it is the best guess from all trainings.")
    searched = ", ".join(["of the search", *told_part(result)])
    lines += [f"These figures are {searched}; {line}." for line in on_the_whole(result["playoff"] or ())]
    return tuple(lines)


def circumstances(run: Run, outcome: Outcome) -> Circumstances:
    facts, search = facts_of(run.folder), run.plan.search
    return Circumstances(
        command=run.plan.command,
        source=run.plan.source,
        digest=run.graph,
        settings=run.plan.settings.as_dict(),
        search=dict(search),
        asked={name: value for name, value in search.items() if value != facts["search"].get(name)},
        seed=run.plan.seed,
        seeds=tuple(sorted({record.trial.seed for record in outcome.records})),
        threads=run.plan.threads,
        hide_test=run.plan.hide_test,
        versions=dict(facts.get("versions", {})),
        report_version=__version__,
    )


def missing(
    run: Run,
    outcome: Outcome,
    opponent: Opponent | None,
    comparison: Comparison | None,
    told: Prediction | None,
) -> tuple[str, ...]:
    """What a full report has and this one has not, and what brings it."""
    lines = []
    if outcome.state == "running":
        lines.append("The search is still running: all figures are those so far.")
    elif outcome.state == "stopped":
        lines.append(f"The search was stopped before its end; `autosf resume {run.folder.name}` goes on.")
    if told is None:
        lines.append("Too few structures are fully trained to judge predictions.")
    if opponent is None:
        return tuple(lines)
    if comparison is None and has_model_of_winner(run, outcome):
        lines.append("The graph that the winner was trained on is gone: there are no results by relation.")
    elif comparison is None:
        lines.append("The winner's model is not trained yet: results by relation and pattern follow with it.")
    elif len(comparison.models) == 1:
        cost = "" if opponent.seconds is None else f", about {span_in_words(opponent.seconds)} of training"
        lines.append(
            f"{opponent.title}, {opponent.role}, is not trained to compare with:"
            f" `autosf report --human` does it{cost}."
        )
    return tuple(lines)
