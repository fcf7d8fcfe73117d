"""Splits that a source lacks, made from its train triples; and a word on triples that splits share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING

import numpy as np

from autosf.counting import are, counted
from autosf.errors import UserError, quoted
from autosf.graph.keys import triple_keys
from autosf.graph.knowledge_graph import SPLITS, KnowledgeGraph
from autosf.graph.roles import SPLIT_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

SIEVE_BITS = 22
ALSO_IN_TRAIN = "also in train"  # ends the warnings on triples that splits share
SHARE = 0.1  # of a graph that comes without splits, for valid and for test


@dataclass(frozen=True, slots=True)
class Making:
    """How much of train makes a split that is missing: a number of triples, a share below 1; None refuses."""

    valid: float | None = None
    test: float | None = None
    seed: int = 0


def refuse_missing(present: Collection[str], making: Making, place: str) -> None:
    """Raise unless train is present, valid is or is to be made, and none is both; a size of 0 asks for nothing.

    Without a test split there is a model, and nothing to measure it on.
    """
    if "train" not in present:
        raise UserError(f"{place}: no train split; found {', '.join(present)}")
    if "valid" not in present and making.valid is None:
        words = " or ".join(SPLIT_WORDS["valid"])
        found = f"expected {words} beside {' and '.join(sorted(present, key=SPLITS.index))}"
        raise UserError(
            f"{place}: no valid split; {found}; make_valid=0.1 takes a tenth of train for it in Python,"
            f" `autosf data split{' --keep-test' if 'test' in present else ''}` makes a graph that has one"
        )
    for split, size in (("valid", making.valid), ("test", making.test)):
        if split in present and size:
            raise UserError(f"{place}: make_{split}: there is a {split} split already; leave the option out")


def refuse_no_numbers(making: Making) -> None:
    """Raise unless the sizes are numbers or None, and the seed is a whole number from 0."""
    for split, size in (("valid", making.valid), ("test", making.test)):
        if size is not None and not isinstance(size, Real):
            expected = "expected a share below 1 or a whole number of triples"
            raise UserError(f"make_{split}: {expected}, found {_spelt(size)}")
    if not isinstance(making.seed, Integral) or making.seed < 0:
        raise UserError(f"seed: expected a whole number from 0, found {_spelt(making.seed)}")


def _spelt(value: object) -> str:
    return quoted(value) if isinstance(value, str) else quoted(repr(value))[1:-1]


def completed(graph: KnowledgeGraph, making: Making) -> KnowledgeGraph:
    """The graph with splits of the given sizes taken from train; every entity and relation stays in train."""
    if not making.valid and not making.test:
        return graph
    from autosf.graph.splitting import refuse_all, split

    sizes = {"valid": making.valid or 0, "test": making.test or 0}
    refuse_all(len(graph.train), **sizes)
    made = split(in_order(graph), len(graph.entities), len(graph.relations), **sizes, seed=making.seed)
    parts = {"train": made.train}
    parts |= {"valid": made.valid} if making.valid else {}
    parts |= {"test": made.test} if making.test else {}
    for part in parts.values():
        part.flags.writeable = False
    told = ", ".join(f"{len(part):,} {name}" for name, part in parts.items())
    warnings = [f"split the triples into {told} (seed {making.seed})"]
    repeated = len(graph.train) - sum(map(len, parts.values()))
    if repeated:
        warnings.append(f"{counted(repeated, 'repeated triple')} left out")
    if made.missing:
        fewer = f"{counted(made.missing, 'triple')} fewer than asked for"
        warnings.append(f"{fewer}: train must show every entity and relation")
    valid, test = parts.get("valid", graph.valid), parts.get("test", graph.test)
    return replace(graph, train=made.train, valid=valid, test=test).with_warnings(*warnings)


def in_order(graph: KnowledgeGraph) -> NDArray[np.int32]:
    """The train triples sorted: what is made of them shall not depend on the order of the file's rows."""
    (keys,) = triple_keys([graph.train], entities=len(graph.entities), relations=len(graph.relations))
    return graph.train[np.argsort(keys)]


def shared_warnings(graph: KnowledgeGraph) -> list[str]:
    """How many valid and test triples are in train as well."""
    sizes = {"entities": len(graph.entities), "relations": len(graph.relations)}
    train, *others = triple_keys([graph.train, graph.valid, graph.test], **sizes)
    warnings = []
    for split, keys in zip(("valid", "test"), others, strict=True):
        count = _count_within(keys, train)
        if count:
            held_out = counted(len(keys), f"{split} triple")
            warnings.append(f"{count:,} of {held_out} {are(count)} {ALSO_IN_TRAIN}")
    return warnings


def warnings_of_reading(graph: KnowledgeGraph) -> list[str]:
    """The graph's warnings without those on triples that splits share."""
    return [line for line in graph.warnings if not line.endswith(ALSO_IN_TRAIN)]


def _count_within(keys: NDArray[np.int64], train: NDArray[np.int64]) -> int:
    """How many of a few `keys` occur among the many of `train`.

    A sieve of 4 MB, which a core's cache holds, first lets pass only the train keys that may be meant: 0.12 s
    instead of 2.6 s for looking up each of 20 million among 20 thousand.
    """
    sieve = np.zeros(1 << SIEVE_BITS, dtype=bool)
    sieve[_sieve_places(keys)] = True
    candidates = np.concatenate(
        [part[sieve[_sieve_places(part)]] for part in np.array_split(train, len(train) // 1_000_000 + 1)]
    )
    return int(np.isin(keys, candidates).sum()) if len(candidates) else 0


def _sieve_places(keys: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Well mixed small numbers: the upper bits of a product with the golden ratio's (Fibonacci hashing)."""
    return (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - SIEVE_BITS)
