"""Options that a search would do nothing with: whoever gives one is told what it works with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.errors import UserError
from autosf.search.strategies import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from autosf.app.request import Request

FREE, DRAWN = ("free",), ("random", "tpe")
GROWN = tuple(name for name in STRATEGIES if name not in (*FREE, *DRAWN))  # Alg. 2, whole or in part
READ_BY = {  # the strategies that an option changes anything for, if not all
    "parents": (*FREE, *GROWN),
    "candidates": (*FREE, *GROWN),
    "rounds": (*GROWN, *DRAWN),
    "fresh_seeds": FREE,
}


def refuse_idle(request: Request, given: Container[str]) -> None:
    """Raise for the first option of those given that changes nothing in this search."""
    for name, why in idle(request):
        if name in given:
            raise UserError(f"--{name.replace('_', '-')}: works with {why}")


def idle(request: Request) -> Iterator[tuple[str, str]]:
    """The options that change nothing, each with what it would need and what there is instead."""
    for name, strategies in READ_BY.items():
        if request.strategy not in strategies:
            yield name, f"--strategy {', '.join(strategies)} only, found {request.strategy}"
    if request.strategy in DRAWN and request.trials is not None:
        yield (
            "rounds",
            f"--strategy {request.strategy} without --trials only, found --trials {request.trials}",
        )
    if request.sample is None:
        yield "sample_by", "--sample only, found none; add --sample ENTITIES"
    if not request.sample and not request.draw:
        yield from ((name, "--sample or --draw only, found neither") for name in ("playoff", "playoff_seeds"))
    if not request.tuning_share:
        yield "tune_share", "settings to be tuned only, found settings, a preset or --no-tune"
    elif request.budget is None:
        yield "tune_share", "--budget only, found none; add --budget TIME"
