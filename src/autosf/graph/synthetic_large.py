"""A large graph with skewed degrees, written to disk a chunk at a time: any size in constant memory."""

from __future__ import annotations

import gzip
import shutil
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, cast

import numpy as np
import polars as pl

from autosf.errors import UserError, quoted
from autosf.graph.keys import triple_keys
from autosf.graph.knowledge_graph import SPLITS
from autosf.graph.synthetic import label_column
from autosf.whole import whole_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

FORMS = ("tsv", "tsv.gz", "parquet")
HEADS_AT_ONCE = 250_000


@dataclass(frozen=True, slots=True)
class LargeGraph:
    """A graph to be made: exact sizes and seed. Every entity is a head in train; no triple is repeated."""

    entities: int
    relations: int
    triples: int
    valid: int = 0
    test: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        train = self.triples - self.valid - self.test
        if self.entities < 2 or self.relations < 1 or min(self.valid, self.test) < 0:
            raise UserError("synthetic graph: expected at least 2 entities, 1 relation and no negative size")
        if self.relations > self.entities:
            raise UserError(
                f"synthetic graph: expected no more relations than entities ({self.entities:,}),"
                f" found {self.relations:,}"
            )
        if train < self.entities:
            raise UserError(
                f"synthetic graph: expected a train triple for each of {self.entities:,} entities, found"
                f" {max(train, 0):,}: of {self.triples:,} triples valid has {self.valid:,}, test {self.test:,}"
            )
        if self.triples > self.entities * self.entities * self.relations // 4:
            raise UserError(
                f"synthetic graph: {self.triples:,} triples are too dense for {self.entities:,} entities"
            )


def write_large_graph(
    graph: LargeGraph, folder: Path, *, form: str = "tsv", progress: Callable[[int], None] = lambda _: None
) -> None:
    """Write `train`, `valid` and `test` into a new folder; `progress` hears how many triples are written."""
    if form not in FORMS:
        raise UserError(f"unknown form {quoted(form)}; expected one of {', '.join(FORMS)}")
    if folder.exists():
        raise UserError(f"{folder}: expected a folder that does not exist yet")
    write = _write_parquet if form == "parquet" else _write_text
    with whole_folder(folder) as beside:
        write(graph, beside, form, progress)


def chunks(graph: LargeGraph) -> Iterator[dict[str, NDArray[np.int64]]]:
    """The triples by split, [n, 3] ids each, a range of heads at a time: so no triple can come twice."""
    ranges = -(-graph.entities // HEADS_AT_ONCE)
    edges = np.linspace(0, graph.entities, ranges + 1).astype(np.int64)
    sizes = {split: getattr(graph, split) for split in ("valid", "test")} | {"all": graph.triples}
    for place, (low, high) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        due = {name: _due(size, high, graph) - _due(size, low, graph) for name, size in sizes.items()}
        rng = np.random.default_rng([graph.seed, place])
        triples = _triples_of_heads(rng, graph, low, high, due["all"])
        yield _dealt(rng, triples, high - low, due["valid"], due["test"])


def _due(size: int, reached: int, graph: LargeGraph) -> int:
    """How many of `size` triples belong to the first `reached` heads: exact whole numbers that add up."""
    return size * reached // graph.entities


def _triples_of_heads(
    rng: np.random.Generator, graph: LargeGraph, low: int, high: int, count: int
) -> NDArray[np.int64]:
    """`count` distinct triples with heads in [low, high), each of these first once. [count, 3]"""
    heads = np.arange(low, high)
    once = _drawn(rng, graph, heads)
    once[:, 1] = np.where(heads < graph.relations, heads, once[:, 1])  # the first heads show all relations
    found = once
    while len(found) < count:
        extra = _drawn(rng, graph, low + _skewed(rng, high - low, (count - len(found)) * 11 // 10 + 8))
        found = np.concatenate([found, extra])
        (keys,) = triple_keys([found.astype(np.int32)], entities=graph.entities, relations=graph.relations)
        _, first = np.unique(keys, return_index=True)
        found = found[np.sort(first)]
    return found[:count]


def _drawn(rng: np.random.Generator, graph: LargeGraph, heads: NDArray[np.int64]) -> NDArray[np.int64]:
    """A triple for each head, relation and tail drawn with skew; small numbers are the hubs."""
    relations = _skewed(rng, graph.relations, len(heads), steepness=2.0)
    return np.stack([heads, relations, _skewed(rng, graph.entities, len(heads))], axis=1)


def _skewed(rng: np.random.Generator, below: int, count: int, steepness: float = 3.0) -> NDArray[np.int64]:
    """Numbers in [0, below): number x comes about x^(1/steepness - 1) times as often as the first."""
    return np.minimum((below * rng.random(count) ** steepness).astype(np.int64), below - 1)


def _dealt(
    rng: np.random.Generator, triples: NDArray[np.int64], staying: int, valid: int, test: int
) -> dict[str, NDArray[np.int64]]:
    """The chunk by split; the first `staying` triples are train's."""
    mixed = staying + rng.permutation(len(triples) - staying)
    train = np.concatenate([np.arange(staying), np.sort(mixed[valid + test :])])
    return {
        "train": triples[train],
        "valid": triples[mixed[:valid]],
        "test": triples[mixed[valid : valid + test]],
    }


def _frame(graph: LargeGraph, triples: NDArray[np.int64]) -> pl.DataFrame:
    """Labels of a chunk; entities are renumbered by a bijection, so that hubs are spread over all labels."""
    step = _coprime_step(graph.entities)
    return pl.DataFrame(
        {
            "head": label_column("e", triples[:, 0] * step % graph.entities),
            "relation": label_column("r", triples[:, 1]),
            "tail": label_column("e", triples[:, 2] * step % graph.entities),
        }
    )


def _coprime_step(entities: int) -> int:
    """A step near the golden section of `entities` that visits every residue once."""
    step = max(int(entities * 0.618), 1)
    while np.gcd(step, entities) != 1:
        step += 1
    return step


def _write_text(graph: LargeGraph, folder: Path, form: str, progress: Callable[[int], None]) -> None:
    with ExitStack() as opened:
        files: dict[str, IO[bytes]] = {
            split: opened.enter_context(_opened(folder / f"{split}.{form}")) for split in SPLITS
        }
        for chunk in chunks(graph):
            for split, triples in chunk.items():
                _frame(graph, triples).write_csv(
                    files[split], separator="\t", include_header=False, quote_style="never"
                )
                progress(len(triples))


def _opened(path: Path) -> IO[bytes]:
    """A file to write; gzip without a time stamp, so that equal content is equal bytes."""
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(path, "wb", compresslevel=1, mtime=0))
    return path.open("wb")


def _write_parquet(graph: LargeGraph, folder: Path, form: str, progress: Callable[[int], None]) -> None:
    """One file a chunk, then one file a split, joined without holding it."""
    parts = folder / "parts"
    parts.mkdir()
    for place, chunk in enumerate(chunks(graph)):
        for split, triples in chunk.items():
            _frame(graph, triples).write_parquet(parts / f"{split}-{place:06d}.parquet")
            progress(len(triples))
    for split in SPLITS:
        pl.scan_parquet(parts / f"{split}-*.parquet").sink_parquet(folder / f"{split}.{form}")
    shutil.rmtree(parts)
