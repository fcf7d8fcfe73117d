"""The options that a search would do nothing with are those that its strategy reads nowhere."""

import pytest

from autosf.app.idle_options import idle
from autosf.app.request import Request
from autosf.embedding.settings import TrainingSettings
from autosf.search.strategies import STRATEGIES, strategy_named
from fake_training import rounds_of

SMALL = {"parents": 4, "candidates": 12, "chosen": 3, "rounds": 1, "fresh_seeds": 2}
TRAINING = TrainingSettings(epochs=20)
OTHERS = {"blocks": 8, "parents": 1, "candidates": 5, "chosen": 16, "rounds": 2, "fresh_seeds": 1}
SEARCHES = [
    ("free", 30),
    ("random", 12),
    ("tpe", 12),
    *((name, None) for name in STRATEGIES if name != "free"),
]


def asked_for(strategy: str, **settings: int | None) -> list:
    """The trials of a search, round by round."""
    request = Request("", TRAINING, strategy=strategy, **{**SMALL, **settings})
    return rounds_of(strategy_named(strategy, request.searched(TRAINING)))


@pytest.mark.parametrize(("strategy", "trials"), SEARCHES)
def test_an_option_is_idle_exactly_where_another_value_leads_to_the_same_trials(strategy, trials):
    usual = asked_for(strategy, trials=trials)
    changes = {name for name in OTHERS if asked_for(strategy, trials=trials, **{name: OTHERS[name]}) != usual}
    request = Request("", TRAINING, strategy=strategy, trials=trials)
    assert {name for name, _ in idle(request)} & set(OTHERS) == set(OTHERS) - changes
