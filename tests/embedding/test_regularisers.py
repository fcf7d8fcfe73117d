"""Moduli are the lengths they are said to be, and heads and tails have each their own groups."""

from dataclasses import replace

import pytest
import torch

from autosf.algebra.structure import from_json
from autosf.algebra.summands import belonging_together
from autosf.algebra.zoo import named
from autosf.embedding.kernels import contract_plainly
from autosf.embedding.regularisers import moduli, penalised_relations, penalised_sources
from autosf.embedding.settings import TrainingSettings
from autosf.embedding.training import train
from autosf.graph.synthetic import patterned_graph

SETTINGS = TrainingSettings(regulariser="n3-moduli", entity_weight=0.3, relation_weight=0.2, batch_size=16)
SHORT = replace(SETTINGS, dimension=8, epochs=3, validate_every=0)
# Heads 1 and 2 meet tails 3 and 4: another grouping on either side, and two parts that are by themselves.
CROSSED = from_json("[[0,0,1,2],[0,0,-2,1],[3,0,0,0],[0,4,0,0]]")


def test_a_part_by_itself_has_the_length_of_its_entries():
    rows = torch.randn(5, 8)
    assert torch.equal(moduli(rows, ((2,), (1,), (4,), (3,))), rows.abs())


@pytest.mark.parametrize("columns", [False, True])
def test_a_group_is_one_number(columns):
    rows = torch.randn(5, 8, dtype=torch.float64)
    rows = rows.T.contiguous().T if columns else rows
    found = moduli(rows, ((1, 2, 4), (3,)))
    one, two, three, four = rows.chunk(4, 1)
    length = (one**2 + two**2 + four**2).sqrt()
    torch.testing.assert_close(found, torch.cat([length, length, three.abs(), length], 1))


def test_heads_and_tails_are_weighed_by_groups_of_their_own():
    assert belonging_together(CROSSED, "head") != belonging_together(CROSSED, "tail")
    e, r = (torch.randn(6, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
    counts = torch.tensor([1.0, 2, 1, 3, 1, 1], dtype=torch.float64)

    def lengths(rows, groups):
        parts = rows.chunk(4, 1)
        return sum(sum(parts[k - 1] ** 2 for k in group).sqrt().pow(3).sum(1) for group in groups)

    pairs, singles = ((1, 2), (3,), (4,)), ((3, 4), (1,), (2,))
    by_query = torch.cat([lengths(e[:4], pairs), lengths(e[4:], singles)])
    stated = 0.3 * (counts * by_query).sum()
    stated_relations = 0.2 * (counts * lengths(r, pairs)).sum()
    (stated + stated_relations).backward()
    by_source, by_relation = torch.zeros_like(e), torch.zeros_like(r)
    with torch.no_grad():
        loss = penalised_sources(CROSSED, e, by_source, counts, SETTINGS, 4)
        loss_relations = penalised_relations(CROSSED, r, by_relation, counts, SETTINGS)
    torch.testing.assert_close(loss, stated.detach())
    torch.testing.assert_close(loss_relations, stated_relations.detach())
    torch.testing.assert_close(by_source, e.grad)
    torch.testing.assert_close(by_relation, r.grad)


def test_moduli_stay_where_complex_numbers_are_turned():
    """ComplEx with its numbers turned is the same function: it costs the same, and with n3 it does not."""
    structure = from_json("[[1,0,3,0],[0,2,0,4],[-3,0,1,0],[0,-4,0,2]]")
    h, r, t, turn = (torch.randn(1, 8, dtype=torch.float64) for _ in range(4))
    turn = turn / moduli(turn, ((1, 3), (2, 4)))
    back = (
        contract_plainly(structure, head=h, relation=turn),
        contract_plainly(structure, head=t, relation=turn),
    )
    before = (contract_plainly(structure, head=h, relation=r) * t).sum()
    after = (contract_plainly(structure, head=back[0], relation=r) * back[1]).sum()
    torch.testing.assert_close(before, after)
    torch.testing.assert_close(moduli(back[0], ((1, 3), (2, 4))), moduli(h, ((1, 3), (2, 4))))
    assert not torch.allclose(back[0].abs().pow(3).sum(), h.abs().pow(3).sum())


@pytest.mark.parametrize("name", ["distmult", "simple", "autosf-fb15k237"])
def test_a_structure_that_mixes_nothing_is_trained_to_the_same_bits_as_with_n3(name):
    graph = patterned_graph(symmetric=2, general=2, entities=30, triples=20)
    ends = [
        train(graph, named(name).structure, settings, seed=0, clock=lambda: 0.0).state
        for settings in (SHORT, replace(SHORT, regulariser="n3"))
    ]
    assert torch.equal(ends[0].entities, ends[1].entities)
    assert torch.equal(ends[0].relations, ends[1].relations)
