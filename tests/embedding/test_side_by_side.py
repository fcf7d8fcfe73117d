"""A stack of structures is trained as each of them would be, whoever is beside it."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

from autosf.algebra.structure import Structure
from autosf.algebra.zoo import ZOO, named
from autosf.embedding.multiclass import Workspace
from autosf.embedding.queries import batch_of, training_queries
from autosf.embedding.settings import TrainingSettings, stack_size
from autosf.embedding.side_by_side import epoch_of_many
from autosf.embedding.stack import Stack
from autosf.embedding.steps import dropped, multiclass_gradients
from autosf.embedding.training import start, train
from autosf.graph.synthetic import patterned_graph

SETTINGS = TrainingSettings(dimension=8, batch_size=32, start_scale=0.1, validate_every=0, learning_rate=0.3)
GRAPH = patterned_graph(symmetric=2, general=2, valid=0.1)
CPU = torch.device("cpu")
FULL_ROW = Structure(((1, 2, 3, 4), (-1, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)))  # parts empty and crowded
STRUCTURES = [*(known.structure for known in ZOO if known.structure.parts == 4), FULL_ROW]
KINDS = {
    "n3": SETTINGS,
    "l2": replace(SETTINGS, regulariser="l2"),
    "moduli": replace(SETTINGS, regulariser="n3-moduli"),
    "none": replace(SETTINGS, regulariser="none"),
    "dura": replace(SETTINGS, regulariser="dura", dropout=0.2),
    "reciprocal": replace(SETTINGS, reciprocal=True),
    "dropout": replace(SETTINGS, dropout=0.4),
    "adam": replace(SETTINGS, optimiser="adam", learning_rate=0.01, decay=0.9),
    "averaging": replace(SETTINGS, averaging=0.8),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0.1, 30.0])  # scores beyond what exp holds without a shift
def test_losses_and_gradients_are_those_of_single_steps(kind, size):
    settings = KINDS[kind]
    queries = training_queries(GRAPH, settings.reciprocal)
    batch = batch_of(queries, np.arange(3, len(queries), 4))
    state = start(GRAPH, replace(settings, start_scale=size), seed=1)
    count = len(STRUCTURES)
    kept = dropped(len(batch.entities), settings, np.random.default_rng(5), state.entities)
    with torch.no_grad():
        losses, by_entity, by_relation = Stack(STRUCTURES, CPU).gradients(
            state.entities.repeat(1, count),
            state.relations.repeat(1, count),
            batch,
            settings,
            kept,
        )
        for place, structure in enumerate(STRUCTURES):
            one = multiclass_gradients(
                structure,
                state.entities,
                state.relations,
                batch,
                settings,
                Workspace.of(state.entities, 1000, 32),
                kept,
            )
            for found, expected in (
                (losses[place], one.loss),
                (by_entity.chunk(count, 1)[place], one.entities),
                (by_relation.chunk(count, 1)[place], one.relations),
            ):
                torch.testing.assert_close(
                    found, expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max())
                )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("last_batch", [1, 2, 5])
def test_a_structure_comes_to_the_same_bits_in_any_company_and_nearly_to_those_of_training_it_alone(
    kind, last_batch
):
    queries = len(training_queries(GRAPH, KINDS[kind].reciprocal))
    size = next(size for size in range(30, queries) if queries % size == last_batch)
    settings = replace(KINDS[kind], epochs=3, batch_size=size)
    run = epoch_of_many(GRAPH, settings, seed=4, device=CPU, clock=lambda: 0.0)
    first = start(GRAPH, settings, seed=4)

    def trained(structures):
        states = [first for _ in structures]
        for _ in range(settings.epochs):
            states = run(structures, states)
        return states

    many, one = trained(STRUCTURES), trained([named("complex").structure])[0]
    place = STRUCTURES.index(named("complex").structure)
    assert torch.equal(many[place].entities, one.entities)
    assert torch.equal(many[place].relations, one.relations)
    assert [epoch.number for epoch in one.curve] == [1, 2, 3]
    ticks = count()
    alone = train(GRAPH, named("complex").structure, settings, seed=4, clock=lambda: float(next(ticks)))
    torch.testing.assert_close(one.entities, alone.state.entities, rtol=1e-2, atol=2e-3)
    assert one.curve[-1].loss == pytest.approx(alone.state.curve[-1].loss, rel=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_with_a_compiled_step_each_comes_to_the_bits_of_training_it_alone(kind):
    settings = replace(KINDS[kind], epochs=2, batch_size=64, dimension=32)
    if Workspace.of(start(GRAPH, settings, seed=4).entities, 64, 0).kernel is None:
        pytest.skip("nothing is compiled here")
    run = epoch_of_many(GRAPH, settings, seed=4, device=CPU, clock=lambda: 0.0)
    states = [start(GRAPH, settings, seed=4) for _ in STRUCTURES]
    for _ in range(settings.epochs):
        states = run(STRUCTURES, states)
    ticks = count()
    for structure, state in zip(STRUCTURES, states, strict=True):
        alone = train(GRAPH, structure, settings, seed=4, clock=lambda: float(next(ticks))).state
        assert torch.equal(state.entities, alone.entities)
        assert torch.equal(state.relations, alone.relations)
        assert [epoch.loss for epoch in state.curve] == pytest.approx([epoch.loss for epoch in alone.curve])


def test_stacks_are_for_small_graphs_and_for_what_they_can_do():
    assert stack_size(135, SETTINGS) > 1
    assert stack_size(135, replace(SETTINGS, regulariser="dura")) > 1
    assert stack_size(135, replace(SETTINGS, regulariser="n3-moduli")) > 1
    assert stack_size(14_541, SETTINGS) == 1
    for change in (
        {"loss": "logistic"},
        {"relation_prediction": 0.1},
        {"unit_ball": True},
    ):
        assert stack_size(135, replace(SETTINGS, **change)) == 1
