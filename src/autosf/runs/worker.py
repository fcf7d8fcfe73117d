"""A worker process: trials come in as JSON lines, heartbeats and records go out, until the driver is gone.

Started by `workers.py` as `python -m autosf.runs.worker GRAPH_FOLDER THREADS DRIVER_PID`.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.embedding.state import Epoch

PR_SET_PDEATHSIG = 1  # of Linux's prctl
TELL_SECONDS = 0.1  # between two epochs that are told of


def main(graph_folder: str, threads: str, driver: str) -> None:
    """Serve trials until there are no more."""
    die_with(int(driver))
    tell = teller()
    orders = Orders()
    threading.Thread(target=listen, args=(orders,), daemon=True).start()
    serve(Path(graph_folder), int(threads), orders, tell)


def die_with(driver: int) -> None:
    """End when the driver ends, however it ends: the kernel sees to it on Linux, `listen` everywhere."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != driver:  # it was gone before we could ask
        os._exit(1)


def teller() -> Callable[..., None]:
    """A function that sends a message to the driver; what libraries print goes to the log instead."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**message: Any) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    return tell


@dataclass(slots=True)
class Orders:
    """What the driver wants: batches of tasks, numbered from 1, of which those up to `ended` are to be let go."""

    batches: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)
    ended: int = 0


def listen(orders: Orders) -> None:
    """Pass orders on as they come; a closed pipe means that there is nobody left to work for."""
    for line in sys.stdin:
        message = json.loads(line)
        if "stop" in message:
            orders.ended = message["stop"]
        else:
            orders.batches.put(message)
    os._exit(0)


def serve(graph_folder: Path, threads: int, orders: Orders, tell: Callable[..., None]) -> None:
    """Run each task and send its record, or what went wrong with it."""
    from autosf.runs.shared_graph import shared

    seen = shared(graph_folder)  # before the slow imports: a fault of the folder shows at once

    import torch

    from autosf.runs.task import record_as_json, task_from_json
    from autosf.runs.telling import now_and_then
    from autosf.runs.trial import Outside, Stopped
    from autosf.runs.trials import run_trials

    torch.set_num_threads(threads)

    def outside(place: int, number: int, told: Callable[[int, Epoch], None]) -> Outside:
        def heard(epoch: Epoch) -> bool:
            told(place, epoch)
            return number > orders.ended

        return Outside(time.perf_counter, heard, lambda text: tell(place=place, note=text))

    tell(ready=os.getpid())
    while True:
        batch, told = orders.batches.get(), now_and_then(tell, TELL_SECONDS, time.monotonic)
        together, number = [task_from_json(task) for task in batch["tasks"]], batch["number"]
        try:
            asked = [(task, outside(place, number, told)) for place, task in enumerate(together)]
            for place, record in run_trials(asked, seen):
                tell(place=place, record=record_as_json(record))
        except Stopped:
            tell(stopped=number)
        except Exception as error:  # whatever it is, the search goes on without this trial
            tell(error=f"{type(error).__name__}: {error}"[:500])
            with suppress(OSError):  # a full disk has no room for the log either
                traceback.print_exc()


if __name__ == "__main__":
    main(*sys.argv[1:])
