"""The free search finds the structure that a graph was planted from, or one that explains it as well."""

import time
from dataclasses import replace
from functools import partial

import pytest
import torch

from autosf.algebra.invariance import canonical
from autosf.algebra.structure import Structure
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.training import train
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank
from autosf.graph.known_answers import known_answers
from autosf.graph.synthetic import Planting, planted_graph
from autosf.search.free import free
from autosf.search.record import Record, Trial, search
from autosf.search.settings import SearchSettings
from autosf.search.typical import known_good
from autosf.search.verdict import finalist, fresh_seeds, verdict
from thorough import THOROUGH

PLANTED = (
    Structure(((1, 2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 4), (-1, 0, 0, 0))),
    Structure(((1, 2, 0, 0), (-2, 0, 0, 3), (0, 0, 4, 0), (0, 3, 0, 0))),
    Structure(((1, 2, 0, 0), (3, 0, 4, 0), (0, 0, 0, 1), (0, 2, 3, 0))),
)
# Four true dimensions, trained with 32 under a strong N3: the planted structure needs the least of them. With as
# many dimensions as planted, trainings end in local optima, and seeds differ more than structures.
SIZE = Planting(entities=60, relations=8, triples_per_relation=300, dimension_per_part=1, valid=0.2, test=0.0)
TRAINING = TrainingSettings(
    dimension=32,
    batch_size=128,
    learning_rate=0.5,
    start_scale=0.1,
    entity_weight=0.1,
    relation_weight=0.1,
    averaging=0.8,
    validate_every=4,
    patience=0,
)
SEARCH = SearchSettings(epochs=16, grain=4, candidates=128, trials=80)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(graph, known, trial):
    """The trial's record by real training."""
    found = train(
        graph,
        trial.structure,
        TRAINING.changed({"epochs": trial.epochs}),
        seed=trial.seed,
        clock=time.perf_counter,
        validate=lambda model: summarise(rank(model, graph.valid, known)).mrr,
    )
    curve = [(epoch.number, epoch.valid_mrr) for epoch in found.state.curve if epoch.valid_mrr is not None]
    return Record(trial, max(mrr for _, mrr in curve), trial.epochs, tuple(curve))


def found_and_planted(seed):
    """The winner of a search on a graph of its own, and the planted structure with the same fresh seeds."""
    structure = PLANTED[seed % len(PLANTED)]
    graph = planted_graph(structure, SIZE, seed=seed)
    settings = replace(SEARCH, seed=seed)
    train_one = partial(trained, graph, known_answers(graph, ("train", "valid")))
    records, _ = search(free(settings), lambda trials: list(map(train_one, trials)))
    form = canonical(structure, "extended")
    fresh = [train_one(Trial(form, settings.epochs, seed)).valid_mrr for seed in fresh_seeds(settings)]
    return verdict(records, settings).winner, finalist(form, fresh)


def names_it_or_as_good(seed):
    winner, planted = found_and_planted(seed)
    error = planted.spread / len(planted.values) ** 0.5
    return winner.structure == planted.structure or winner.valid_mrr >= planted.valid_mrr - error


def test_the_planted_structures_are_not_among_those_tried_first():
    assert not {canonical(structure, "extended") for structure in PLANTED} & set(known_good())


@pytest.mark.slow
def test_in_most_searches_the_planted_structure_or_one_as_good_is_found():
    seeds = range(100, 110 if THOROUGH else 103)
    assert sum(map(names_it_or_as_good, seeds)) > len(seeds) / 2  # 9 of 10 when this was written
