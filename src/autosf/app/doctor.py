"""Whether this machine and installation are fit for the work: each check a line, with what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from autosf import __version__
from autosf.app.sizes import size_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OK, WARNING, OPTIONAL = "ok", "warning", "optional"
PACKAGES = ("torch", "polars", "numpy", "scikit-learn", "optuna")
EXTRAS = {  # what each is for, and the module that shows whether it is there
    "web": ("the live view and explorer", "starlette"),
    "ray": ("searches on many machines", "ray"),
    "pykeen": ("its graphs and models", "pykeen"),
    "rdf": ("reading N-Triples, Turtle and RDF/XML", "pyoxigraph"),
    "mlflow": ("tracking with MLflow", "mlflow"),
    "tensorboard": ("tracking with TensorBoard", "tensorboard"),
}
LITTLE_MEMORY, LITTLE_DISK = 2e9, 2e9  # bytes
SLOW = 5e9  # operations a second: a tenth of what one core does since 2015
SPEED_SIDE, SPEED_SECONDS = 1024, 1.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; `status` is ok, warning or optional, and the last two come with advice."""

    check: str
    status: str
    found: str
    advice: str = ""


def findings() -> Iterator[Finding]:
    """All checks in turn. One that fails is a finding, too: whatever is broken, the others are told."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            yield Finding(check.__name__, WARNING, told, "a new environment often mends it; else report it")


def installation() -> Iterator[Finding]:
    """Versions of what is always needed, and which of the extras are there."""
    yield Finding(
        "autosf", OK, f"{__version__}, Python {platform.python_version()} on {platform.platform(terse=True)}"
    )
    yield Finding("packages", OK, ", ".join(f"{name} {version(name)}" for name in PACKAGES))
    for extra, (purpose, module) in EXTRAS.items():
        if find_spec(module):
            yield Finding(f"extra {extra}", OK, f"{purpose}: {module} {version_of(module)}")
        else:
            yield Finding(
                f"extra {extra}", OPTIONAL, f"not installed; for {purpose}", f'pip install "autosf[{extra}]"'
            )


def version_of(module: str) -> str:
    """The version of a module's package; a slim build may bear another name."""
    for name in (module, f"{module}-skinny"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def cores() -> Iterator[Finding]:
    """How many this process may use, and whether others use them, too."""
    from autosf.app.request import cores as usable

    there, own = os.cpu_count() or 1, usable()
    found = f"{own}" if own == there else f"{own} of the machine's {there}"
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    share = processor_share()
    if share is not None and share < own:
        advice = f"threads would wait for each other: --workers {max(1, round(share))} --threads 1"
        yield Finding("cores", WARNING, f"{found}, of which the container gets {share:g}", advice)
    elif busy > own + 1:
        yield Finding(
            "cores", WARNING, f"{found}, with a load of {busy:.1f}", "others are at work: trials take longer"
        )
    else:
        yield Finding("cores", OK, found)


def processor_share(root: Path = Path("/")) -> float | None:
    """How many cores' time a Linux control group allows; None where it sets no limit."""
    try:
        most, period = map(float, (root / "sys/fs/cgroup/cpu.max").read_text().split())
    except (OSError, ValueError):  # no such group, or "max": no limit
        return None
    return most / period


def memory() -> Iterator[Finding]:
    """What is available; within a container, of what that may have."""
    free = available_memory()
    if free is None:
        yield Finding("memory", OK, "unknown on this system")
    elif free < LITTLE_MEMORY:
        advice = "enough for small graphs; --workers 1 and a lower --dimension need less"
        yield Finding("memory", WARNING, f"{size_in_words(free)} available", advice)
    else:
        yield Finding("memory", OK, f"{size_in_words(free)} available")


def available_memory(root: Path = Path("/")) -> float | None:
    """Bytes, by what Linux says of itself and of the control group; None elsewhere."""
    try:
        lines = dict(line.split(":") for line in (root / "proc/meminfo").read_text().splitlines())
        found = float(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None
    group = root / "sys/fs/cgroup"
    try:
        most, used = (float((group / name).read_text()) for name in ("memory.max", "memory.current"))
        return min(found, max(0.0, most - used))
    except (OSError, ValueError):  # no such group, or "max": no limit
        return found


def disk() -> Iterator[Finding]:
    """Where run folders go unless told otherwise."""
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{size_in_words(free)} free here"
    if not os.access(Path.cwd(), os.W_OK):
        yield Finding(
            "disk", WARNING, "this folder cannot be written to", "name another with --out, or change folder"
        )
    elif free < LITTLE_DISK:
        yield Finding("disk", WARNING, found, "a search keeps checkpoints: name a larger place with --out")
    else:
        yield Finding("disk", OK, found)


def device() -> Iterator[Finding]:
    """What `--device auto` takes, and the threads of the CPU."""
    import torch

    from autosf.app.request import cores as usable
    from autosf.app.training import device_of

    chosen = device_of("auto")
    name = torch.cuda.get_device_name() if chosen == "cuda" else {"mps": "Apple's GPU"}.get(chosen, "no GPU")
    yield Finding("device", OK, f"{chosen} ({name})")
    threads, own = torch.get_num_threads(), usable()
    limit = os.environ.get("OMP_NUM_THREADS")
    found = f"{threads} for {own} cores" + (f", OMP_NUM_THREADS is {limit}" if limit else "")
    if threads > own:
        yield Finding("threads", WARNING, found, f"more than cores is slower: export OMP_NUM_THREADS={own}")
    elif threads < own and limit:
        yield Finding("threads", WARNING, found, "a single training may use all cores: unset OMP_NUM_THREADS")
    else:
        yield Finding("threads", OK, found)


def kernel() -> Iterator[Finding]:
    """Whether training on the CPU has its compiled passes over the scores, or does with torch's."""
    from autosf.embedding.compiled import Uncompiled, built

    try:
        yield Finding(
            "kernel", OK, f"compiled for this processor, {built(os.environ).panel} queries at a time"
        )
    except Uncompiled as reason:
        advice = "training takes up to 1.6 times as long as with one: apt-get install gcc, or the like"
        yield Finding("kernel", OPTIONAL, f"torch's products ({reason})", advice)


def data() -> Iterator[Finding]:
    """The folders where graphs are looked for, and what is in them."""
    from autosf.graph.registry import graph_folders, search_path

    named = os.environ.get("AUTOSF_DATA")
    if named and not Path(named).is_dir():
        yield Finding("data", WARNING, f"$AUTOSF_DATA names no folder: {named}", "correct it, or unset it")
    found: dict[str, str] = {}
    for folder in search_path(os.environ):
        for child in graph_folders(folder):
            found.setdefault(child.name.casefold(), child.name)
    if found:
        yield Finding("graphs", OK, ", ".join(found.values()))
    else:
        yield Finding("graphs", OPTIONAL, "none by name", "autosf data get WN18RR, or give your own folder")


def speed() -> Iterator[Finding]:
    """Matrix products, which are most of a training."""
    import torch

    side = torch.randn(SPEED_SIDE, SPEED_SIDE)
    product, times = torch.mm(side, side), 0
    began = time.perf_counter()
    while (spent := time.perf_counter() - began) < SPEED_SECONDS:
        torch.mm(side, side, out=product)
        times += 1
    rate = times * 2 * SPEED_SIDE**3 / spent
    found = f"{rate / 1e9:,.0f} billion operations a second in matrix products"
    if rate < SLOW:
        yield Finding("speed", WARNING, found, "far below a usual core: is the machine busy, or emulated?")
    else:
        yield Finding("speed", OK, found)


def training() -> Iterator[Finding]:
    """A model of a made graph, trained and asked."""
    from autosf.app.training import train_model
    from autosf.graph.synthetic import patterned_graph

    graph = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1, test=0.1)
    began = time.perf_counter()
    model = train_model(graph, dimension=8, epochs=5, device="auto")
    model.predict_tails(graph.entities.label(0), graph.relations.label(0), top=1)
    losses = [epoch["loss"] for epoch in model.facts["curve"]]
    spent = time.perf_counter() - began
    found = f"5 epochs of a tiny graph in {spent:.2f} s, its loss {losses[0]:.2f} to {losses[-1]:.2f}"
    if losses[-1] < losses[0]:
        yield Finding("training", OK, found)
    else:
        yield Finding(
            "training",
            WARNING,
            found,
            f"it should fall: reinstall torch ({sys.executable} -m pip install torch)",
        )


CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    installation,
    cores,
    memory,
    disk,
    device,
    kernel,
    data,
    speed,
    training,
)
