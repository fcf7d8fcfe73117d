"""Training in mapped files: the same weights as in memory, and after a kill those of the last checkpoint."""

import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

from autosf.algebra.zoo import named
from autosf.embedding.checkpoints import Pace, load_checkpoint, save_checkpoint, tensors
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.storage import ROWS, Storage, is_finite
from autosf.embedding.training import start, train
from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph
from autosf.runs.shared_graph import unlabelled
from random_models import random_graph

COMPLEX = named("complex").structure
SETTINGS = TrainingSettings(
    dimension=8, epochs=4, batch_size=16, loss="sampled-softmax", negatives=5, start_scale=0.1
)
SETTINGS = replace(SETTINGS, validate_every=1, patience=0)


def clock():
    ticks = count()
    return lambda: float(next(ticks))


def falling():
    """A validation that finds every epoch worse than the one before, but the second best of all."""
    values = iter([0.5, 0.9, 0.4, 0.3])
    return lambda _: next(values)


@pytest.mark.parametrize("optimiser", ["adagrad", "adam", "sgd"])
@pytest.mark.parametrize("averaging", [0.0, 0.5])
def test_on_disk_the_weights_are_those_of_memory(tmp_path, optimiser, averaging):
    graph, settings = random_graph(), replace(SETTINGS, optimiser=optimiser, averaging=averaging)
    one, other = (
        train(graph, COMPLEX, settings, seed=3, clock=clock(), validate=falling(), storage=storage)
        for storage in (Storage(), Storage(tmp_path / "scratch"))
    )
    assert torch.equal(one.model.entities, other.model.entities)
    assert torch.equal(one.state.entities, other.state.entities)
    names = {path.name for path in (tmp_path / "scratch").iterdir()}
    assert {"entities.f32", "best_entities.f32"} <= names
    assert ("average_entities.f32" in names) == bool(averaging)


def test_a_checkpoint_goes_on_in_memory_and_on_disk_alike(tmp_path):
    graph, path = random_graph(), tmp_path / "checkpoint"

    def watch(state):
        if state.epochs == 2:
            save_checkpoint(path, state, {}, flush=True)

    whole = train(graph, COMPLEX, SETTINGS, seed=0, clock=clock(), validate=falling(), watch=watch)
    for storage in (Storage(), Storage(tmp_path / "scratch")):
        rest = iter([0.4, 0.3])
        resumed = train(
            graph,
            COMPLEX,
            SETTINGS,
            seed=0,
            clock=clock(),
            validate=lambda _, rest=rest: next(rest),
            state=load_checkpoint(path, {}),
            storage=storage,
        )
        assert torch.equal(resumed.state.entities, whole.state.entities)
        assert torch.equal(resumed.model.entities, whole.model.entities)


KILLED = """
import os, signal, sys
from pathlib import Path
import test_storage as here
from autosf.embedding import epochs
from autosf.embedding.checkpoints import save_checkpoint

folder, finished, batches_of = Path(sys.argv[1]), [], epochs.batches

def watch(state):
    finished.append(state.epochs)
    if state.epochs == 2:
        save_checkpoint(folder / "checkpoint", state, {}, flush=True)

def batches_until_the_kill(*given):
    for number, batch in enumerate(batches_of(*given)):
        if len(finished) == 3 and number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch

epochs.batches = batches_until_the_kill
here.train(here.random_graph(), here.COMPLEX, here.SETTINGS, seed=0, clock=here.clock(),
           storage=here.Storage(folder / "scratch"), watch=watch)
"""


@pytest.mark.slow
def test_killed_in_the_middle_of_an_epoch_it_goes_on_from_the_last_checkpoint(tmp_path, request):
    paths = [str(request.path.parent), str(request.path.parents[1])]
    code = f"import sys; sys.path[:0] = {paths!r}\n{KILLED}"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    storage = Storage(tmp_path / "scratch")
    assert any(storage.folder.iterdir())  # half an epoch on, and of no use
    state = load_checkpoint(tmp_path / "checkpoint", {})
    assert state.epochs == 2
    resumed = train(random_graph(), COMPLEX, SETTINGS, seed=0, clock=clock(), state=state, storage=storage)
    whole = train(random_graph(), COMPLEX, SETTINGS, seed=0, clock=clock())
    # Products of some CPUs have other last bits where operands lie otherwise, and files lie at pages.
    torch.testing.assert_close(resumed.model.entities, whole.model.entities)
    storage.discard()
    assert not storage.folder.exists()


def test_files_take_no_room_before_they_are_written_to(tmp_path):
    made = Storage(tmp_path).zeros("large", 1_000_000, 64)
    assert made.shape == (1_000_000, 64)
    assert not made[999_999].any()
    assert (tmp_path / "large.f32").stat().st_size == 256_000_000
    assert (tmp_path / "large.f32").stat().st_blocks * 512 < 1_000_000


@pytest.mark.parametrize("loss", ["sampled-softmax", "logistic", "hinge"])
def test_an_epoch_writes_the_rows_it_touches_and_no_others(tmp_path, loss):
    """As files show: what has not been written to takes no room, whatever the number of entities."""
    triples = np.array([[0, 0, 100_000], [100_000, 1, 199_999], [5, 1, 0]], np.int32)
    vocabularies = unlabelled(200_000, "entity"), unlabelled(2, "relation")
    graph = KnowledgeGraph("wide", *vocabularies, triples, triples[:0], triples[:0])
    settings = TrainingSettings(dimension=64, epochs=2, loss=loss, negatives=3, unit_ball=True)
    train(graph, COMPLEX, settings, seed=0, clock=clock(), storage=Storage(tmp_path))
    sums = (tmp_path / "entity_sums.sum.f32").stat()
    assert sums.st_size == 200_000 * 64 * 4
    touched = 2 * (4 + 3 * 3)  # entities of the triples and negatives, in two epochs
    assert sums.st_blocks * 512 <= 2 * 4096 * touched + 65_536


def test_losses_over_all_entities_are_not_trained_on_disk(tmp_path):
    with pytest.raises(UserError, match="the multiclass loss changes all rows in every step"):
        train(
            random_graph(),
            COMPLEX,
            replace(SETTINGS, loss="multiclass"),
            seed=0,
            clock=clock(),
            storage=Storage(tmp_path),
        )


def test_a_disk_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"entities\.f32: cannot be made for 20 x 8 numbers"):
        start(random_graph(), SETTINGS, 0, Storage(tmp_path / "file"))


def test_the_last_weights_are_in_a_checkpoint_once_when_they_are_the_best(tmp_path):
    rising = iter([0.1, 0.2, 0.3, 0.4])
    trained = train(random_graph(), COMPLEX, SETTINGS, seed=0, clock=clock(), validate=lambda _: next(rising))
    assert trained.state.best_entities is trained.state.entities  # no copy after the last epoch
    assert "best_entities" not in tensors(trained.state)
    save_checkpoint(tmp_path / "checkpoint", trained.state, {})
    found = load_checkpoint(tmp_path / "checkpoint", {})
    assert torch.equal(found.best_entities, trained.state.entities)
    longer = train(random_graph(), COMPLEX, replace(SETTINGS, epochs=5), seed=0, clock=clock(), state=found)
    assert torch.equal(longer.state.best_entities, trained.state.entities)
    assert not torch.equal(longer.state.entities, trained.state.entities)


def test_checkpoints_are_the_more_seldom_the_longer_writing_takes():
    now = 0.0
    pace = Pace(20, lambda: now)

    def save():
        nonlocal now
        now += 5

    now = 21
    assert pace.is_due()
    pace.write(save)
    now += 99
    assert not pace.is_due()
    now += 2
    assert pace.is_due()


def test_numbers_that_are_not_finite_are_found_in_any_part():
    rows = torch.zeros(ROWS + 2, 1)
    assert is_finite(rows)
    rows[-1] = np.inf
    assert not is_finite(rows)
