"""Who takes part in a comparison, by the user's words, and how each of them is measured.

| word | what is measured |
| --- | --- |
| a name of the zoo, or rows | the structure, by our trainer with the graph's recipe |
| the folder of a run | the structure it has found, wherever it was found, likewise |
| the folder of a model | the model as it is |
| `pykeen:NAME` | PyKEEN's family of that name |
| `rules` | mined rules |
| `gen-approx` | the paper's general approximator, a network in the place of a structure |
| `published:NAME` | nothing: figures that were printed |
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

from autosf.algebra.zoo import plain
from autosf.app.interop import needing_pykeen
from autosf.app.interop.pykeen_families import family_named, queries_at_once, train_family
from autosf.app.published import PREFIX as PUBLISHED
from autosf.app.published import published, published_figures, published_metrics
from autosf.app.run_results import is_run, structure_meant
from autosf.app.training import Job, refuse_diverged, trained_result
from autosf.embedding.gen_approx import train_gen_approx
from autosf.embedding.model_folder import is_model_folder, load_model
from autosf.embedding.settings import refuse_odd_dimension
from autosf.errors import UserError, quoted
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank, rank_scores
from autosf.evaluation.rules import mined_rules
from autosf.runs.run import facts_of
from autosf.search.strategies import GEN_APPROX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from autosf.algebra.structure import Structure
    from autosf.app.interop.pykeen_families import Family
    from autosf.embedding.settings import TrainingSettings
    from autosf.evaluation.ranking import Ranks
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.known_answers import KnownAnswers

PYKEEN = needing_pykeen.PREFIX
RULES = "rules"
SHARED_SETTINGS = ("dimension", "epochs", "batch_size", "patience", "validate_every")  # with other trainers


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """Where they meet: a graph, its known answers, the recipe, and the splits that are ranked."""

    graph: KnowledgeGraph
    known: KnownAnswers
    settings: TrainingSettings
    splits: tuple[str, ...]
    digest: str  # of the whole graph; where test is left out, `graph` has none
    device: str = "cpu"
    watch: Callable[[int], None] = lambda _: None  # epochs done

    def measured(self, ranked: Callable[[Any], Ranks]) -> dict[str, Any]:
        """The metrics of valid and test; None for a split that is left out or empty."""
        found = {}
        for split in ("valid", "test"):
            triples = getattr(self.graph, split)
            wanted = split in self.splits and len(triples)
            found[split] = asdict(summarise(ranked(triples))) if wanted else None
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Contestant:
    """One row of a comparison.

    `measure` is told the arena and a seed and gives valid, test, seconds, train_seconds, epochs, parameters.
    `refuse` raises what can be known to be wrong before anything is trained. `identity` is all that decides the
    result besides graph, seed and device; None if measuring again costs nothing. With `seeded` false one seed is
    all. `device` is where it is trained and ranked; None where nothing is.
    """

    name: str
    kind: str
    measure: Callable[[Arena, int], dict[str, Any]]
    identity: Callable[[TrainingSettings], dict[str, Any] | None] = lambda _: None
    refuse: Callable[[Arena], None] = lambda _: None
    seeded: bool = True
    device: Callable[[Arena], str | None] = lambda arena: arena.device
    facts: Mapping[str, Any] = field(default_factory=dict)  # of the row, whatever the seed


def contestants_in(texts: Sequence[str]) -> list[Contestant]:
    """All that some texts name, separated by commas."""
    words = [word for text in texts for word in split_outside_brackets(text)]
    if not words:
        raise UserError("--models: expected names separated by commas, such as complex,simple, found none")
    twice = next((word for word in words if words.count(word) > 1), None)
    if twice is not None:
        raise UserError(f"--models: {quoted(twice)} is there twice")
    return [contestant(word) for word in words]


def split_outside_brackets(text: str) -> list[str]:
    """The parts of a text between commas, save those inside brackets: rows have commas of their own."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def contestant(word: str) -> Contestant:
    """Whom a word names."""
    if word.startswith(PYKEEN):
        return of_family(word, family_named(word.removeprefix(PYKEEN)))
    if word.startswith(PUBLISHED):
        return of_print(word, word.removeprefix(PUBLISHED))
    if word == RULES:
        return of_rules()
    if word == GEN_APPROX:
        return of_gen_approx()
    if is_model_folder(word):
        return of_model(word)
    found_on = facts_of(Path(word))["graph"]["name"] if is_run(word) else None
    try:
        structure = structure_meant(word)
    except UserError as error:
        if found_on is not None or word.startswith(("[", "{")):
            raise
        raise UserError(other_words(word, str(error))) from None
    return of_structure(word, structure, found_on)


def other_words(word: str, refusal: str) -> str:
    """The refusal of a word that names no structure, with a published method of that name, or all other words."""
    method = next((name for name in published() if plain(name) == plain(word)), None)
    if method is not None:
        return f"unknown structure {quoted(word)}; did you mean {quoted(PUBLISHED + method)}?"
    hint = f"a RUN, a MODEL, {RULES}, {GEN_APPROX}, {PYKEEN}NAME and {PUBLISHED}NAME take part, too"
    return f"{refusal}; {hint}"


def of_structure(name: str, structure: Structure, found_on: str | None) -> Contestant:
    """A structure, trained as `autosf train` does."""

    def measure(arena: Arena, seed: int) -> dict[str, Any]:
        job = Job(arena.graph, structure, arena.settings, seed, arena.device, Path())
        started = time.perf_counter()
        trained, result = trained_result(job, arena.known, None, lambda state: arena.watch(state.epochs))
        if trained.ending == "interrupted":
            raise KeyboardInterrupt
        model = trained.model
        return {
            **arena.measured(lambda triples: rank(model, triples, arena.known)),
            "seconds": time.perf_counter() - started,
            "train_seconds": result["train_seconds"],
            "epochs": result["epochs"],
            "parameters": model.entities.numel() + model.relations.numel(),
        }

    return Contestant(
        name,
        "structure" if found_on is None else "run",
        measure,
        identity=lambda settings: {"structure": structure.rows, **settings.as_dict()},
        refuse=lambda arena: refuse_odd_dimension(arena.settings.dimension, structure.parts),
        facts={"structure": structure.rows, "found_on": found_on},
    )


def of_model(folder: str) -> Contestant:
    """A trained model, measured as it is; on its own graph alone."""
    trained = load_model(folder)
    facts = trained.facts

    def refuse(arena: Arena) -> None:
        rows = ((trained.entities, arena.graph.entities), (trained.relations, arena.graph.relations))
        same_rows = all(own.labels.equals(given.labels) for own, given in rows)
        if not same_rows or facts.get("graph", {}).get("digest") != arena.digest:
            raise UserError(
                f"{folder}: trained on {quoted(trained.graph_name)}, and not on {quoted(arena.graph.name)} as"
                " it is here; name its structure to have it trained"
            )

    def measure(arena: Arena, _: int) -> dict[str, Any]:
        loaded, place = trained.model, arena.device
        model = replace(loaded, entities=loaded.entities.to(place), relations=loaded.relations.to(place))
        started = time.perf_counter()
        return {
            **arena.measured(lambda triples: rank(model, triples, arena.known)),
            "seconds": time.perf_counter() - started,
            "train_seconds": facts.get("train_seconds"),
            "epochs": len(facts.get("curve") or ()) or None,
            "parameters": model.entities.numel() + model.relations.numel(),
        }

    rows = {"structure": trained.model.structure.rows, "found_on": None}
    return Contestant(folder, "model", measure, refuse=refuse, seeded=False, facts=rows)


def of_family(name: str, family: Family) -> Contestant:
    """A family of PyKEEN's."""

    def shared(settings: TrainingSettings) -> dict[str, Any]:
        return {key: value for key, value in settings.as_dict().items() if key in SHARED_SETTINGS}

    def measure(arena: Arena, seed: int) -> dict[str, Any]:
        def ranked(scorer: Any, triples: Any) -> Ranks:
            batch = queries_at_once(arena.graph, arena.settings)
            return rank_scores(scorer, triples, arena.known, batch=batch, device=arena.device)

        valid = arena.graph.valid
        started = time.perf_counter()
        trained = train_family(
            arena.graph,
            family,
            arena.settings,
            seed=seed,
            clock=time.perf_counter,
            validate=(lambda scorer: summarise(ranked(scorer, valid)).mrr) if len(valid) else None,
            device=arena.device,
            watch=arena.watch,
        )
        return {
            **arena.measured(lambda triples: ranked(trained.scorer, triples)),
            "seconds": time.perf_counter() - started,
            "train_seconds": trained.train_seconds,
            "epochs": trained.epochs,
            "parameters": trained.parameters,
        }

    return Contestant(
        name,
        "pykeen",
        measure,
        identity=lambda settings: {"pykeen": asdict(family), **shared(settings)},
        refuse=lambda arena: family.refuse_dimension(arena.settings.dimension),
    )


def of_gen_approx() -> Contestant:
    """The paper's general approximator (its appendix), trained with the graph's recipe."""

    def measure(arena: Arena, seed: int) -> dict[str, Any]:
        valid, started = arena.graph.valid, time.perf_counter()
        trained = train_gen_approx(
            arena.graph,
            arena.settings,
            seed=seed,
            clock=time.perf_counter,
            device=arena.device,
            validate=(lambda model: summarise(rank(model, valid, arena.known)).mrr) if len(valid) else None,
            watch=lambda state: arena.watch(state.epochs),
        )
        if trained.ending == "interrupted":
            raise KeyboardInterrupt
        state = trained.state
        refuse_diverged(trained.ending, state, GEN_APPROX, only_best=len(valid) > 0)
        return {
            **arena.measured(lambda triples: rank(trained.model, triples, arena.known)),
            "seconds": time.perf_counter() - started,
            "train_seconds": sum(epoch.seconds for epoch in state.curve),
            "epochs": state.epochs,
            "parameters": state.entities.numel() + state.relations.numel(),
        }

    return Contestant(
        GEN_APPROX,
        "network",
        measure,
        identity=lambda settings: {"gen-approx": 1, **settings.as_dict()},
    )


def of_rules() -> Contestant:
    """Mined rules; nothing to train."""

    def measure(arena: Arena, seed: int) -> dict[str, Any]:
        started = time.perf_counter()
        with threadpool_limits(1, "blas"):  # its products are small
            rules = mined_rules(arena.graph, np.random.default_rng(seed))
            mined = time.perf_counter() - started
            found = arena.measured(lambda triples: rank_scores(rules, triples, arena.known))
        return {
            **found,
            "seconds": time.perf_counter() - started,
            "train_seconds": mined,
            "epochs": None,
            "parameters": rules.count,
        }

    return Contestant(
        RULES, "rules", measure, identity=lambda _: {"rules": 1}, seeded=False, device=lambda _: "cpu"
    )


def of_print(name: str, method: str) -> Contestant:
    """Published figures; a graph that has none gets an empty row."""
    graphs = published_figures(method)

    def measure(arena: Arena, _: int) -> dict[str, Any]:
        figures = published_metrics(method, arena.graph.name) if "test" in arena.splits else None
        spent = dict.fromkeys(("seconds", "train_seconds", "epochs", "parameters"))
        return {"valid": None, "test": figures, **spent}

    def refuse(arena: Arena) -> None:
        if published_metrics(method, arena.graph.name) is None:
            raise UserError(
                f"{name}: no figures were published for {arena.graph.name}; there are some for"
                f" {', '.join(graphs)}"
            )

    return Contestant(name, "published", measure, refuse=refuse, seeded=False, device=lambda _: None)
