"""The softmax over drawn entities: gradients are autograd's, sums are right on average, drawing all is exact."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

from autosf.algebra.zoo import named
from autosf.embedding.drawn import MOST_ANSWERS, Draws
from autosf.embedding.kernels import contract_plainly
from autosf.embedding.multiclass import Workspace, multiclass_plainly
from autosf.embedding.optimisers import Optimiser
from autosf.embedding.queries import batch_of, in_pieces, training_queries
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.steps import multiclass_gradients, torch_gradients
from autosf.embedding.training import train
from autosf.graph.knowledge_graph import KnowledgeGraph

ANALOGY = named("analogy").structure
N, D = 60, 8
SETTINGS = TrainingSettings(
    dimension=D, loss="sampled-softmax", negatives=12, batch_size=10, regulariser="none", validate_every=0
)


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    """Entity 0 is a hub: it has 40 tails, itself among them."""
    rng = np.random.default_rng(0)
    rows = {(i, 2, (i + 1) % N) for i in range(N)}
    rows |= {(0, 0, t) for t in range(40)} | {
        tuple(row) for row in rng.integers(0, (N, 3, N), (80, 3)).tolist()
    }
    labels = [f"e{i:02}" for i in range(N)], ["a", "b", "c"]
    return KnowledgeGraph.from_ids("g", *labels, {"train": sorted(rows)})


@pytest.fixture
def embeddings():
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n, D, generator=generator, dtype=torch.float64) for n in (N, 3))


def clock():
    ticks = count()
    return lambda: float(next(ticks))


def test_pieces_of_queries_have_all_answers_once(graph):
    whole = training_queries(graph, reciprocal=False)
    pieces = in_pieces(whole, 3)
    assert np.diff(pieces.offsets).max() == 3
    assert np.diff(pieces.offsets).min() >= 1

    def triples(queries):
        rows = np.repeat(np.arange(len(queries)), np.diff(queries.offsets))
        of_tails = rows < queries.tail_queries
        return sorted(
            zip(of_tails, queries.entities[rows], queries.relations[rows], queries.answers, strict=True)
        )

    assert triples(pieces) == triples(whole)
    assert len(in_pieces(whole, 100)) == len(whole)


def drawn_batch(graph, settings, seed=0):
    """Half of it asks for tails, among them those of the hub from itself."""
    draws, half = Draws(graph, settings), settings.batch_size // 2
    chosen = np.r_[:half, len(draws.queries) - half : len(draws.queries)]
    return draws.draw(batch_of(draws.queries, chosen), np.random.default_rng(seed))


@pytest.mark.parametrize("scale", [1, 30])  # scores in the thousands, whose powers no float holds
def test_gradients_equal_autograds(graph, embeddings, scale):
    drawn = drawn_batch(graph, SETTINGS)
    entities, relations = (scale * rows for rows in embeddings)
    some, told = entities[drawn.entity_rows], relations[drawn.relation_rows]
    batch = replace(
        drawn.batch, targets=replace(drawn.batch.targets, counts=drawn.batch.targets.counts.double())
    )
    work = Workspace.for_block(some, 4)
    found = torch_gradients(ANALOGY, some, told, batch, SETTINGS, work, None)
    e, r = (rows.clone().requires_grad_() for rows in (some, told))
    tails = batch.tail_queries
    asked = torch.cat(
        [
            contract_plainly(ANALOGY, head=e[batch.entities[:tails]], relation=r[batch.relations[:tails]]),
            contract_plainly(ANALOGY, relation=r[batch.relations[tails:]], tail=e[batch.entities[tails:]]),
        ]
    )
    loss = multiclass_plainly(asked, e, batch.targets) / batch.triples
    loss.backward()
    torch.testing.assert_close(found.loss, loss.detach())
    torch.testing.assert_close(found.entities, e.grad)
    torch.testing.assert_close(found.relations, r.grad)


@pytest.mark.parametrize("size", [SETTINGS.batch_size, 2])  # an epoch's last batch may be small
@pytest.mark.parametrize("query", [0, 7, 100])  # the first asks from the hub, for itself and others
def test_sums_over_drawn_entities_are_on_average_those_over_all(graph, embeddings, query, size):
    """For one query, in company that changes from step to step."""
    entities, _ = embeddings
    powers = (entities @ torch.linspace(-0.5, 0.5, D, dtype=torch.float64)).exp()
    draws, rng, sums = Draws(graph, SETTINGS), np.random.default_rng(0), []
    others = np.setdiff1d(np.arange(len(draws.queries)), [query])
    for _ in range(4000):
        chosen = np.sort(np.append(rng.choice(others, size - 1, replace=False), query))
        drawn = draws.draw(batch_of(draws.queries, chosen), rng)
        column = powers[drawn.entity_rows][:, None].repeat(1, len(chosen))
        drawn.batch.targets.weigh(column, 0)
        sums.append(float(column[:, np.searchsorted(chosen, query)].sum()))
    error = np.std(sums) / len(sums) ** 0.5
    assert np.mean(sums) == pytest.approx(float(powers.sum()), abs=4 * error, rel=0.01)


def test_drawing_all_is_the_multiclass_loss(graph):
    exact = replace(SETTINGS, loss="multiclass", epochs=3, start_scale=0.3, regulariser="n3")
    exact = replace(exact, batch_size=1000, reciprocal=True, relation_prediction=0.3)
    drawn = replace(exact, loss="sampled-softmax", negatives=N)
    one, two = (train(graph, ANALOGY, settings, seed=1, clock=clock()) for settings in (exact, drawn))
    assert one.state.curve[-1].loss == pytest.approx(two.state.curve[-1].loss, rel=1e-4)
    torch.testing.assert_close(one.model.entities, two.model.entities, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("optimiser", ["adagrad", "adam", "sgd"])
def test_rows_that_a_step_does_not_see_stay_as_they_are(graph, optimiser):
    settings = replace(SETTINGS, optimiser=optimiser, batch_size=3, negatives=2)
    drawn = drawn_batch(graph, settings)
    start = torch.randn(N, D, generator=torch.Generator().manual_seed(1))
    told = torch.randn(len(drawn.relation_rows), D)
    found = multiclass_gradients(
        ANALOGY, start[drawn.entity_rows], told, drawn.batch, settings,
        Workspace.of(start, 3, 0).among(len(drawn.entity_rows)),
    )  # fmt: skip
    one = Optimiser(start.clone(), settings, {})
    one.step_distinct_rows(drawn.entity_rows, found.entities.clone(), 0.1)
    moved = (one.matrix != start).any(1).nonzero()[:, 0]
    assert moved.tolist() == drawn.entity_rows.tolist()


def test_a_hub_is_asked_in_pieces(graph):
    draws = Draws(graph, SETTINGS)
    assert len(draws.queries) > len(training_queries(graph, reciprocal=False))
    assert draws.most_entities(1) == SETTINGS.negatives + 1 + MOST_ANSWERS
    assert draws.most_entities(10_000) == N


def test_a_step_moves_whole_to_the_devices_memory(graph):
    """`meta` has shapes alone, but it is another device than the CPU."""
    drawn = drawn_batch(graph, SETTINGS).on(torch.device("meta"))
    batch, targets = drawn.batch, drawn.batch.targets
    tensors = [drawn.entity_rows, drawn.relation_rows, batch.entities, batch.relations, targets.rows]
    tensors += [
        targets.starts,
        targets.answers,
        targets.counts,
        targets.drawn.stands_for,
        targets.drawn.sources,
    ]
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert drawn_batch(graph, SETTINGS).on(torch.device("cpu")).entity_rows.device.type == "cpu"
