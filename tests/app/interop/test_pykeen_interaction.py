"""Our contraction as a PyKEEN interaction: the plain scores, their gradients, and a life in PyKEEN's pipeline."""

import pickle
import warnings

import pytest
import torch

from autosf.algebra.zoo import structure_from
from autosf.embedding.kernels import score
from autosf.graph.registry import packaged_folders

pytestmark = pytest.mark.skipif(not packaged_folders(), reason="pykeen is not installed")

# heads, relations and tails of: triples; tail, head and relation queries; negatives of a triple; odd broadcasts
SHAPES = [
    ((5,), (5,), (5,)),
    ((5, 1), (5, 1), (1, 7)),
    ((1, 7), (5, 1), (5, 1)),
    ((5, 1), (1, 7), (5, 1)),
    ((5, 1), (5, 1), (5, 3)),
    ((5, 3), (5, 1), (5, 1)),
    ((5, 3), (5, 1), (5, 3)),
    ((4, 1, 1), (1, 5, 1), (1, 1, 6)),
    ((0, 1), (0, 1), (1, 7)),
]


def plain_scores(structure, *batches):
    one, *others = torch.broadcast_tensors(*batches)
    rows = [batch.reshape(-1, one.shape[-1]) for batch in (one, *others)]
    signs = torch.zeros(4, 4, 4, dtype=one.dtype)
    for term in structure.terms():
        signs[term.head - 1, term.relation - 1, term.tail - 1] = term.sign
    parts = [batch.view(-1, 4, batch.shape[-1] // 4) for batch in rows]
    return torch.einsum("hrt,nhw,nrw,ntw->n", signs, *parts).view(one.shape[:-1])


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["autosf-wn18rr", "simple"])
def test_scores_and_gradients_are_the_plain_ones_for_every_broadcast(name, shapes):
    from autosf.app.interop.pykeen_interaction import BilinearInteraction

    structure, rng = structure_from(name), torch.Generator().manual_seed(0)
    batches = [
        torch.randn(*shape, 8, generator=rng, dtype=torch.float64).requires_grad_() for shape in shapes
    ]
    found, expected = BilinearInteraction(name)(*batches), plain_scores(structure, *batches)
    torch.testing.assert_close(found, expected)
    gradients, plain_gradients = (
        torch.autograd.grad(scores.sin().sum(), batches) for scores in (found, expected)
    )
    for one, other in zip(gradients, plain_gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_scores_are_those_of_pykeens_own_interaction_of_the_same_terms():
    from pykeen.nn.modules import AutoSFInteraction

    from autosf.app.interop.pykeen_interaction import BilinearInteraction

    structure = structure_from("autosf-yago3-10")
    terms = [(t.head - 1, t.relation - 1, t.tail - 1, t.sign) for t in structure.terms()]
    h, r, t = (torch.randn(6, 8) for _ in range(3))
    theirs = AutoSFInteraction(terms)(h.chunk(4, -1), r.chunk(4, -1), t.chunk(4, -1))
    torch.testing.assert_close(BilinearInteraction(structure)(h, r, t), theirs)
    torch.testing.assert_close(score(structure, head=h, relation=r, tail=t), theirs)


def test_pykeen_knows_both_by_name():
    from pykeen.models import model_resolver
    from pykeen.nn.modules import interaction_resolver

    from autosf.app.interop.pykeen_interaction import Bilinear, BilinearInteraction

    assert model_resolver.lookup("bilinear") is Bilinear
    made = interaction_resolver.make("bilinear", structure=[[1, 0], [0, 2]])
    assert isinstance(made, BilinearInteraction)
    assert made.structure.rows == ((1, 0), (0, 2))


@pytest.mark.slow
def test_a_pipeline_trains_it_and_its_result_survives_a_pickle():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyKEEN's own
        from pykeen.pipeline import pipeline

        from autosf.app.interop.pykeen_interaction import Bilinear

        result = pipeline(
            dataset="nations",
            dataset_kwargs={"create_inverse_triples": True},
            model=Bilinear,
            model_kwargs={"structure": "simple", "embedding_dim": 16},
            loss="crossentropy",
            training_loop="lcwa",
            optimizer_kwargs={"lr": 0.05},
            training_kwargs={"num_epochs": 20, "use_tqdm": False},
            evaluation_kwargs={"use_tqdm": False},
            random_seed=0,
        )
    assert result.losses[-1] < 0.9 * result.losses[0]
    copy = pickle.loads(pickle.dumps(result.model))
    asked = torch.tensor([[0, 1], [3, 2]])
    torch.testing.assert_close(copy.predict_t(asked), result.model.predict_t(asked))
    assert copy.interaction.structure == structure_from("simple")
