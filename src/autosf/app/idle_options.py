"""Options that a search would do nothing with: whoever gives one is told what it works with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Container

    from autosf.app.request import Request

PLAYED_OFF = ("playoff", "playoff_seeds")


def refuse_idle(request: Request, given: Container[str]) -> None:
    """Raise for the first option of those given that changes nothing in this search."""
    if "fresh_seeds" in given and request.strategy != "free":
        raise UserError(f"--fresh-seeds: works with --strategy free only, found {request.strategy}")
    if "sample_by" in given and request.sample is None:
        raise UserError("--sample-by: works with --sample only, found none; add --sample ENTITIES")
    idle = [name for name in PLAYED_OFF if name in given]
    if idle and not request.sample and not request.draw:
        option = f"--{idle[0].replace('_', '-')}"
        raise UserError(f"{option}: works with --sample or --draw only, found neither")
