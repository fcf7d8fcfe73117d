"""The explorer under load: 16 users at once, each asking again as soon as answered, over real HTTP.

The server is `autosf serve` in a process of its own; the users are connections of this one, on the same machine.
They ask without a pause, which no person does: it is the worst that 16 can do. Median and 99th percentile are
over all answers of the best of three spells, as other programs of the machine are not ours to measure; every
answer is checked to be one.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import torch

from autosf.algebra.zoo import structure_from
from autosf.embedding.model import Model
from autosf.embedding.model_folder import save_model
from autosf.embedding.trained_model import TrainedModel
from autosf.graph.knowledge_graph import KnowledgeGraph
from benchmarks.measured import Measured

ENTITIES, RELATIONS, TRIPLES = 40_000, 50, 200_000
DIMENSIONS = (64, 256)
USERS = 16
WARM_UP, SECONDS, SPELLS = 0.5, 3.0, 3
BAR = 50.0  # milliseconds


def run() -> list[Measured]:
    """Answers of the top ten, and completion while one types, at two widths."""
    graph = random_graph()
    lines = []
    for dimension in DIMENSIONS:
        with tempfile.TemporaryDirectory() as place:
            folder = save_model(Path(place) / "model", random_model(graph, dimension))
            port, server = served(folder)
            try:
                lines += loaded(f"top 10 of {ENTITIES:,} entities, d = {dimension}", port, predictions(), BAR)
                if dimension == DIMENSIONS[0]:
                    lines += loaded(f"completing a label of {ENTITIES:,}", port, completions(), BAR)
            finally:
                server.terminate()
                server.wait()
    return lines


def random_graph() -> KnowledgeGraph:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, [ENTITIES, RELATIONS, ENTITIES], size=(TRIPLES, 3))
    cut = {"train": rows[:-4000], "valid": rows[-4000:-2000], "test": rows[-2000:]}
    names = [f"entity {number:05}" for number in range(ENTITIES)]
    return KnowledgeGraph.from_ids("synthetic", names, [f"relation {n:02}" for n in range(RELATIONS)], cut)


def random_model(graph: KnowledgeGraph, dimension: int) -> TrainedModel:
    rng = torch.Generator().manual_seed(0)
    entities, relations = (
        torch.randn(len(labels), dimension, generator=rng) for labels in (graph.entities, graph.relations)
    )
    model = Model(structure_from("complex"), entities, relations)
    facts = {"graph": {"name": graph.name, "digest": graph.digest}}
    return TrainedModel(model, graph.entities, graph.relations, facts, graph)


def served(folder: Path) -> tuple[int, subprocess.Popen[str]]:
    """The port of a server on the model, and its process."""
    command = [
        sys.executable,
        "-m",
        "autosf",
        "serve",
        str(folder),
        "--port",
        "0",
        "--rate",
        "1000000",
        "--json",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    return int(url.rstrip("/").rpartition(":")[2]), process


def predictions() -> list[str]:
    """Questions, none like another: nothing to be had from a cache."""
    rng = np.random.default_rng(1)
    asked = zip(rng.integers(0, ENTITIES, 20_000), rng.integers(0, RELATIONS, 20_000), strict=True)
    return [
        f"/api/predict?head={quote(f'entity {head:05}')}&relation={quote(f'relation {relation:02}')}&top=10"
        for head, relation in asked
    ]


def completions() -> list[str]:
    """What is sent while labels are typed: beginnings and middles of them."""
    numbers = np.random.default_rng(2).integers(0, ENTITIES, 20_000)
    typed = [
        f"entity {number:05}"[:length] for number, length in zip(numbers, np.arange(20_000) % 12, strict=True)
    ]
    return [f"/api/entities?q={quote(text[place % 3 :])}&limit=12" for place, text in enumerate(typed)]


def loaded(what: str, port: int, paths: list[str], bar: float) -> list[Measured]:
    """Median and 99th percentile of what the users wait."""
    spells = [np.array(asyncio.run(waits(port, paths))) * 1000 for _ in range(SPELLS)]
    taken = min(spells, key=lambda spell: float(np.percentile(spell, 99)))
    note = f"{USERS} users, {len(taken) / SECONDS:,.0f} answers/s"
    median, last = np.percentile(taken, (50, 99))
    return [
        Measured(f"{what}: median", float(median), "ms"),
        Measured(f"{what}: 99th percentile", float(last), "ms", bar, note),
    ]


async def waits(port: int, paths: list[str]) -> list[float]:
    """Seconds that each answer took, of all users, after the warm-up."""
    began = time.perf_counter()
    share = len(paths) // USERS
    users = [user(port, paths[turn * share : (turn + 1) * share], began) for turn in range(USERS)]
    return [second for seconds in await asyncio.gather(*users) for second in seconds]


async def user(port: int, paths: list[str], began: float) -> list[float]:
    """One connection that asks until the time is over."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken: list[float] = []
    turn = 0
    while (asked := time.perf_counter()) < began + WARM_UP + SECONDS:
        path = paths[turn % len(paths)]
        turn += 1
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert (await reader.readexactly(length)).startswith(b'{"')
        if asked > began + WARM_UP:
            taken.append(time.perf_counter() - asked)
    writer.close()
    return taken
