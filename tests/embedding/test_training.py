"""A step's gradients are those of the stated loss; training resumes to the same weights and ends as it says."""

from dataclasses import replace
from itertools import count

import numpy as np
import polars as pl
import pytest
import torch

from autosf.algebra.zoo import named
from autosf.embedding.checkpoints import every_tensor
from autosf.embedding.epochs import epoch_runner
from autosf.embedding.kernels import contract_plainly
from autosf.embedding.multiclass import Workspace
from autosf.embedding.presets import LARGE, MANY, preset
from autosf.embedding.queries import batch_of, batches, training_queries
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.state import State
from autosf.embedding.steps import multiclass_gradients
from autosf.embedding.training import best_weights, is_finite, learned, moved, start, train
from autosf.errors import UserError
from autosf.graph.knowledge_graph import KnowledgeGraph

COMPLEX = named("complex").structure


def clock():
    ticks = count()
    return lambda: float(next(ticks))


@pytest.fixture
def graph() -> KnowledgeGraph:
    rng = np.random.default_rng(0)
    triples = np.unique(np.stack([rng.integers(0, n, 300) for n in (30, 4, 30)], axis=1), axis=0)
    labels = [f"e{i:02}" for i in range(30)]
    return KnowledgeGraph.from_ids(
        "small", labels, [f"r{i}" for i in range(4)], {"train": triples, "valid": triples[:20]}
    )


SMALL = TrainingSettings(dimension=8, epochs=6, batch_size=16, start_scale=0.1, validate_every=2, patience=0)


def stated_loss(graph, settings, entities, relations) -> torch.Tensor:
    """Mean per triple of the two-sided multi-class loss and penalties, straight from the triples."""
    h, r, t = (torch.from_numpy(graph.train[:, side].astype(np.int64)) for side in range(3))
    shift = len(graph.relations) if settings.reciprocal else 0
    e, total = entities, 0.0
    for source, link, answer, tail_side in ((h, r, t, True), (t, r + shift, h, False)):
        rows, links = e[source], relations[link]
        if tail_side or settings.reciprocal:
            query = contract_plain(rows, links, None)
        else:
            query = contract_plain(None, links, rows)
        scores = query @ e.T
        total = total + torch.nn.functional.cross_entropy(scores, answer, reduction="sum")
        power = 3 if settings.regulariser.startswith("n3") else 2
        if settings.regulariser != "none":
            sizes = modulus if settings.regulariser == "n3-moduli" else torch.abs
            total = total + settings.entity_weight * (sizes(rows) ** power).sum()
            total = total + settings.relation_weight * (sizes(links) ** power).sum()
        if settings.regulariser == "dura":
            total = total + settings.entity_weight * (query**2).sum()
    return total / (2 * len(graph.train))


def modulus(rows):
    """Of the complex numbers that ComplEx makes of parts 1 and 3, and of 2 and 4."""
    first, second, third, fourth = rows.chunk(4, 1)
    return torch.cat([torch.complex(first, third).abs(), torch.complex(second, fourth).abs()], 1)


def contract_plain(head, relation, tail):
    if tail is None:
        return contract_plainly(COMPLEX, head=head, relation=relation)
    return contract_plainly(COMPLEX, relation=relation, tail=tail)


@pytest.mark.parametrize("regulariser", ["n3", "n3-moduli", "l2", "dura", "none"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_gradients_of_a_whole_epoch_in_one_batch_are_those_of_the_stated_loss(graph, regulariser, reciprocal):
    """Queries grouped, penalties weighted by triple counts: nothing is lost against triple by triple."""
    settings = replace(
        SMALL, regulariser=regulariser, reciprocal=reciprocal, entity_weight=0.3, relation_weight=0.7
    )
    state = start(graph, settings, seed=1)
    entities, relations = state.entities.double().requires_grad_(), state.relations.double().requires_grad_()
    loss = stated_loss(graph, settings, entities, relations)
    loss.backward()
    queries = training_queries(graph, reciprocal)
    batch = batch_of(queries, np.arange(len(queries)))
    batch = replace(batch, targets=replace(batch.targets, counts=batch.targets.counts.double()))
    work = Workspace.of(entities.detach(), 7, 1)
    found = multiclass_gradients(COMPLEX, entities.detach(), relations.detach(), batch, settings, work)
    torch.testing.assert_close(found.loss, loss.detach())
    torch.testing.assert_close(found.entities, entities.grad)
    torch.testing.assert_close(found.relations, relations.grad)


def test_batches_hold_every_query_once_with_all_its_answers(graph):
    queries = training_queries(graph, reciprocal=False)
    seen = []
    for batch in batches(queries, 16, np.random.default_rng(0)):
        for row, answer in zip(batch.targets.rows.tolist(), batch.targets.answers.tolist(), strict=True):
            e, r = int(batch.entities[row]), int(batch.relations[row])
            seen.append((e, r, answer) if row < batch.tail_queries else (answer, r, e))
    expected = [tuple(map(int, triple)) for triple in graph.train]
    assert sorted(seen) == sorted(expected * 2)


def test_training_lowers_the_loss(graph):
    curve = train(graph, COMPLEX, SMALL, seed=0, clock=clock()).state.curve
    assert curve[-1].loss < curve[0].loss


def same(one: State, other: State) -> bool:
    return torch.equal(one.entities, other.entities) and torch.equal(one.relations, other.relations)


@pytest.mark.parametrize("optimiser", ["adagrad", "adam", "sgd"])
def test_resuming_from_any_epoch_gives_the_same_weights(graph, optimiser):
    settings = replace(SMALL, optimiser=optimiser, dropout=0.2, decay=0.9, averaging=0.5)
    states: list[State] = []
    whole = train(graph, COMPLEX, settings, seed=3, clock=clock(), watch=states.append)
    for state in states[:-1]:
        resumed = train(graph, COMPLEX, settings, seed=3, clock=clock(), state=state)
        assert same(resumed.state, whole.state)
        assert torch.equal(resumed.model.entities, whole.model.entities)
        assert [e.loss for e in resumed.state.curve] == [e.loss for e in whole.state.curve]


@pytest.mark.parametrize("loss", ["multiclass", "sampled-softmax"])
def test_the_average_of_the_weights_is_validated_and_kept(graph, loss):
    settings = replace(SMALL, loss=loss, averaging=0.5, epochs=3, validate_every=1)
    each: list[torch.Tensor] = []
    seen: list[torch.Tensor] = []

    def validate(model):
        seen.append(model.entities.clone())
        return len(seen) / 10

    trained = train(
        graph,
        COMPLEX,
        settings,
        seed=0,
        clock=clock(),
        validate=validate,
        watch=lambda state: each.append(state.entities.clone()),
    )
    wanted = (each[0] + 2 * each[1] + 4 * each[2]) / 7
    torch.testing.assert_close(seen[-1], wanted)
    torch.testing.assert_close(trained.model.entities, wanted)


def test_a_seed_decides_everything(graph):
    one, two, other = (train(graph, COMPLEX, SMALL, seed=seed, clock=clock()).state for seed in (5, 5, 6))
    assert same(one, two)
    assert not same(one, other)


def test_the_best_weights_are_kept_and_training_stops_when_it_no_longer_improves(graph):
    values = iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.9])
    settings = replace(SMALL, epochs=100, patience=2, validate_every=1)
    seen = []

    def validate(model):
        seen.append(model)
        return next(values)

    trained = train(graph, COMPLEX, settings, seed=0, clock=clock(), validate=validate)
    assert trained.ending == "no better"
    assert trained.state.best.number == 2
    assert len(seen) == 4
    assert torch.equal(trained.model.entities, seen[1].entities)


def test_divergence_keeps_the_last_good_state(graph):
    settings = replace(SMALL, optimiser="sgd", learning_rate=1e30, epochs=5)
    trained = train(graph, COMPLEX, settings, seed=0, clock=clock())
    assert trained.ending == "diverged"
    assert torch.isfinite(trained.model.entities).all()


@pytest.mark.parametrize("spoilt", ["entities", "relations"])
@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_the_last_step_of_an_epoch_has_spoilt_never_become_the_best(graph, spoilt, value):
    run = epoch_runner(graph, COMPLEX, SMALL, seed=0, device=torch.device("cpu"), clock=clock())

    def spoiling(state):
        after = run(state)
        if after.epochs == 2:
            getattr(after, spoilt)[1, 2] = value
        return after

    state, ending = learned(spoiling, start(graph, SMALL, 0), SMALL, lambda _: 0.5, lambda _: None)
    assert (ending, state.epochs) == ("diverged", 1)
    assert all(torch.isfinite(weights).all() for weights in best_weights(state))


def test_large_weights_are_finite_though_their_sum_is_not():
    assert is_finite(torch.full((4, 4), 3e38))
    assert not is_finite(torch.tensor([torch.inf, -torch.inf]))
    assert is_finite(torch.empty(0, 4))


def test_an_interruption_keeps_the_state_before_the_epoch(graph):
    def ticking():
        ticks = count()

        def tick():
            if next(ticks) == 5:
                raise KeyboardInterrupt
            return 0.0

        return tick

    trained = train(graph, COMPLEX, SMALL, seed=0, clock=ticking())
    assert trained.ending == "interrupted"
    assert trained.state.epochs == 2
    resumed = train(graph, COMPLEX, SMALL, seed=0, clock=clock(), state=trained.state)
    assert same(resumed.state, train(graph, COMPLEX, SMALL, seed=0, clock=clock()).state)


def test_entities_stay_in_the_unit_ball(graph):
    settings = replace(SMALL, unit_ball=True, learning_rate=1.0)
    model = train(graph, COMPLEX, settings, seed=0, clock=clock()).model
    assert float(model.entities.norm(dim=1).max()) <= 1 + 1e-6


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lerning_rate": 1.0}, 'unknown setting "lerning_rate"; did you mean "learning_rate"?'),
        ({"epochs": 1.5}, 'setting epochs: expected a whole number, found "1.5"'),
        ({"loss": "hing"}, 'setting loss: unknown value "hing"; did you mean "hinge"?'),
        ({"decay": 2}, "setting decay: expected a number from 0 to 1, found 2.0"),
        (
            {"validation_candidates": 1},
            "setting validation_candidates: expected 0 or a number from 2, found 1",
        ),
        ({"margin": float("inf")}, "setting margin: expected a number from 0, found inf"),
        ({"learning_rate": float("inf")}, "setting learning_rate: expected a number from 0, found inf"),
        ({"start_scale": float("nan")}, "setting start_scale: expected a number from 0, found nan"),
        (
            {"negatives": 10**11},
            "setting negatives: expected a number from 1 to 1,000,000, found 100000000000",
        ),
        ({"reciprocal": 1}, 'setting reciprocal: expected true or false, found "1"'),
    ],
)
def test_wrong_settings_are_told(values, message):
    with pytest.raises(UserError) as caught:
        TrainingSettings().changed(values)
    assert str(caught.value) == message


def test_an_unknown_setting_without_a_near_one_is_told_all_names():
    with pytest.raises(UserError) as caught:
        TrainingSettings().changed({"foo": 1})
    assert str(caught.value).startswith('unknown setting "foo"; expected one of dimension, epochs, ')
    assert all(name in str(caught.value) for name in TrainingSettings().as_dict())


def test_graphs_of_many_entities_without_a_preset_are_trained_against_some_of_them():
    few, many, large = (preset("nameless", entities) for entities in (MANY, LARGE, LARGE + 1))
    assert [settings.loss for settings in (few, many, large)] == ["multiclass", *["sampled-softmax"] * 2]
    assert many.changed({"loss": few.loss, "negatives": few.negatives}) == few, "all else is alike"
    beyond = {"validation_candidates": 1000, "averaging": 0.0, "epochs": 50}
    assert large == many.changed(beyond), "ranks are estimated, and no average is kept beside the weights"
    assert preset("CoDEx-S", LARGE + 1).loss == "multiclass", "somebody has found settings for it"


def test_a_dimension_must_fit_the_parts(graph):
    with pytest.raises(
        UserError, match="expected a multiple of the structure's 4 parts, found 10; 8 would do"
    ):
        train(graph, COMPLEX, replace(SMALL, dimension=10), seed=0, clock=clock())


def test_no_triples_to_train_on():
    empty = KnowledgeGraph.from_columns(
        "empty", {"train": tuple(pl.Series([], dtype=pl.String) for _ in range(3))}
    )
    with pytest.raises(UserError, match="expected triples to train on"):
        train(empty, COMPLEX, SMALL, seed=0, clock=clock())


def test_relation_prediction_adds_the_softmax_over_relations(graph):
    settings = replace(SMALL, regulariser="none", relation_prediction=0.5)
    state = start(graph, settings, seed=1)
    entities, relations = state.entities.double().requires_grad_(), state.relations.double().requires_grad_()
    h, r, t = (torch.from_numpy(graph.train[:, side].astype(np.int64)) for side in range(3))
    scores = contract_plainly(COMPLEX, head=entities[h], tail=entities[t]) @ relations.T
    loss = stated_loss(graph, settings, entities, relations)
    loss = loss + 0.5 * torch.nn.functional.cross_entropy(scores, r, reduction="sum") / (2 * len(graph.train))
    loss.backward()
    queries = training_queries(graph, reciprocal=False)
    batch = batch_of(queries, np.arange(len(queries)))
    batch = replace(batch, targets=replace(batch.targets, counts=batch.targets.counts.double()))
    found = multiclass_gradients(
        COMPLEX,
        entities.detach(),
        relations.detach(),
        batch,
        settings,
        Workspace.of(entities.detach(), 9, 1),
    )
    torch.testing.assert_close(found.loss, loss.detach())
    torch.testing.assert_close(found.entities, entities.grad)
    torch.testing.assert_close(found.relations, relations.grad)


def test_a_state_that_had_stopped_early_is_not_trained_further(graph):
    """However well another epoch would have done."""
    settings = replace(SMALL, epochs=9, validate_every=1, patience=2)
    mrrs = iter([0.5, 0.4, 0.3, 0.9])
    first = train(graph, COMPLEX, settings, seed=0, clock=clock(), validate=lambda _: next(mrrs))
    again = train(
        graph, COMPLEX, settings, seed=0, clock=clock(), validate=lambda _: next(mrrs), state=first.state
    )
    assert (first.ending, again.ending) == ("no better", "no better")
    assert first.state.epochs == again.state.epochs == 3


def test_all_of_a_state_moves_to_the_device(graph):
    settings = replace(SMALL, epochs=2, validate_every=1, averaging=0.5)
    state = train(graph, COMPLEX, settings, seed=0, clock=clock(), validate=lambda _: 0.5).state
    there = moved(state, torch.device("meta"))
    assert {tensor.device.type for tensor in every_tensor(there).values()} == {"meta"}


def test_numbers_of_numpy_are_numbers():
    given = {"dimension": np.int64(8), "learning_rate": np.float32(0.5), "dropout": np.int32(0)}
    changed = TrainingSettings().changed(given)
    assert (changed.dimension, changed.learning_rate, changed.dropout) == (8, 0.5, 0.0)
    assert {type(changed.dimension), type(changed.learning_rate)} == {int, float}


def test_a_seed_that_no_generator_takes_is_refused(graph):
    with pytest.raises(UserError, match="seed: expected a number below"):
        start(graph, TrainingSettings(), 2**70)
