"""Gen-Approx: its gradients are those of the stated loss, it learns, resumes and can be ranked."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

from autosf.embedding.gen_approx import (
    GenApprox,
    combined,
    gradients,
    network_rows,
    started,
    train_gen_approx,
)
from autosf.embedding.multiclass import Workspace
from autosf.embedding.queries import batch_of, training_queries
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank, rank_plainly
from autosf.graph.known_answers import known_answers
from autosf.graph.synthetic import patterned_graph

SMALL = TrainingSettings(
    dimension=8, epochs=6, batch_size=16, start_scale=0.1, validate_every=2, patience=0, entity_weight=1e-3
)


@pytest.fixture(scope="module")
def graph():
    return patterned_graph(symmetric=1, anti_symmetric=1, general=1, entities=24, triples=30, valid=0.1)


def trained(graph, settings, **options):
    return train_gen_approx(graph, settings, seed=3, clock=count().__next__, **options)


def test_a_network_is_the_papers_two_layers_with_relu_between():
    d = 64
    inner, outer = torch.nn.Linear(2 * d, d), torch.nn.Linear(d, d)
    network = torch.cat([inner.weight.T, outer.weight.T, inner.bias[None], outer.bias[None]]).detach()
    assert len(network) == network_rows(d)
    e, r = torch.randn(2, 5, d)
    expected = outer(torch.relu(inner(torch.cat([e, r], 1))))
    torch.testing.assert_close(combined(network, e, r), expected.detach())


@pytest.mark.parametrize("regulariser", ["n3", "dura", "none"])
def test_gradients_are_those_of_the_loss_triple_by_triple_on_both_sides(graph, regulariser):
    settings = replace(SMALL, regulariser=regulariser, entity_weight=0.3, relation_weight=0.7)
    state = started(graph, settings, seed=1)
    entities, below = (x.double().requires_grad_() for x in (state.entities, state.relations))
    h, r, t = (torch.from_numpy(graph.train[:, side].astype(np.int64)) for side in range(3))
    model, loss = GenApprox.of(entities, below), torch.zeros((), dtype=torch.float64)
    sides = ((model.tail_query(h, r), h, t), (model.head_query(r, t), t, h))
    for query, source, answer in sides:
        loss = loss + torch.nn.functional.cross_entropy(query @ entities.T, answer, reduction="sum")
        power = 3 if regulariser == "n3" else 2
        if regulariser != "none":
            loss = loss + 0.3 * (entities[source].abs() ** power).sum()
            loss = loss + 0.7 * (model.relations[r].abs() ** power).sum()
        loss = loss + (0.3 * (query**2).sum() if regulariser == "dura" else 0)
    (loss / (2 * len(graph.train))).backward()
    queries = training_queries(graph, reciprocal=False)
    batch = batch_of(queries, np.arange(len(queries)))
    batch = replace(batch, targets=replace(batch.targets, counts=batch.targets.counts.double()))
    work = Workspace.of(entities.detach(), 7, 1)
    found = gradients(entities.detach(), below.detach(), batch, settings, work)
    torch.testing.assert_close(found.loss, loss.detach() / (2 * len(graph.train)))
    torch.testing.assert_close(found.entities, entities.grad)
    torch.testing.assert_close(found.relations, below.grad)
    tail_network, head_network = torch.split(below.grad, network_rows(8))[-2:]
    assert tail_network.abs().sum() > 0
    assert head_network.abs().sum() > 0


def test_it_fits_a_small_graph_and_is_ranked_as_by_the_definition(graph):
    settings = replace(SMALL, dimension=32, epochs=60, learning_rate=0.1)
    model, known = trained(graph, settings).model, known_answers(graph)
    ranks, plain = rank(model, graph.train, known), rank_plainly(model, graph.train, known)
    assert np.array_equal(ranks.head_rank, plain.head_rank)
    assert np.array_equal(ranks.tail_rank, plain.tail_rank)
    assert summarise(ranks).mrr > 0.9


def test_the_same_seed_gives_the_same_weights_also_from_a_state_in_between(graph):
    states = []
    whole = trained(graph, SMALL, watch=states.append)
    resumed = trained(graph, SMALL, state=states[2])
    again = trained(graph, SMALL)
    for other in (resumed, again):
        assert torch.equal(whole.state.entities, other.state.entities)
        assert torch.equal(whole.state.relations, other.state.relations)
    assert whole.ending == "all epochs"


def test_the_best_validated_weights_are_kept_and_training_stops_when_no_better(graph):
    values = iter([0.5, 0.4, 0.3])
    seen = []

    def validate(model):
        seen.append(model)
        return next(values)

    found = trained(graph, replace(SMALL, patience=2, epochs=50), validate=validate)
    assert (found.ending, found.state.epochs) == ("no better", 6)
    assert torch.equal(found.model.tail_network, seen[0].tail_network)
    assert not torch.equal(found.model.tail_network, seen[1].tail_network)


def test_a_sampled_loss_is_refused(graph):
    with pytest.raises(UserError, match="multiclass only, found hinge"):
        trained(graph, replace(SMALL, loss="hinge"))
