"""How a play-off comes out: what leads on a sample, trained on all of the graph, a figure at a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.algebra.structure import from_rows, to_json
from autosf.errors import UserError
from autosf.runs.task import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from autosf.algebra.structure import Structure
    from autosf.runs.run import Run


@dataclass(frozen=True, slots=True)
class Played:
    """A structure's validation MRR on all of the graph: 0 if its training diverged, None if there was no time."""

    structure: Structure
    valid_mrr: float | None
    seconds: float = 0.0

    @property
    def order(self) -> float:
        """By which the best comes first."""
        return -1.0 if self.valid_mrr is None else self.valid_mrr


def kept_figures(run: Run) -> dict[Structure, Played]:
    """All that has been played so far, also by contestants of an earlier end of the search."""
    try:
        rows = json.loads(playoff_file(run).read_bytes())
        found = (Played(from_rows(row["structure"]), row["valid_mrr"], row["seconds"]) for row in rows)
        return {one.structure: one for one in found}
    except (OSError, ValueError, KeyError, TypeError, UserError):
        return {}


def figures_as_text(played: Iterable[Played]) -> str:
    """What the file says."""
    rows = [
        {"structure": one.structure.rows, "valid_mrr": one.valid_mrr, "seconds": one.seconds}
        for one in played
    ]
    return json.dumps(rows, indent=1) + "\n"


def kept_playoff(run: Run, contestants: Sequence[Structure]) -> tuple[Played, ...]:
    """The play-off between these, best first; nothing as long as one of them has no figure."""
    figures = kept_figures(run) if contestants else {}
    if not all(structure in figures for structure in contestants):
        return ()
    return tuple(sorted((figures[structure] for structure in contestants), key=lambda one: -one.order))


def playoff_file(run: Run) -> Path:
    return run.folder / "playoff.json"


def playoff_folder(run: Run) -> Path:
    """Where contestants' models are until one of them has won."""
    return run.folder / "playoff"


def contestant_folder(run: Run, structure: Structure) -> Path:
    return playoff_folder(run) / digest({"structure": to_json(structure)})[:16]
