"""A trial as a Ray task, on whatever node it lands: a stream of the messages that a local worker would send.

The graph comes from the object store without being copied, the state to go on from with the task. States go
back as messages; the node's disk holds them only as long as it takes to write and read them.
"""

from __future__ import annotations

import os
import tempfile
import time
import traceback
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from autosf import __version__
from autosf.runs.shared_graph import search_graph
from autosf.runs.task import record_as_json, task_from_json
from autosf.runs.telling import now_and_then
from autosf.runs.workers import BUSY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from autosf.embedding.state import Epoch
    from autosf.runs.shared_graph import Stored

    Tell = Callable[[Mapping[str, Any] | None], None]

SIGN_SECONDS = 10.0  # of silence, after which a trial tells whether it computes
TELL_SECONDS = 0.5  # between two epochs that are told of: a thousand trials have one driver


@dataclass(frozen=True, slots=True)
class Means:
    """What a trial trains with."""

    threads: int
    device: str


def trial_messages(
    asked: Mapping[str, Any], graph: Stored, state: bytes | None, means: Means
) -> Iterator[Mapping[str, Any]]:
    """Where the trial runs, then epochs, notes and states as they come, at last its record or its error.

    It is trained by a thread: Ray's streams are generators, which cannot yield from within a training.
    """
    import ray

    messages: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
    node = ray.get_runtime_context().get_node_id()
    yield {"began": os.getpid(), "node": node, "address": address_here(), "versions": versions()}
    Thread(target=work, args=(asked, graph, state, means, messages.put), daemon=True).start()
    yield from with_signs_of_life(messages, SIGN_SECONDS)


def with_signs_of_life(
    messages: SimpleQueue[Mapping[str, Any] | None], seconds: float
) -> Iterator[Mapping[str, Any]]:
    """The messages up to None; after so many seconds without any, whether this process computes: the driver
    cannot see it, and a long validation is not a hang."""
    while True:
        before = time.process_time()
        try:
            message = messages.get(timeout=seconds)
        except Empty:
            if time.process_time() - before > BUSY * seconds:
                yield {"computing": seconds}
        else:
            if message is None:
                return
            yield message


def versions() -> dict[str, str]:
    """What has to be the same on all nodes for the results to be: builds for other devices count as the same."""
    return {"autosf": __version__, "torch": version("torch").partition("+")[0]}


def address_here() -> str:
    import ray

    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]


def work(asked: Mapping[str, Any], graph: Stored, state: bytes | None, means: Means, tell: Tell) -> None:
    """Run the trial and tell its record, or what went wrong with it; None is the last word."""
    import torch

    from autosf.runs.trial import Outside
    from autosf.runs.trials import run_trial

    try:
        torch.set_num_threads(means.threads)  # of this thread: Ray has set its own number for the process
        with tempfile.TemporaryDirectory(prefix="autosf-") as folder:
            checkpoint = Path(folder) / Path(asked["checkpoint"]).name
            if state is not None:
                checkpoint.write_bytes(state)
            told = now_and_then(lambda **message: tell(message), TELL_SECONDS, time.monotonic)

            def heard(epoch: Epoch) -> bool:
                checkpoint.unlink(missing_ok=True)  # it has been read: the node's disk keeps nothing
                told(0, epoch)
                return True

            outside = Outside(
                time.perf_counter,
                heard=heard,
                note=lambda text: tell({"note": text}),
                saved=lambda path: tell({"state": taken(path)}),
                device=means.device,
            )
            task = replace(task_from_json(asked), checkpoint=str(checkpoint))
            tell({"record": record_as_json(run_trial(task, search_graph(graph), outside))})
    except Exception as error:  # whatever it is, the search goes on without this trial
        tell({"error": f"{type(error).__name__}: {error}"[:500], "trace": traceback.format_exc()})
    finally:
        tell(None)


def taken(path: Path) -> bytes:
    """A file's bytes; the file is gone, so that a node that dies leaves none behind."""
    content = path.read_bytes()
    path.unlink()
    return content
