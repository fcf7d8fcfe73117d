"""`autosf train` from graph to model folder: settings gathered, progress shown, checkpoints kept."""

from __future__ import annotations

import platform
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError

from autosf import __version__
from autosf.app.given import path_given, whole_number, whole_number_or_none
from autosf.app.graphs import graph_for_programs
from autosf.app.interrupting import stopping
from autosf.app.tracking import epoch_log, tracked
from autosf.app.wanted_settings import settings_given
from autosf.embedding.checkpoints import Pace, identity, load_checkpoint, save_checkpoint
from autosf.embedding.compiled import kernel
from autosf.embedding.epochs import changes_in_place
from autosf.embedding.model_folder import (
    is_model_folder,
    manifest_of,
    refuse_other_files,
    save_model,
    structure_of,
)
from autosf.embedding.presets import preset
from autosf.embedding.settings import TrainingSettings, is_small_step
from autosf.embedding.storage import Storage
from autosf.embedding.trained_model import TrainedModel
from autosf.embedding.training import Trained, train
from autosf.errors import UserError, quoted
from autosf.evaluation.metrics import summarise
from autosf.evaluation.sampled_ranking import ranker
from autosf.graph.knowledge_graph import SPLITS, KnowledgeGraph
from autosf.graph.known_answers import known_answers
from autosf.runs.shared_graph import without_test
from autosf.whole import make_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from autosf.algebra.structure import Structure
    from autosf.app.predicting import AskableModel
    from autosf.embedding.model import Model
    from autosf.embedding.state import State
    from autosf.evaluation.metrics import Metrics
    from autosf.graph.known_answers import KnownAnswers

CHECKPOINT_SECONDS = 20  # between two checkpoints, so that writing them costs little


class Diverged(UserError):  # noqa: N818 - named as what happened
    """A training came to nothing because its loss or weights are not finite."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be trained, and where it goes."""

    graph: KnowledgeGraph
    structure: Structure
    settings: TrainingSettings
    seed: int
    device: str
    out: Path
    source: str = ""  # how the user named the graph
    facts: Mapping[str, Any] = field(default_factory=dict)  # to be kept with the model besides its own
    blind: bool = False  # as in a search, test triples are not even left out of a ranking
    on_disk: bool = False  # embeddings and running sums in files beside the model, for want of memory

    @property
    def checkpoint(self) -> Path:
        return self.beside(".checkpoint")

    @property
    def storage(self) -> Storage:
        return Storage(self.beside(".scratch") if self.on_disk else None)

    def beside(self, ending: str) -> Path:
        """A path next to the model folder, whose own may be as short as a dot."""
        folder = self.out if self.out.name else self.out.resolve()
        return folder.with_name(folder.name + ending)

    @property
    def who(self) -> dict[str, Any]:
        return identity(self.graph.digest, str(self.structure), self.settings.as_dict(), self.seed)


def device_of(wish: str) -> str:
    """The device to train on; `auto` takes the best there is."""
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if wish == "auto":
        return next(name for name in ("cuda", "mps", "cpu") if there[name])
    if wish not in tuple(there):  # a program may give what has no hash
        raise UserError(f"device: expected auto, {', '.join(there)}, found {quoted(wish)}")
    if not there[wish]:
        raise UserError(f"device: {wish} is not available here; use cpu, or auto")
    return wish


@contextmanager
def threads_for(
    graph: KnowledgeGraph, settings: TrainingSettings, threads: int | None = None
) -> Iterator[None]:
    """The threads asked for, else all this process was given (OMP_NUM_THREADS), one where more gain nothing."""
    before = torch.get_num_threads()
    if threads or is_small_step(len(graph.entities), settings):
        torch.set_num_threads(threads or 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_training(
    job: Job,
    resume: bool,
    report: Callable[[State], None],
    command: str,
    note: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Train, save the model folder and tell the result; an interrupted one leaves its checkpoint.

    A checkpoint that cannot be written is told to `note`: training goes on without it.
    """
    started = time.perf_counter()
    refuse_other_files(job.out)
    state = starting_state(job, resume, note)
    if is_model_folder(job.out):
        note(f"{quoted(job.out)}: the model there will be replaced")
    make_folder(job.checkpoint.parent)
    pace = Pace(CHECKPOINT_SECONDS, time.monotonic)

    def save(state: State) -> None:
        try:
            save_checkpoint(job.checkpoint, state, job.who, flush=True)
        except (OSError, SafetensorError) as error:
            note(f"{quoted(job.checkpoint)}: cannot be written, a kill would lose this training ({error})")

    graph = without_test(job.graph) if job.blind else job.graph
    try:
        known = known_answers(graph, SPLITS if len(graph.valid) else ())  # for validation alone
        with stopping(waits=changes_in_place(job.settings)) as stop:

            def watch(state: State) -> None:
                if pace.is_due():
                    pace.write(lambda: save(state))
                report(state)
                stop.epoch_ended()

            trained, result = trained_result(job, known, state, watch)
        if trained.ending == "interrupted":
            if stop.between:  # else it is half an epoch on: the last checkpoint counts
                save(trained.state)
            raise KeyboardInterrupt
        save_model(job.out, labelled(job, trained, result, command))
    finally:
        job.storage.discard()
    job.checkpoint.unlink(missing_ok=True)
    return {**result, "seconds": time.perf_counter() - started, "model": str(job.out)}


def trained_result(
    job: Job, known: KnownAnswers, state: State | None, watch: Callable[[State], None]
) -> tuple[Trained, dict[str, Any]]:
    """The trained model and what there is to tell of it."""
    if job.seed < 0:
        raise UserError(f"seed: expected a number from 0, found {job.seed}")
    valid_triples, candidates = job.graph.valid, job.settings.validation_candidates
    ranked = ranker(valid_triples, known, candidates)

    def measured(model: Model) -> Metrics:
        return summarise(ranked(model))

    with told_if_too_large():
        trained = train(
            job.graph,
            job.structure,
            job.settings,
            seed=job.seed,
            clock=time.perf_counter,
            device=job.device,
            validate=(lambda model: measured(model).mrr) if len(valid_triples) else None,
            watch=watch,
            state=state,
            storage=job.storage,
        )
    in_place = changes_in_place(job.settings)  # half an epoch has spoilt the state before it
    refuse_diverged(trained.ending, trained.state, "training", only_best=in_place or len(valid_triples) > 0)
    finished = trained.ending != "interrupted" and len(valid_triples)
    valid = measured(trained.model) if finished else None
    return trained, {
        "valid": asdict(valid) if valid else None,
        "valid_candidates": candidates if 0 < candidates < len(job.graph.entities) else None,
        "epochs": trained.state.epochs,
        "best_epoch": trained.state.best.number if trained.state.best else trained.state.epochs,
        "ending": trained.ending,
        "train_seconds": trained.train_seconds,
        "settings": job.settings.as_dict(),
        "structure": job.structure.rows,
        "seed": job.seed,
        "device": job.device,
        "graph": job.graph.name,
        "curve": [asdict(epoch) for epoch in trained.state.curve],
    }


def ended_result(job: Job) -> dict[str, Any]:
    """What the training came to whose model is in its folder; the model of another one is refused."""
    facts = manifest_of(job.out)
    who = identity(facts["graph"]["digest"], str(structure_of(job.out)), facts["settings"], facts["seed"])
    if who != job.who or facts["settings"]["epochs"] != job.settings.epochs:
        raise UserError(
            f"{quoted(job.out)}: the model there is of another training, which has ended;"
            " to train anew leave out --resume, or give another --out"
        )
    curve, candidates = facts["curve"], job.settings.validation_candidates
    validated = [epoch for epoch in curve if epoch["valid_mrr"] is not None]
    best = max(validated, key=lambda epoch: epoch["valid_mrr"], default=curve[-1])
    return {
        "valid": facts["metrics"]["valid"],
        "valid_candidates": candidates if 0 < candidates < len(job.graph.entities) else None,
        "epochs": len(curve),
        "best_epoch": best["number"],
        "ending": facts["ending"],
        "train_seconds": facts["train_seconds"],
        "settings": facts["settings"],
        "structure": job.structure.rows,
        "seed": job.seed,
        "device": job.device,
        "graph": job.graph.name,
        "curve": curve,
        "seconds": 0.0,
        "model": str(job.out),
    }


@contextmanager
def told_if_too_large() -> Iterator[None]:
    """Memory that a training asks for in vain, of numpy, of torch or of a GPU, becomes one line."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error):
            raise UserError(
                "training: not enough memory for a step; lower negatives, batch_size or dimension"
            ) from None
        raise


def refuse_diverged(ending: str, state: State, who: str, *, only_best: bool) -> None:
    """Raise if a training has diverged before anything came of it: a best validation, or else an epoch."""
    if ending == "diverged" and not (state.best if only_best else state.curve):
        epoch = f"epoch {state.epochs + 1}" if state.curve else "its first epoch"
        raise Diverged(f"{who} diverged in {epoch}: loss or weights are not finite; lower learning_rate")


def starting_state(job: Job, resume: bool, note: Callable[[str], None]) -> State | None:
    """The checkpoint's state if there is one and it is wanted; an unwanted one is not overwritten in silence."""
    if not job.checkpoint.exists():
        if resume:
            note(f"{quoted(job.checkpoint)}: there is none to go on from; the training starts anew")
        return None
    if not resume:
        raise UserError(
            f"{quoted(job.checkpoint)}: an unfinished training is there; add --resume to go on,"
            " or delete it to start anew"
        )
    state = load_checkpoint(job.checkpoint, job.who)
    if state.epochs > job.settings.epochs:
        raise UserError(
            f"{quoted(job.checkpoint)}: has {state.epochs} epochs, more than the {job.settings.epochs} asked for;"
            f" give --epochs {state.epochs} or more"
        )
    return state


def labelled(job: Job, trained: Trained, result: Mapping[str, Any], command: str) -> TrainedModel:
    """The model with its labels and how it came to be."""
    facts = {
        "graph": {"name": job.graph.name, "digest": job.graph.digest, "source": job.source},
        "settings": result["settings"],
        "seed": job.seed,
        "metrics": {"valid": result["valid"]},
        "curve": result["curve"],
        "ending": result["ending"],
        "train_seconds": result["train_seconds"],
        "command": command,
        **job.facts,
        "versions": {
            "autosf": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
            "kernel": "torch" if kernel() is None else "compiled",
        },
    }
    return TrainedModel(trained.model, job.graph.entities, job.graph.relations, facts, job.graph)


def train_model(
    graph: object,
    structure: Structure | Path | str | Sequence[Sequence[int]] | NDArray[Any] = "complex",
    *,
    seed: int = 0,
    device: str = "auto",
    out: Path | str | None = None,
    threads: int | None = None,
    settings: Path | str | Mapping[str, Any] | None = None,
    track: Sequence[str] | str = (),
    **values: Any,
) -> AskableModel:
    """Train on a graph (a name, path, frame, array or KnowledgeGraph) and return a model to ask.

    The structure is a name of the zoo, rows, as JSON or an array too, or the folder of a run, for the best it
    has found, or of a model.
    Settings are those of `TrainingSettings`, over the graph's preset: `dimension=128, epochs=20, ...`, or in
    `settings`, a TOML file, a tuning's folder or a mapping, which single values win over. The model is saved as
    the folder `out`, if given. `threads` are those of the CPU; all by default, one for a small graph. `track`
    names who else is told of every epoch: "tensorboard:FOLDER", "mlflow:ADDRESS".
    """
    from autosf.app.predicting import AskableModel
    from autosf.app.run_results import structure_given

    seed, threads = whole_number("seed", seed, 0), whole_number_or_none("threads", threads, 1)
    folder = None if out is None else path_given("out", out)
    read = graph_for_programs(graph)
    chosen = structure_given(structure)
    wanted = preset(read.name, len(read.entities)).changed(settings_given(settings)).changed(values)
    source = str(graph) if isinstance(graph, (str, Path)) else ""
    job = Job(read, chosen, wanted, seed, device_of(device), folder or Path(), source)
    if folder is not None:
        refuse_other_files(folder)
        make_folder(job.checkpoint.parent)
    described = {"graph": read.name, "structure": chosen, "seed": seed, **wanted.as_dict()}
    with tracked(track, read.name, described) as tracker, threads_for(read, wanted, threads):
        trained, result = trained_result(job, known_answers(read), None, epoch_log(tracker))
    if trained.ending == "interrupted":
        raise KeyboardInterrupt
    model = AskableModel(labelled(job, trained, result, ""))
    if folder is not None:
        model.save(folder)
    return model
