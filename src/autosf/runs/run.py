"""A run is a folder: what was asked for, the ledger, the graph as workers map it, checkpoints and logs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

from autosf import __version__
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError, shown
from autosf.runs.labels import keep_labels
from autosf.runs.ledger import create_ledger, opened_ledger
from autosf.runs.shared_graph import share
from autosf.runs.task import digest
from autosf.whole import refuse_here, whole_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from autosf.graph.knowledge_graph import KnowledgeGraph

FORMAT, VERSION = "autosf run", 1


FIXED = ("settings", "search", "seed", "threads", "hide_test")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is asked to do; nothing of it may change but budget and trials, by what is asked later."""

    settings: TrainingSettings
    search: Mapping[str, Any]  # the strategy and its settings, as JSON
    seed: int = 0
    threads: int = 1  # of each worker: sums of more threads round otherwise
    hide_test: bool = False  # test triples are known answers while validation is ranked, as in most papers
    source: str = ""  # how the user named the graph
    command: str = ""

    def fixed(self) -> dict[str, Any]:
        """The part that decides the results, under the names of FIXED."""
        return {
            "settings": self.settings.as_dict(),
            "search": dict(self.search),
            "seed": self.seed,
            "threads": self.threads,
            "hide_test": self.hide_test,
        }


@dataclass(frozen=True, slots=True)
class Run:
    """An existing run: its folder, its graph's digest and its plan."""

    folder: Path
    graph: str
    plan: Plan

    @property
    def whole_graph(self) -> str:
        """The digest of the graph that was given, of which `graph` may be a sample."""
        return str((self.plan.search.get("sample") or {}).get("digest", self.graph))

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def lock(self) -> Path:
        return self.folder / "driver.lock"

    @property
    def graph_folder(self) -> Path:
        return self.folder / "graph"

    @property
    def labels(self) -> Path:
        return self.folder / "labels"

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def model(self) -> Path:
        return self.folder / "model"


def create_run(folder: Path, graph: KnowledgeGraph, plan: Plan) -> Run:
    """A new run, whole or not at all; a folder that holds anything is refused."""
    folder = folder.resolve()
    refuse_used(folder)
    if not plan.settings.validate_every:
        raise UserError("setting validate_every: a search needs validations, expected a number from 1")
    with whole_folder(folder) as beside:
        fill(beside, graph, plan)
    return open_run(folder)


def fill(folder: Path, graph: KnowledgeGraph, plan: Plan) -> None:
    """Write all that a run has before its first trial."""
    run = Run(folder, graph.digest, plan)
    share(graph, run.graph_folder, plan.hide_test)
    keep_labels(graph, run.labels)
    create_ledger(run.ledger)
    run.checkpoints.mkdir()
    run.logs.mkdir()
    versions = {"autosf": __version__, "torch": version("torch"), "python": python_version()}
    facts = {
        "format": FORMAT,
        "version": VERSION,
        "graph": {"name": graph.name, "digest": run.graph, "source": plan.source},
        **plan.fixed(),
        "digest": promise({"graph": {"digest": run.graph}, **plan.fixed()}),
        "command": plan.command,
        "versions": versions,
    }
    (folder / "run.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def open_run(folder: Path) -> Run:
    """The run in a folder, with what it was asked for last; one whose settings were edited since is refused."""
    folder = folder.resolve()
    facts = facts_of(folder)
    try:
        plan = Plan(
            TrainingSettings().changed(facts["settings"]),
            facts["search"],
            facts["seed"],
            facts["threads"],
            facts["hide_test"],
            facts["graph"]["source"],
            facts["command"],
        )
        began = Run(folder, facts["graph"]["digest"], plan)
        kept = promise(facts) == facts["digest"]
    except (KeyError, TypeError) as error:
        raise UserError(f"{shown(folder / 'run.json')}: expected {error}, found none") from None
    if not kept:
        raise UserError(
            f"{shown(folder / 'run.json')}: changed since the run began; a changed search needs a new folder"
        )
    with opened_ledger(began.ledger, lambda: 0.0) as ledger:  # who reads stamps nothing
        return replace(began, plan=replace(plan, search={**plan.search, **ledger.asked()}))


def promise(facts: Mapping[str, Any]) -> str:
    """Digest of what decides a run's results, as it was written: a setting that came later is not in it."""
    return digest({"graph": facts["graph"]["digest"], **{name: facts[name] for name in FIXED}})


def facts_of(folder: Path) -> dict[str, Any]:
    """What run.json says, if the folder is a run that this program reads."""
    path = folder / "run.json"
    if not path.is_file():
        raise UserError(f"{shown(folder)}: not a run: it has no run.json")
    try:
        facts = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{shown(path)}: expected JSON, found a damaged file ({error})") from None
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        raise UserError(f"{shown(path)}: expected the format {FORMAT}: not a run")
    if facts.get("version") != VERSION:
        raise UserError(
            f"{shown(path)}: expected version {VERSION}, found {facts.get('version')}; update autosf"
        )
    return facts


def refuse_used(folder: Path) -> None:
    """Raise unless the folder is free: a run in it may go on, other files are not ours."""
    refuse_here(folder)
    if (folder / "run.json").exists():
        raise UserError(f"{shown(folder)}: holds a run already; `autosf resume {shown(folder)}` goes on")
    if folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{shown(folder)}: holds other files; name a new folder")
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{shown(folder)}: expected a new folder for the run, found a file")


def refuse_other_graph(run: Run, graph: KnowledgeGraph) -> None:
    """Raise unless the graph is, triple by triple, the one the run began with."""
    if graph.digest != run.whole_graph:
        raise UserError(
            f"{shown(run.folder)}: the run began with another graph than {graph.name} is now;"
            " give the same, or a new folder"
        )


def discard_checkpoints(run: Run) -> None:
    """Free the disk of states that nobody will go on from."""
    for path in run.checkpoints.iterdir():
        path.unlink(missing_ok=True)


def discard_halves(run: Run) -> None:
    """Free the disk of what a kill has left half written."""
    halves = [path for path in run.checkpoints.iterdir() if path.suffix != ".safetensors"]
    for path in (*halves, *run.folder.glob(".*.partial")):
        path.unlink(missing_ok=True)
