"""How a play-off came out: what leads on a sample, trained on all of the graph, kept in the run's folder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.algebra.structure import from_rows, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from autosf.algebra.structure import Structure
    from autosf.runs.run import Run

NAME = "playoff.json"


@dataclass(frozen=True, slots=True)
class Played:
    """A structure with its validation MRR on all of the graph."""

    structure: Structure
    valid_mrr: float


def playoff_as_text(played: Sequence[Played]) -> str:
    """What the file says: best first."""
    ordered = sorted(played, key=lambda one: -one.valid_mrr)
    return json.dumps([{"structure": one.structure.rows, "valid_mrr": one.valid_mrr} for one in ordered])


def kept_playoff(run: Run, contestants: Sequence[Structure]) -> tuple[Played, ...]:
    """The play-off between just these, best first; nothing if it is still to come, or was between others."""
    try:
        rows = json.loads((run.folder / NAME).read_bytes())
        played = tuple(Played(from_rows(row["structure"]), float(row["valid_mrr"])) for row in rows)
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    return played if {one.structure for one in played} == set(contestants) else ()


def playoff_folder(run: Run) -> Path:
    """Where contestants' models are until one of them has won."""
    return run.folder / "playoff"


def contestant_folder(run: Run, structure: Structure) -> Path:
    return playoff_folder(run) / hashlib.sha256(to_json(structure).encode()).hexdigest()[:16]
