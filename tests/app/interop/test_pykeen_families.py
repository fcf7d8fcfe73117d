"""PyKEEN's families as baselines: each trains and ranks, with our loss, our reals and our ranks."""

import itertools
import json
import warnings

import pytest
import torch

from autosf.app.cli import run
from autosf.app.comparing import arena_of
from autosf.app.contestants import contestants_in
from autosf.app.graphs import graph_of
from autosf.app.interop.pykeen_families import (
    FAMILIES,
    family_named,
    train_family,
    training_loop,
    triples_factory,
)
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.evaluation.metrics import summarise
from autosf.evaluation.ranking import rank_scores
from autosf.graph.known_answers import known_answers
from autosf.graph.registry import packaged_folders
from random_models import random_graph

pytestmark = pytest.mark.skipif(not packaged_folders(), reason="pykeen is not installed")
OF_TABLE_4 = ("TransE", "TransH", "TransR", "RotatE", "NTN", "ConvE", "TuckER", "QuatE", "RESCAL", "HolE")


@pytest.fixture(autouse=True)
def one_thread():
    """Models this small gain nothing from more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(graph, name, *, epochs=1, validate=None, **settings):
    wanted = TrainingSettings(dimension=16, epochs=epochs, batch_size=64, **settings)
    clock = itertools.count().__next__
    return train_family(graph, family_named(name), wanted, seed=0, clock=clock, validate=validate)


@pytest.mark.slow
@pytest.mark.parametrize("name", [family.name for family in FAMILIES.values()])
def test_every_family_trains_and_is_ranked(name):
    graph = random_graph(5, entities=12, relations=3, triples=60)
    found = trained(graph, name, epochs=2)
    scores = found.scorer.tail_scores(torch.arange(3), torch.arange(3))
    assert scores.shape == (3, 12)
    assert scores.isfinite().all()
    assert scores.std() > 0
    assert summarise(rank_scores(found.scorer, graph.valid, known_answers(graph))).mrr > 0.1
    assert found.epochs == 2
    rows = found.scorer.theirs.entity_representations
    reals = sum(torch.view_as_real(p).numel() if p.is_complex() else p.numel() for p in rows.parameters())
    assert reals == 12 * (17 if name == "ConvE" else 16)  # ConvE has a bias for each entity


def test_the_families_of_the_papers_table_are_there():
    assert {name.lower() for name in OF_TABLE_4} <= set(FAMILIES)
    with pytest.raises(UserError, match='unknown family "pykeen:TransX"; did you mean "trans'):
        family_named("TransX")


@pytest.mark.parametrize(("name", "width"), [("TransE", 16), ("RotatE", 8), ("QuatE", 4)])
def test_an_entity_has_as_many_reals_in_every_family(name, width):
    assert family_named(name).arguments_for(16)["embedding_dim"] == width
    if width == 4:
        with pytest.raises(UserError, match="expected a multiple of 4 for pykeen:QuatE, found 18"):
            family_named(name).refuse_dimension(18)


def test_the_loss_is_ours_of_every_query_with_its_answers():
    from autosf.app.interop.pykeen_loss import MulticlassLoss

    rng = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(5, 9, generator=rng), (torch.rand(5, 9, generator=rng) < 0.4).float()
    found = MulticlassLoss().process_lcwa_scores(scores, labels)
    ours = sum(
        row.sum() * torch.logsumexp(s, 0) - (s * row).sum() for s, row in zip(scores, labels, strict=True)
    )
    torch.testing.assert_close(found, ours / labels.sum())


@pytest.mark.slow
def test_our_ranks_of_a_family_are_pykeens_with_both_sides_through_inverse_relations():
    graph = graph_of("nations")
    scorer = trained(graph, "TransE", epochs=3).scorer
    ours = summarise(rank_scores(scorer, graph.test, known_answers(graph)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pykeen.evaluation import RankBasedEvaluator

        train, valid, test = (
            triples_factory(graph, split, inverse=False).mapped_triples
            for split in ("train", "valid", "test")
        )
        theirs = RankBasedEvaluator().evaluate(
            scorer.theirs, test, additional_filter_triples=[train, valid], batch_size=32, use_tqdm=False
        )
    assert ours.mrr == pytest.approx(theirs.get_metric("both.realistic.inverse_harmonic_mean_rank"), abs=1e-6)
    assert ours.hits_at_10 == pytest.approx(theirs.get_metric("both.realistic.hits_at_10"), abs=1e-6)


def test_the_best_validated_weights_are_kept_and_training_stops_when_nothing_improves():
    graph = graph_of("nations")
    seen, figures = [], iter([0.1, 0.5, 0.4, 0.3, 0.2, 0.1])

    def validate(scorer):
        seen.append({name: rows.clone() for name, rows in scorer.theirs.state_dict().items()})
        return next(figures)

    found = trained(graph, "DistMult", epochs=6, validate=validate, validate_every=1, patience=2)
    assert (found.best_epoch, found.epochs, len(seen)) == (2, 4, 4)
    kept = found.scorer.theirs.state_dict()
    assert all(torch.equal(kept[name], rows) for name, rows in seen[1].items())


def test_a_family_is_trained_and_ranked_on_the_device_of_the_comparison():
    """On one that holds no numbers: what it is told shows that it was there."""
    graph, settings = random_graph(), TrainingSettings(dimension=8, epochs=1)
    loop, _ = training_loop(graph, family_named("TransE"), settings, 0, "meta")
    assert {rows.device.type for group in loop.optimizer.param_groups for rows in group["params"]} == {"meta"}
    (family,) = contestants_in(["pykeen:TransE"])
    with pytest.raises(UserError, match=r"PyKEEN could not train TransE .*meta"):
        family.measure(arena_of(graph, settings, "valid", "meta"), 0)
    assert family.measure(arena_of(graph, settings, "valid", "cpu"), 0)["valid"]["mrr"] > 0


def test_a_comparison_has_a_row_for_a_family(capfd):
    options = ["--epochs", "1", "--dimension", "8", "--json"]
    assert run(["compare", "nations", "--models", "distmult,pykeen:TransE", *options]) == 0
    ours, theirs = json.loads(capfd.readouterr().out)["rows"]
    assert (theirs["kind"], theirs["device"]) == ("pykeen", ours["device"])
    assert 0 < theirs["test"]["mrr"] <= 1
    assert theirs["test"]["count"] == ours["test"]["count"] == 201
    assert theirs["seconds"] >= theirs["train_seconds"] > 0
