"""Trials are run by a Ray cluster: tasks that ask for CPUs or GPUs, wherever there is room for them.

Nodes may come and go. The driver alone writes: records into the ledger, and the states that trials send back into
the run folder, from where they travel with the next attempt. A lost node costs what its trials have done since
their last state. Tasks belong to their driver and end with it, however it ends.
"""

from __future__ import annotations

import logging
import os
import socket
from collections import Counter, deque
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from math import floor, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.errors import UserError, lacks_extra, quoted
from autosf.runs.cluster_trial import Means, trial_messages, versions
from autosf.runs.shared_graph import stored
from autosf.runs.task import record_from_json, task_as_json
from autosf.runs.workers import PATIENT, POLL_SECONDS, STARTS, Progress, longest_silence, may_try_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import ModuleType

    from autosf.runs.task import Task
    from autosf.runs.workers import Crew, Ears, Place

LOCAL = "local"  # the address of a cluster of this machine alone, which lasts as long as the search
AUTO = "auto"  # the cluster that this machine is a node of
CONNECT_SECONDS = 10.0
NODES_LOST = 20  # under one trial, before that is taken for its own fault
COUNT_SECONDS = 2.0  # between two looks at the nodes


@dataclass(frozen=True, slots=True)
class Site:
    """Where trials run and what each of them asks for; no result depends on it, but for CPU or GPU."""

    address: str = LOCAL
    cpus: float | None = None  # as many as a trial has threads
    gpus: float = 0.0  # above 0 it trains on one, or on its share of one
    most: int | None = None  # trials at once; as many as there is room for


@dataclass(slots=True, eq=False)
class Post:
    """A task under way: its messages, and since when it is silent; `node` once it has begun on one.

    `began` is by the driver's clock: those of the nodes may go otherwise.
    """

    task: Task
    slot: int
    stream: Any
    node: str = ""
    address: str = ""
    began: float = 0.0
    silent: float = 0.0
    computing: float = 0.0  # seconds in which it said no more than that


class Cluster:
    """Owns the connection to a cluster and the tasks on it; leaving its block ends them all."""

    def __init__(self, site: Site, place: Place, crew: Crew, ears: Ears, clock: Callable[[], float]) -> None:
        self._site, self._place, self._crew, self._ears, self._clock = site, place, crew, ears, clock
        self._cpus = place.threads if site.cpus is None else site.cpus
        self._waiting: deque[Task] = deque()
        self._posts: list[Post] = []
        self._tried: Counter[Task] = Counter()
        self._nodes_lost: Counter[Task] = Counter()
        self._false_starts = 0
        self._slowest: float | None = None  # silence before an epoch's end
        self._last_poll = self._last_count = -inf
        self._room = 1
        self._open = ExitStack()

    def __enter__(self) -> Cluster:
        with ExitStack() as opening:
            self._ray = opening.enter_context(connected(self._site.address, self._place.logs / "ray.log"))
            self._graph = self._ray.put(stored(self._place.graph_folder))
            self._begin = self._ray.remote(
                num_returns="streaming", max_retries=0, num_cpus=self._cpus, num_gpus=self._site.gpus
            )(trial_messages)
            if self._site.address == LOCAL and not self._count():
                raise UserError(f"this machine has no room for a trial that asks for {self._asked()}")
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._open.close()

    def slots(self) -> int:
        """How many tasks are run at once: as many as wished for, or as the nodes there are have room for."""
        if self._site.most is not None:
            return self._site.most
        if self._clock() - self._last_count > COUNT_SECONDS:
            self._room, self._last_count = max(1, self._count()), self._clock()
        return self._room

    def open_tasks(self) -> int:
        """How many tasks are not finished."""
        return len(self._waiting) + len(self._posts)

    def add(self, tasks: Sequence[Task]) -> None:
        """Take on more tasks, to be begun in their order."""
        self._waiting.extend(tasks)
        self._last_poll = self._clock()

    def turn(self) -> None:
        """Let a moment pass: tasks are begun, and whatever is heard is told, a finished one at once."""
        self._ears.tick()
        self._submit()
        self._replace_silent(self._listen())

    def stop(self) -> None:
        """End all tasks at once; they can go on from the last states they have sent."""
        self._waiting.clear()
        while self._posts:
            self._ray.cancel(self._posts.pop().stream, force=True)

    def _count(self) -> int:
        """How many trials the nodes have room for together, if nobody else uses them."""
        return sum(self._fitting(node["Resources"]) for node in self._ray.nodes() if node["Alive"])

    def _is_alive(self, node: str) -> bool:
        return any(known["NodeID"] == node and known["Alive"] for known in self._ray.nodes())

    def _fitting(self, has: Mapping[str, float]) -> int:
        asked = {"CPU": self._cpus, "GPU": self._site.gpus}
        room = [has.get(kind, 0.0) / count for kind, count in asked.items() if count]
        return floor(min(room, default=1.0) + 1e-6)

    def _asked(self) -> str:
        return f"{self._cpus:g} CPUs" + (f" and {self._site.gpus:g} GPUs" if self._site.gpus else "")

    def _submit(self) -> None:
        """Hand over all that is wished for at once: Ray keeps what waits, and a cluster that can grow sees it."""
        while self._waiting and len(self._posts) < (self._site.most or inf):
            task = self._waiting.popleft()
            means = Means(self._place.threads, "cuda" if self._site.gpus else "cpu")
            stream = self._begin.remote(task_as_json(task), self._graph, content(task.checkpoint), means)
            taken = {post.slot for post in self._posts}
            slot = next(number for number in range(len(taken) + 1) if number not in taken)
            self._posts.append(Post(task, slot, stream))

    def _listen(self) -> set[int]:
        """Wait a moment for messages and act on them; the slots that said something, or have ended."""
        streams = {post.stream: post for post in self._posts}
        if not streams:
            return set()
        first, _ = self._ray.wait(list(streams), timeout=POLL_SECONDS)
        if not first:
            return set()
        ready, _ = self._ray.wait(list(streams), num_returns=len(streams), timeout=0)
        heard = [streams[stream] for stream in ready or first]
        for post in heard:
            self._hear(post)
        return {post.slot for post in heard}

    def _hear(self, post: Post) -> None:
        """Take the next message of a stream, or learn why there is none."""
        from ray.exceptions import NodeDiedError, ObjectLostError, RayError, RayTaskError

        try:
            message = self._ray.get(next(post.stream))
        except StopIteration:
            self._fail(post, "ended without a record")
        except RayTaskError as error:
            self._fail(post, f"{type(error.cause).__name__}: {first_line(error.cause)}")
        except (NodeDiedError, ObjectLostError):
            self._lose(post)
        except RayError as error:  # its process has died, with or without its node
            if post.node and not self._is_alive(post.node):
                self._lose(post)
            else:
                self._fail(post, f"worker on node {post.address or '?'}: {first_line(error)}")
        else:
            self._act(post, message)

    def _act(self, post: Post, message: dict[str, Any]) -> None:
        """Do what a trial's message asks for."""
        post.computing = post.computing + message["computing"] if "computing" in message else 0.0
        if "began" in message:
            post.node, post.address, self._false_starts = message["node"], message["address"], 0
            post.began = self._clock()
            refuse_other_versions(message)
        elif "epoch" in message:
            self._slowest = max(self._slowest or 0.0, post.silent)
            told = (message["epoch"], message["loss"], message["valid_mrr"])
            self._ears.progress(Progress(post.slot, post.task.trial, *told))
        elif "note" in message:
            self._ears.failed(post.task.trial, message["note"])
        elif "state" in message:
            self._keep(post.task, message["state"])
        elif "record" in message:
            self._posts.remove(post)
            attempts = self._tried.pop(post.task, 0) + self._nodes_lost.pop(post.task, 0) + 1
            elapsed = self._clock() - post.began
            self._ears.finished(post.task, record_from_json(message["record"]), attempts, elapsed)
        elif "error" in message:
            self._log(message["trace"])
            self._fail(post, message["error"])

    def _keep(self, task: Task, state: bytes) -> None:
        """Write a state into the run folder, whole or not at all; without it a trial is slower, not wrong."""
        path = Path(task.checkpoint)
        beside = path.with_name(path.name + ".arrived")
        try:
            beside.write_bytes(state)
            beside.replace(path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            self._ears.failed(task.trial, f"no checkpoint: {error}")

    def _fail(self, post: Post, why: str) -> None:
        """Try a trial once more, or not; one that could not even begin is the cluster's fault."""
        self._posts.remove(post)
        if not post.node:
            self._false_starts += 1
            if self._false_starts >= STARTS:
                raise UserError(
                    f"cluster {quoted(self._site.address)}: trials cannot start, {why};"
                    " is the same autosf installed on every node?"
                )
            self._waiting.appendleft(post.task)
        else:
            elapsed = self._clock() - post.began
            if may_try_again(post.task, why, elapsed, self._tried, self._crew, self._ears):
                self._waiting.appendleft(post.task)

    def _lose(self, post: Post) -> None:
        """Go on without a node: that is no fault of its trials, unless it happens to one again and again."""
        self._nodes_lost[post.task] += 1
        why = f"node {post.address or '?'} was lost"
        if self._nodes_lost[post.task] > NODES_LOST:
            return self._fail(post, why)
        self._posts.remove(post)
        self._ears.failed(post.task.trial, why)
        return self._waiting.appendleft(post.task)

    def _replace_silent(self, heard: set[int]) -> None:
        """End trials that should have said something by now; one that waits for a place may wait for ever.

        Silence is counted in polls: time in which the driver itself was stopped or asleep tells nothing.
        """
        now = self._clock()
        passed, self._last_poll = min(now - self._last_poll, 5 * POLL_SECONDS), now
        for post in list(self._posts):
            post.silent = 0.0 if post.slot in heard or not post.node else post.silent + passed
            longest = longest_silence(self._crew, self._slowest)
            if post.silent > longest or (self._slowest and post.computing > PATIENT * longest):
                self._ray.cancel(post.stream, force=True)
                silent = post.silent + post.computing
                self._fail(post, f"was silent for {silent:.0f} s on node {post.address} and was ended")

    def _log(self, text: str) -> None:
        with (self._place.logs / "cluster.log").open("a", encoding="utf-8") as file:
            file.write(text)


def content(path: str) -> bytes | None:
    """A checkpoint's bytes, if there is one."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return None


def first_line(error: BaseException) -> str:
    """What an error says first, in quotes."""
    return quoted(next(iter(str(error).strip().splitlines()), type(error).__name__), 300)


def refuse_other_versions(message: Mapping[str, Any]) -> None:
    """Raise unless the node has what the driver has: other versions, other results."""
    here = versions()
    for name, found in message["versions"].items():
        if found != here[name]:
            raise UserError(
                f"node {message['address']}: expected {name} {here[name]}, as the driver has, found {found};"
                " install the same on all nodes"
            )


@contextmanager
def connected(address: str, log: Path) -> Iterator[ModuleType]:
    """Ray, connected; disconnected again at the end, unless the program was connected before.

    Ray prints the news of its nodes to stdout, where results go: while it is connected they go to the log.
    """
    ray = ray_module()
    with log.open("a", encoding="utf-8") as file, redirect_stdout(file):
        if ray.is_initialized():
            yield ray
            return
        refuse_unreachable(address)
        try:
            ray.init(**how_to_connect(address))
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UserError(f"cluster {quoted(address)}: cannot connect: {first_line(error)}") from None
        try:
            yield ray
        finally:
            ray.shutdown()


def refuse_unreachable(address: str) -> None:
    """Raise unless somebody listens at the address: Ray itself would go on trying without a word."""
    if address in (LOCAL, AUTO):
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdigit():
        raise UserError(
            f"cluster {quoted(address)}: expected the head's address as host:port, auto or local;"
            " run the search on a node of the cluster"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"cluster {quoted(address)}: nobody answers there ({error})") from None


def how_to_connect(address: str) -> dict[str, Any]:
    """Ray's options: quiet, without a dashboard, and telling nobody of its use."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # What Ray will do anyway, but without a warning.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    return {"address": address, **quiet} | ({"include_dashboard": False} if address == LOCAL else {})


def ray_module() -> ModuleType:
    """Ray, which is an extra."""
    try:
        import ray
    except ImportError:
        raise lacks_extra("--cluster", "ray") from None
    module: ModuleType = ray
    return module
