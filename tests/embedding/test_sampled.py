"""Sampled losses: gradients are autograd's, samplers keep their promises, training with them learns."""

from dataclasses import replace
from itertools import count, product

import numpy as np
import pytest
import torch
from torch.nn import functional

from autosf.algebra.zoo import named
from autosf.embedding.epochs import one_side
from autosf.embedding.kernels import contract_plainly
from autosf.embedding.optimisers import Optimiser
from autosf.embedding.sampled import contrasted_gradients
from autosf.embedding.sampling import Cache, Negatives, bernoulli, tail_chances, uniform
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.steps import dropped
from autosf.embedding.training import train
from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph

ANALOGY = named("analogy").structure
CPU = torch.device("cpu")
N, R, D = 12, 3, 8


def clock():
    ticks = count()
    return lambda: float(next(ticks))


@pytest.fixture
def embeddings():
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n, D, generator=generator, dtype=torch.float64) for n in (N, R))


@pytest.fixture
def triples():
    rng = np.random.default_rng(1)
    return np.stack([rng.integers(0, n, 6) for n in (N, R, N)], axis=1).astype(np.int32)


def plain_score(entities, relations, h, r, t):
    return (contract_plainly(ANALOGY, head=entities[h], relation=relations[r]) * entities[t]).sum(-1)


def dense(rows, gradients, size):
    return gradients.new_zeros(size, gradients.shape[1]).index_add_(0, rows, gradients)


def assert_same(found, loss, entities, relations):
    loss.backward()
    torch.testing.assert_close(found.loss, loss.detach())
    torch.testing.assert_close(dense(found.entity_rows, found.entities, N), entities.grad)
    torch.testing.assert_close(dense(found.relation_rows, found.relations, R), relations.grad)


@pytest.mark.parametrize("kind", ["logistic", "hinge"])
def test_contrasted_losses_equal_autograd(kind, embeddings, triples):
    settings = TrainingSettings(
        loss=kind, margin=2.0, regulariser="l2", entity_weight=0.1, relation_weight=0.2
    )
    rng = np.random.default_rng(2)
    negatives = Negatives(rng.random(6) < 0.5, rng.integers(0, N, (6, 4)))
    asked, candidates = one_side(triples, negatives, 0, CPU)
    found = contrasted_gradients(ANALOGY, *embeddings, asked, candidates, settings)
    entities, relations = (x.clone().requires_grad_() for x in embeddings)
    loss = 0.0
    for (h, r, t), is_tail, others in zip(
        triples.tolist(), negatives.tails, negatives.candidates, strict=True
    ):
        positive = plain_score(entities, relations, [h], [r], [t])
        false = [([h], [r], [o]) if is_tail else ([o], [r], [t]) for o in others.tolist()]
        negative = torch.cat([plain_score(entities, relations, *one) for one in false])
        if kind == "logistic":
            loss = loss + functional.softplus(-positive).sum() + functional.softplus(negative).mean()
        else:
            loss = loss + (2.0 - positive + negative).clamp(min=0).mean()
        source = entities[h] if is_tail else entities[t]
        loss = loss + 0.1 * (source**2).sum() + 0.2 * (relations[r] ** 2).sum()
    assert_same(found, loss / 6, entities, relations)


def test_dropout_and_dura_reach_the_queries_of_contrasted_losses(embeddings, triples):
    settings = TrainingSettings(
        loss="logistic", regulariser="dura", entity_weight=0.1, relation_weight=0, dropout=0.5
    )
    negatives = Negatives(np.ones(6, dtype=bool), np.random.default_rng(2).integers(0, N, (6, 4)))
    asked, candidates = one_side(triples, negatives, 0, CPU)
    gradients, (entities, relations) = contrasted_gradients, embeddings

    def found(entities, relations):
        same_each_time = np.random.default_rng(3)
        kept = dropped(len(asked.entities), settings, same_each_time, entities)
        return gradients(ANALOGY, entities, relations, asked, candidates, settings, kept)

    step, gradient = 1e-6, dense(found(*embeddings).entity_rows, found(*embeddings).entities, N)
    for row, column in ((0, 0), (int(triples[0, 0]), 3), (int(triples[1, 2]), 6)):
        moved = torch.zeros_like(entities)
        moved[row, column] = step
        slope = (found(entities + moved, relations).loss - found(entities - moved, relations).loss) / (
            2 * step
        )
        torch.testing.assert_close(slope, gradient[row, column], rtol=1e-5, atol=1e-7)
    plain = gradients(ANALOGY, *embeddings, asked, candidates, replace(settings, regulariser="l2"))
    assert found(*embeddings).loss != plain.loss


def test_settings_that_a_loss_does_not_have_are_refused():
    with pytest.raises(UserError, match="works with loss multiclass or sampled-softmax only, found hinge"):
        TrainingSettings(loss="hinge", relation_prediction=0.1)
    with pytest.raises(
        UserError, match="sampler: works with loss logistic or hinge only, found sampled-softmax"
    ):
        TrainingSettings(loss="sampled-softmax", sampler="cache")
    assert TrainingSettings(relation_prediction=0.1).changed({"loss": "hinge"}).relation_prediction == 0


@pytest.mark.parametrize("optimiser", ["adagrad", "sgd"])
def test_a_step_on_all_rows_equals_the_dense_step(optimiser):
    settings = TrainingSettings(optimiser=optimiser)
    generator = torch.Generator().manual_seed(0)
    start, *gradients = (torch.randn(5, 4, generator=generator) for _ in range(4))
    some, all_ = Optimiser(start.clone(), settings, {}), Optimiser(start.clone(), settings, {})
    for gradient in gradients:
        some.step_rows(torch.arange(5), gradient.clone(), 0.1)
        all_.step(gradient.clone(), 0.1)
    torch.testing.assert_close(some.matrix, all_.matrix)


def test_rows_that_come_twice_are_added_up():
    settings = TrainingSettings(optimiser="sgd")
    one = Optimiser(torch.zeros(3, 2), settings, {})
    one.step_rows(torch.tensor([1, 1]), torch.ones(2, 2), 1.0)
    assert one.matrix.tolist() == [[0, 0], [-2, -2], [0, 0]]


@pytest.fixture
def graph():
    """Relation 0 has many tails a head, relation 1 many heads a tail, relation 2 is one to one."""
    rows = [(h, 0, h * 5 + k + 6) for h in range(3) for k in range(5)]
    rows += [(h * 5 + k + 6, 1, h) for h in range(3) for k in range(5)]
    rows += [(h, 2, h + 3) for h in range(3)]
    return KnowledgeGraph.from_ids("g", [f"e{i:02}" for i in range(21)], ["a", "b", "c"], {"train": rows})


def test_bernoulli_prefers_the_side_with_fewer_accidents(graph):
    assert tail_chances(graph).tolist() == pytest.approx([1 / 6, 5 / 6, 1 / 2])
    rng = np.random.default_rng(0)
    many = np.repeat(np.array([[0, 0, 6]], dtype=np.int32), 4_000, axis=0)
    drawn = bernoulli(many, 21, 2, rng, tail_chances(graph))
    assert drawn.tails.mean() == pytest.approx(1 / 6, abs=0.03)


def test_uniform_draws_every_entity_on_both_sides():
    drawn = uniform(np.zeros((2_000, 3), np.int32), 7, 3, np.random.default_rng(0))
    assert drawn.tails.mean() == pytest.approx(0.5, abs=0.05)
    assert np.bincount(drawn.candidates.ravel(), minlength=7).min() > 700


def test_the_cache_comes_to_hold_high_scoring_entities(graph):
    rng = np.random.default_rng(0)
    cache = Cache(graph, 4, rng)

    def score(_triples, _side, pool):
        return np.where(pool >= 18, 20.0, 0.0)  # entities 18, 19, 20 are the hard ones

    for _ in range(30):
        cache.renew(graph.train, score, rng)
    drawn = cache.draw(graph.train, 10, rng)
    assert (drawn.candidates >= 18).mean() > 0.95


@pytest.mark.parametrize(
    ("loss", "sampler"),
    [*product(["logistic", "hinge"], ["uniform", "bernoulli", "cache"]), ("sampled-softmax", "uniform")],
)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_training_with_negatives_learns_and_repeats_itself(graph, loss, sampler, reciprocal):
    settings = TrainingSettings(
        dimension=8, epochs=15, batch_size=8, negatives=5, start_scale=0.1, regulariser="none"
    )
    settings = replace(settings, loss=loss, sampler=sampler, reciprocal=reciprocal, validate_every=0)
    one, two = (train(graph, ANALOGY, settings, seed=1, clock=clock()) for _ in range(2))
    assert one.state.curve[-1].loss < 0.95 * one.state.curve[0].loss
    assert torch.equal(one.model.entities, two.model.entities)


def test_the_best_weights_are_kept_though_training_goes_on_in_place(graph):
    settings = TrainingSettings(dimension=8, epochs=4, loss="sampled-softmax", negatives=5, start_scale=0.1)
    settings = replace(settings, validate_every=1, patience=0)
    seen = []

    def validate(model):
        seen.append(model.entities.clone())
        return 1.0 / len(seen)  # the first epoch is the best

    trained = train(graph, ANALOGY, settings, seed=0, clock=clock(), validate=validate)
    assert torch.equal(trained.model.entities, seen[0])
    assert not torch.equal(trained.state.entities, seen[0])
