"""Long work says before it starts what it will cost; short work says nothing."""

import time
from dataclasses import replace

import pytest
import torch

from autosf.algebra.zoo import named
from autosf.app.cost import Cost, cost_of
from autosf.app.duration import span_in_words
from autosf.app.estimating import most_trainings, search_announced, training_announced
from autosf.app.opening import first_and_last, trainings_within, with_opening
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.training import train
from autosf.errors import UserError
from autosf.graph.synthetic import patterned_graph
from autosf.search.fidelity import ENOUGH
from autosf.search.settings import SearchSettings

COMPLEX = named("complex").structure
SETTINGS = TrainingSettings(epochs=50, validate_every=5)


@pytest.fixture(scope="module")
def graph():
    return patterned_graph(symmetric=2, general=4, entities=120, triples=500, valid=0.1, test=0.1)


@pytest.fixture(autouse=True)
def one_thread():
    """Threads of a busy machine wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("loss", ["multiclass", "sampled-softmax"])
def test_the_estimate_is_of_the_size_of_the_truth(graph, loss):
    settings = TrainingSettings(epochs=3, dimension=32, batch_size=64, loss=loss)
    clock = time.process_time  # how busy the machine is should not count
    cost = cost_of(graph, COMPLEX, settings, clock)
    trained = train(graph, COMPLEX, settings, seed=0, clock=clock)
    truth = min(epoch.seconds for epoch in trained.state.curve)
    assert truth / 8 < cost.epoch < truth * 8
    assert cost.validation > 0


def test_timing_by_a_clock_that_counts_its_readings(graph):
    """Every reading is a second later, so that an epoch of the sample takes one second whatever its size."""
    ticks = iter(range(10**6))
    settings = TrainingSettings(dimension=8, batch_size=32)
    cost = cost_of(graph, COMPLEX, settings, lambda: float(next(ticks)))
    queries = len(
        {(h, r) for h, r, _ in graph.train.tolist()} | {(-t - 1, r) for _, r, t in graph.train.tolist()}
    )
    assert queries / 128 <= cost.epoch <= queries / 64 * 1.5, "of a sample of 64 triples"
    assert cost.validation == pytest.approx(len(graph.valid) / 256, rel=0.5)


def test_estimating_changes_nothing_and_refuses_what_training_refuses(graph):
    with pytest.raises(UserError, match="multiple of the structure's 4 parts"):
        cost_of(graph, COMPLEX, TrainingSettings(dimension=10))
    assert (
        cost_of(replace(graph, valid=graph.valid[:0]), COMPLEX, TrainingSettings(dimension=8)).validation == 0
    )


def test_a_graph_too_large_for_a_quick_look_has_no_estimate(graph, monkeypatch):
    monkeypatch.setattr("autosf.app.cost.MOST_NUMBERS", 100)
    assert cost_of(graph, COMPLEX, SETTINGS) is None


def test_only_a_long_training_is_announced():
    assert training_announced(Cost(0.1, 0.1), SETTINGS) is None
    told = "about 14 s an epoch: 13 min for 50 epochs, less if it stops improving"
    assert training_announced(Cost(14.0, 6.0), SETTINGS) == told


def test_only_a_long_search_is_announced():
    search = SearchSettings(trials=64)
    assert search_announced(Cost(0.001, 0.0), SETTINGS, search, 2, None) is None
    told = search_announced(Cost(1.0, 1.0), SETTINGS, search, 2, None)
    assert told == "about 60 s a full training, 2 at a time: at most about 45 min; --budget sets a limit"


def test_a_budget_that_is_too_short_to_begin_with_is_told():
    search = SearchSettings()
    assert search_announced(Cost(1.0, 1.0), SETTINGS, search, 2, 7200.0) is None
    told = search_announced(Cost(1.0, 1.0), SETTINGS, search, 2, 600.0)
    assert told.startswith("about 60 s a full training: 10 min allow 20, a search likes ")
    assert told.endswith("; fewer --epochs or a --sample of the graph take less")
    told = search_announced(Cost(1.0, 1.0), SETTINGS, search, 2, 600.0, sampled=True)
    assert told.endswith("; fewer --epochs take less")


def test_trainings_are_counted_as_each_strategy_asks_for_them():
    assert most_trainings(SearchSettings(strategy="paper")) == 5 + 32 * 8
    assert most_trainings(SearchSettings(strategy="greedy", trials=20)) == 20
    assert most_trainings(SearchSettings(strategy="random")) == 32 * 8
    assert most_trainings(SearchSettings(strategy="tpe", trials=3)) == 3


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0123, "12 ms"), (0.25, "0.2 s"), (9.4, "9.4 s"), (75, "75 s"), (125, "2 min"), (5400, "1.5 h"),
     (36_000, "10 h"), (200_000, "2.3 days")],
)  # fmt: skip
def test_spans_are_told_in_their_own_unit(seconds, words):
    assert span_in_words(seconds) == words


def test_a_play_off_on_the_whole_graph_is_part_of_what_is_told():
    search = SearchSettings(trials=64)
    told = search_announced(Cost(1.0, 1.0), SETTINGS, search, 2, None, last=31)
    assert told == "about 60 s a full training, 2 at a time: at most about 75 min; --budget sets a limit"


def test_a_short_budget_opens_with_as_many_full_trainings_as_short_ones_need():
    search = SearchSettings()
    assert with_opening(search, first_and_last(search)).opening is None
    assert with_opening(search, first_and_last(search) - 1).opening == ENOUGH
    assert trainings_within(100.0, 10.0, 2) == 20
