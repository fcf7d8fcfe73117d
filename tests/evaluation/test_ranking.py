"""Ranks: equal to the plain definition for any model, and to PyKEEN's on real graphs."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.zoo import structure_from
from autosf.embedding.model import Model
from autosf.evaluation import asked_side, ranking
from autosf.evaluation.ranking import Ranking, Ranks, rank, rank_plainly, rank_scores
from autosf.graph.known_answers import KnownAnswers, head_answers, known_answers, tail_answers
from autosf.graph.reading import read_graph
from autosf.graph.registry import search_path
from strategies import structures


def small_known(parts: list[np.ndarray], entities: int, relations: int) -> KnownAnswers:
    size = {"entities": entities, "relations": relations}
    return KnownAnswers(tails=tail_answers(parts, **size), heads=head_answers(parts, **size))


def assert_equal(found: Ranks, expected: Ranks) -> None:
    for column in ("head_rank", "tail_rank", "head_candidates", "tail_candidates"):
        np.testing.assert_array_equal(getattr(found, column), getattr(expected, column), err_msg=column)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Model, np.ndarray, KnownAnswers]:
    """A small model with whole-numbered embeddings, so that many scores tie; triples, some of them known."""
    parts = draw(st.sampled_from([2, 4, 6]))
    structure = draw(structures(parts))
    entities, relations, reciprocal = draw(st.integers(1, 12)), draw(st.integers(1, 3)), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    largest = draw(st.integers(0, 3))
    dimension = parts * draw(st.integers(1, 3))

    def embeddings(count: int) -> torch.Tensor:
        return torch.from_numpy(
            rng.integers(-largest, largest + 1, size=(count, dimension)).astype(np.float32)
        )

    model = Model(structure, embeddings(entities), embeddings(relations * (1 + reciprocal)), reciprocal)

    def triples(most: int) -> np.ndarray:
        count = draw(st.integers(0, most))
        return rng.integers(0, [entities, relations, entities], size=(count, 3)).astype(np.int32)

    asked, others = triples(60), triples(60)
    kept = asked[: draw(st.integers(0, len(asked)))]  # a triple that is ranked need not be a known one
    return model, asked, small_known([kept, others], entities, relations)


@given(questions(), st.integers(1, 40), st.integers(1, 600))
def test_ranks_equal_the_plain_version_for_any_structure_batch_and_memory(question, batch, score_bytes):
    model, triples, known = question
    assert_equal(rank(model, triples, known, batch=batch, score_bytes=score_bytes), rank_plainly(*question))


@given(questions(), st.integers(1, 50), st.integers(1, 50), st.integers(0, 9), st.integers(1, 5))
def test_ranks_do_not_depend_on_how_the_work_is_cut(question, scratch, pairs, few, most):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SCRATCH": scratch, "PAIRS": pairs, "FEW": few, "MOST": most}.items():
            patch.setattr(asked_side, name, value)
            patch.setattr(ranking, name, value, raising=False)
        assert_equal(rank(*question), rank_plainly(*question))


@given(questions(), st.integers(1, 40))
def test_what_was_worked_out_for_one_model_serves_the_next(question, batch):
    model, triples, known = question
    ranked = Ranking(triples, known, batch=batch)
    other = replace(model, entities=-model.entities.flip(0))
    for one in (model, other, model):
        assert_equal(ranked(one), rank_plainly(one, triples, known))


@given(
    questions(),
    st.sampled_from([torch.nan, torch.inf, -torch.inf]),
    st.sampled_from(["entities", "relations"]),
)
def test_scores_that_are_no_numbers_rank_as_minus_infinity(question, value, where):
    model, _, _ = question
    getattr(model, where)[0, 0] = value
    assert_equal(rank(*question), rank_plainly(*question))


class ByScores:
    """A model that tells scores only."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def tail_scores(self, heads: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        return self.model.tail_query(heads, relations) @ self.model.entities.T

    def head_scores(self, relations: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
        return self.model.head_query(relations, tails) @ self.model.entities.T


@given(questions(), st.integers(1, 40), st.sampled_from([0.0, torch.nan, torch.inf]))
def test_a_model_of_any_kind_is_ranked_by_its_scores_as_one_by_its_vectors(question, batch, value):
    model, triples, known = question
    model.entities[0, 0] = value
    assert_equal(rank_scores(ByScores(model), triples, known, batch=batch), rank_plainly(*question))


class OnMeta:
    """Answers on a device that holds no numbers, where it wants to be asked."""

    def head_scores(self, relations: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
        assert (relations.device.type, tails.device.type) == ("meta", "meta")
        return torch.empty(len(tails), 9, device="meta")

    tail_scores = head_scores


def test_a_model_of_any_kind_is_asked_and_answers_on_its_device():
    triples = np.array([[0, 0, 1]], dtype=np.int32)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        rank_scores(OnMeta(), triples, small_known([triples], 9, 1), device="meta")


def test_a_diverged_model_ranks_as_chance_does_not_as_perfect():
    model = Model(structure_from("complex"), torch.full((9, 8), torch.nan), torch.ones(1, 8))
    triples = np.array([[0, 0, 1]], dtype=np.int32)
    found = rank(model, triples, small_known([triples], 9, 1))
    assert found.head_rank == found.tail_rank == 5


@pytest.mark.parametrize("entities", [7, 101, 1000])
@pytest.mark.parametrize("dimension", [8, 36, 128])
@pytest.mark.parametrize("triples", [1, 2, 5])
def test_equal_entities_tie_however_few_are_asked_about(entities, dimension, triples):
    generator = torch.Generator().manual_seed(0)
    row, relations = (
        torch.randn(1, dimension, generator=generator),
        torch.randn(9, dimension, generator=generator),
    )
    model = Model(structure_from("complex"), row.repeat(entities, 1), relations)
    asked = np.array([[0, number, 1] for number in range(triples)], dtype=np.int32)
    known = small_known([asked], entities, 9)
    for ranks in (rank(model, asked, known), rank_plainly(model, asked, known)):
        assert {*ranks.head_rank, *ranks.tail_rank} == {(entities + 1) / 2}


def test_low_precision_and_gradients_are_no_obstacle():
    rng = torch.Generator().manual_seed(0)
    entities = torch.randint(-2, 3, (300, 8), generator=rng).to(torch.bfloat16).requires_grad_()
    relations = torch.randint(-2, 3, (2, 8), generator=rng).to(torch.bfloat16)
    triples = np.random.default_rng(0).integers(0, [300, 2, 300], size=(50, 3)).astype(np.int32)
    known = small_known([triples], 300, 2)
    exact = Model(structure_from("simple"), entities.float(), relations.float())
    low = Model(structure_from("simple"), entities, relations)
    assert_equal(rank(low, triples, known), rank(exact, triples, known))


def test_a_hand_made_rank_with_a_tie_and_a_known_answer():
    # DistMult on two numbers; tails of (0, 0, ?) score 3, 1, 2, 1, 0 for the entities 0 to 4.
    entities = torch.tensor([[1.0, 0], [1 / 3, 0], [2 / 3, 0], [1 / 3, 0], [0, 0]])
    model = Model(structure_from("[[1,0],[0,2]]"), entities, torch.tensor([[3.0, 0]]))
    triples = np.array([[0, 0, 1]], dtype=np.int32)
    known = small_known([triples, np.array([[0, 0, 0]], dtype=np.int32)], 5, 1)
    found = rank(model, triples, known)
    assert found.tail_rank == 2.5  # behind entity 2, level with entity 3; entity 0 is known
    assert found.tail_candidates == 4


@pytest.mark.data
@pytest.mark.parametrize("name", ["UMLS", "CoDEx-S"])
@pytest.mark.parametrize("structure", ["complex", "autosf-wn18rr"])
def test_ranks_equal_those_of_pykeen_triple_by_triple(name, structure, data_folder):
    pytest.importorskip("pykeen")
    graph = read_graph(name, search_path=search_path({"AUTOSF_DATA": str(data_folder)}))
    rng = torch.Generator().manual_seed(0)
    entities, relations = (torch.randn(len(v), 16, generator=rng) for v in (graph.entities, graph.relations))
    model = Model(structure_from(structure), entities, relations)
    found = rank(model, graph.test, known_answers(graph))
    theirs = ranks_by_pykeen(model, graph)
    np.testing.assert_array_equal(found.head_rank, theirs["head"])
    np.testing.assert_array_equal(found.tail_rank, theirs["tail"])


def ranks_by_pykeen(model, graph) -> dict[str, np.ndarray]:
    """PyKEEN's filtered realistic ranks of the test triples, for the same embeddings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pykeen.evaluation import RankBasedEvaluator
        from pykeen.models import AutoSF
        from pykeen.triples import CoreTriplesFactory

        train, valid, test = (torch.from_numpy(split.astype(np.int64)) for _, split in graph.splits())
        factory = CoreTriplesFactory.create(
            train, num_entities=len(graph.entities), num_relations=len(graph.relations)
        )
        parts = model.structure.parts
        terms = [(t.head - 1, t.relation - 1, t.tail - 1, t.sign) for t in model.structure.terms()]
        theirs = AutoSF(
            triples_factory=factory,
            embedding_dim=model.dimension // parts,
            num_components=parts,
            coefficients=terms,
        )
        with torch.no_grad():
            for part in range(parts):
                width = slice(part * model.dimension // parts, (part + 1) * model.dimension // parts)
                theirs.entity_representations[part]._embeddings.weight.copy_(model.entities[:, width])
                theirs.relation_representations[part]._embeddings.weight.copy_(model.relations[:, width])
        evaluator = RankBasedEvaluator(filtered=True, clear_on_finalize=False)
        evaluator.evaluate(
            theirs, test, batch_size=64, additional_filter_triples=[train, valid], use_tqdm=False
        )
    return {side: np.concatenate(evaluator.ranks[side, "realistic"]) for side in ("head", "tail")}
