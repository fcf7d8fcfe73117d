"""The simulator's clock: what it says of a schedule that can be worked out by hand."""

from dataclasses import replace

import pytest
from benchmarks.schedule import AWAY_SECONDS, World, in_rounds, settings_of, without_rounds

from autosf.app.searching import SEND_SECONDS
from autosf.search.record import Trial
from autosf.search.typical import known_good

WORLD = World(epochs=20, seconds_per_epoch=(10.0,))
ROUND = [Trial(structure, 20, 0) for structure in known_good()[:6]]


@pytest.mark.parametrize(("workers", "seconds"), [(1, 2400), (2, 1200), (4, 800), (6, 400), (1000, 400)])
def test_a_round_waits_for_its_last_trial(workers, seconds):
    simulated = in_rounds([ROUND, [replace(trial, seed=1) for trial in ROUND]], workers, WORLD)
    assert simulated.now == pytest.approx(seconds)
    assert simulated.trained == pytest.approx(2400)


def test_a_longer_trial_goes_on_from_a_shorter_one():
    short = [replace(trial, epochs=5) for trial in ROUND]
    assert in_rounds([short, ROUND], 6, WORLD).now == pytest.approx(200)


def test_a_lost_node_costs_what_was_done_since_the_last_state():
    simulated = in_rounds([ROUND], 6, replace(WORLD, failures=20.0))
    assert simulated.trained == pytest.approx(1200), "nothing is counted twice"
    assert simulated.now > 200
    alone = in_rounds([ROUND[:1]], 1, replace(WORLD, failures=5.0, seed=3)).now
    lost = (alone - 200) // AWAY_SECONDS  # nodes
    assert alone <= 200 + lost * (AWAY_SECONDS + SEND_SECONDS)


def test_the_same_seed_simulates_the_same_search():
    world = replace(WORLD, failures=0.5)
    settings = settings_of(16, world)
    assert without_rounds(settings, 4, world) == without_rounds(settings, 4, world)
