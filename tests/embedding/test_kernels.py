"""The contraction and the multi-class loss against their definitions, autograd and finite differences."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autosf.algebra.zoo import ZOO, named
from autosf.embedding.kernels import contract, contract_plainly, in_columns, score
from autosf.embedding.multiclass import Targets, Workspace, multiclass, multiclass_plainly
from scoring import score as plain_score
from strategies import structures

ROLES = ("head", "relation", "tail")


def rows(n: int, d: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(st.sampled_from([2, 4, 6]).flatmap(structures), st.integers(1, 3), st.integers(1, 5))
def test_the_fast_contraction_equals_the_plain_one(structure, width, n):
    given_ = {role: rows(n, structure.parts * width, seed) for seed, role in enumerate(ROLES)}
    for absent in ROLES:
        two = {role: x for role, x in given_.items() if role != absent}
        torch.testing.assert_close(contract(structure, **two), contract_plainly(structure, **two))
        turned = {role: in_columns(x, torch.arange(n)) for role, x in two.items()}
        torch.testing.assert_close(contract(structure, **turned), contract_plainly(structure, **two))


@given(structures())
def test_every_query_scores_the_same_triple(structure):
    roles = {role: rows(3, 8, seed) for seed, role in enumerate(ROLES)}
    plain = [plain_score(structure, *(roles[role][i].tolist() for role in ROLES)) for i in range(3)]
    expected = torch.tensor(plain, dtype=torch.float64)
    for absent in ROLES:
        query = contract(structure, **{role: x for role, x in roles.items() if role != absent})
        torch.testing.assert_close((query * roles[absent]).sum(-1), expected)
    torch.testing.assert_close(score(structure, **roles), expected)


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_contractions_are_the_gradients(known):
    roles = {role: rows(4, 8, seed).requires_grad_() for seed, role in enumerate(ROLES)}
    query = contract_plainly(known.structure, head=roles["head"], relation=roles["relation"])
    (query * roles["tail"]).sum().backward()
    detached = {role: x.detach() for role, x in roles.items()}
    for absent in ROLES:
        two = {role: x for role, x in detached.items() if role != absent}
        torch.testing.assert_close(contract(known.structure, **two), roles[absent].grad)


def targets(counts: list[int], entities: int, seed: int = 0) -> Targets:
    generator = torch.Generator().manual_seed(seed)
    return Targets(
        starts=torch.tensor(counts).cumsum(0) - torch.tensor(counts),
        rows=torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts)),
        answers=torch.randint(0, entities, (sum(counts),), generator=generator),
        counts=torch.tensor(counts, dtype=torch.float64),
    )


@settings(max_examples=50)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=9),
    st.integers(1, 3000),
    st.sampled_from([0.1, 1.0, 40.0]),
)
def test_multiclass_equals_autograd_of_its_definition(counts, entities, scale):
    """Blocks of any size, chunks of entities, and scores that overflow float32's exp when scale is large."""
    e = (rows(entities, 4, 1) * scale).requires_grad_()
    q = (rows(len(counts), 4, 2) * scale).requires_grad_()
    wanted = targets(counts, entities)
    loss = multiclass_plainly(q, e, wanted)
    loss.backward()
    for block in (1, 2, len(counts)):
        work = Workspace.for_block(e.detach(), block)
        found, by_query, by_entity = multiclass(q.detach(), e.detach(), wanted, work)
        torch.testing.assert_close(found, loss.detach())
        torch.testing.assert_close(by_query, q.grad)
        torch.testing.assert_close(by_entity, e.grad)


def test_multiclass_equals_finite_differences():
    e, q, wanted = rows(7, 4, 1), rows(3, 4, 2), targets([1, 2, 1], 7)
    work = Workspace.of(e, 3, 1)
    _, by_query, by_entity = multiclass(q, e, wanted, work)
    for matrix, gradient in ((q, by_query), (e, by_entity.clone())):
        for place in ((0, 0), (2, 3), (1, 1)):
            step = 1e-6
            matrix[place] += step
            above = multiclass_plainly(q, e, wanted)
            matrix[place] -= 2 * step
            below = multiclass_plainly(q, e, wanted)
            matrix[place] += step
            assert float((above - below) / (2 * step)) == pytest.approx(
                float(gradient[place]), rel=1e-5, abs=1e-7
            )


def test_huge_scores_in_float32_give_the_exact_loss():
    e, q = rows(50, 4, 1).float() * 30, rows(5, 4, 2).float() * 30
    wanted = targets([1, 1, 2, 1, 1], 50)
    wanted = replace(wanted, counts=wanted.counts.float())
    found, by_query, by_entity = multiclass(q, e, wanted, Workspace.of(e, 5, 1))
    torch.testing.assert_close(found, multiclass_plainly(q, e, wanted), rtol=1e-4, atol=1e-2)
    assert torch.isfinite(by_query).all()
    assert torch.isfinite(by_entity).all()


def test_the_workspace_keeps_to_its_bound():
    e = torch.zeros(10_000, 4)
    assert Workspace.of(e, 512, 2).block_size == 52
    assert Workspace.of(e, 16, 2).block_size == 16
    assert Workspace.of(torch.zeros(1_000_000, 4), 512, 1).block_size == 1


def test_complex_by_torchs_own_complex_numbers():
    h, r, t = (rows(6, 8, seed) for seed in range(3))
    h, r, t = (torch.complex(x[:, :4], x[:, 4:]) for x in (h, r, t))
    expected = (h * r * t.conj()).sum(-1).real
    flat = [torch.cat([x.real, x.imag], dim=1) for x in (h, r, t)]
    found = score(named("complex").structure, head=flat[0], relation=flat[1], tail=flat[2])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("entities", "dimension", "megabytes", "block"),
    [
        (40_943, 64, 0, 192),  # what stays in cache
        (40_943, 256, 0, 512),  # two queries for each dimension
        (14_541, 64, 0, 512),  # all of a batch
        (40_943, 256, 32, 192),  # as the setting says, whatever is fastest
        (40_943, 256, 1, 6),
        (3_000_000, 16, 1, 1),
    ],
)
def test_a_block_has_as_many_queries_as_there_is_room_for(entities, dimension, megabytes, block):
    matrix = torch.empty(entities, dimension, device="meta")
    assert Workspace.of(matrix, 512, megabytes).block_size == block
