"""The strategies a user can name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from autosf.errors import UserError, did_you_mean, quoted
from autosf.search.asynchronous import asynchronous_free
from autosf.search.baselines import random_search, tpe_search
from autosf.search.free import free
from autosf.search.greedy import Variant, alg_2

if TYPE_CHECKING:
    from collections.abc import Callable

    from autosf.search.asynchronous import Asynchronous
    from autosf.search.record import Strategy
    from autosf.search.settings import SearchSettings

STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "free": free,
    "paper": alg_2,
    "greedy": partial(alg_2, variant=Variant(filtered=False, predictor=None)),
    "paper-without-filter": partial(alg_2, variant=Variant(filtered=False)),
    "paper-without-predictor": partial(alg_2, variant=Variant(predictor=None)),
    "paper-one-hot": partial(alg_2, variant=Variant(predictor="one-hot")),
    "random": random_search,
    "tpe": tpe_search,
}

GEN_APPROX = "gen-approx"  # the paper's rival without a search

ASYNCHRONOUS: dict[str, Callable[[SearchSettings], Asynchronous]] = {"free": asynchronous_free}


def asynchronous_strategy(settings: SearchSettings) -> Asynchronous:
    """The settings' strategy without rounds, where it can do without."""
    if settings.strategy not in ASYNCHRONOUS:
        raise UserError(
            f"strategy {quoted(settings.strategy)} works in rounds; asynchronous: {', '.join(ASYNCHRONOUS)}"
        )
    return ASYNCHRONOUS[settings.strategy](settings)


def strategy_named(name: str, settings: SearchSettings) -> Strategy:
    """The strategy of that name, ready for its first round."""
    if name == GEN_APPROX:
        raise UserError(
            f"strategy {quoted(name)}: it trains one network and has no structure to name;"
            f" `autosf compare GRAPH --models {name},RUN` sets it beside what a search has found"
        )
    if name not in tuple(STRATEGIES):  # a program may give what has no hash
        hint = did_you_mean(name, STRATEGIES) or f"; expected one of {', '.join(STRATEGIES)}"
        raise UserError(f"unknown strategy {quoted(name)}{hint}")
    return STRATEGIES[name](settings)
