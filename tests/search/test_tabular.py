"""Searches on a table of known curves: regret is honest, and a search stays where the table has values."""

import pytest
from benchmarks.table import listed, missing_trials, table_of
from benchmarks.tabular import SHARES, Table, form_of, predictors, replayed

from autosf.algebra.space import reachable_classes
from autosf.algebra.zoo import named
from autosf.search.record import Record, Trial
from autosf.search.typical import known_good
from fake_training import known_score

EPOCHS = 8


@pytest.fixture(scope="module")
def table() -> Table:
    """Without noise; curves that rise to the known score."""
    structures = dict.fromkeys([*known_good(), *reachable_classes(5, "extended")])
    curves = {s: (tuple(known_score(s) * e / EPOCHS for e in range(1, EPOCHS + 1)),) for s in structures}
    return Table("made", EPOCHS, curves)


def test_a_search_on_a_table_without_noise_ends_at_its_best_and_never_leaves_it(table):
    found = replayed(table, "free", seed=1)
    assert len(found["regret"]) == len(SHARES)
    assert found["regret"][0] >= found["regret"][-1] == 0.0


def test_a_short_training_is_the_beginning_of_the_curve_under_any_of_the_structures_names(table):
    record = table.record(Trial(named("complex").structure, 4, 7), search_seed=0)
    curve = table.curves[form_of(named("complex").structure)][0]
    assert record.curve == tuple(enumerate(curve[:4], 1))
    assert record.valid_mrr == curve[3]


def test_every_predictor_is_asked_about_what_it_has_not_seen(table):
    assert {"surrogate on invariants", "paper's MLP on srf"} <= set(predictors(table, seed=0))


def test_what_the_table_has_is_not_trained_again():
    first = missing_trials(table_of([]), listed(), EPOCHS, seeds=1)
    done = [Record(trial, 0.5, EPOCHS, ((1, 0.4), (EPOCHS, 0.5))) for trial in first[:10]]
    left = missing_trials(table_of(done), listed(), EPOCHS, seeds=2)
    assert left[: len(first) - 10] == first[10:]
    assert len(left) == 2 * len(first) - 10
