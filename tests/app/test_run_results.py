"""What a run names where its finals did not take place."""

from random import Random

from autosf.algebra.invariance import canonical
from autosf.algebra.zoo import named
from autosf.app.run_results import outcome_of
from autosf.runs.ledger import opened_ledger
from autosf.runs.task import key_of
from autosf.search.record import Record, Trial
from searched_run import SETTINGS, made_run, nasty_graph

STEADY, LUCKY, *OTHERS = (
    canonical(named(name).structure, "extended")
    for name in ("simple", "analogy", "distmult", "complex", "autosf-wn18", "autosf-fb15k237")
)


def test_a_search_without_finals_names_what_its_posterior_leads_with_and_not_the_highest_figure(tmp_path):
    run = made_run(tmp_path / "run", nasty_graph())
    rng = Random(0)
    values = {STEADY: [0.59, 0.62, 0.604], LUCKY: [0.606]}
    values |= {other: [0.4 + rng.gauss(0, 0.02) for _ in range(3)] for other in OTHERS}
    with opened_ledger(run.ledger, lambda: 0.0, writes=True) as ledger:
        ledger.add_event("began", "")
        for structure, figures in values.items():
            for seed, figure in enumerate(figures):
                trial = Trial(structure, SETTINGS.epochs, seed)
                ledger.add(key_of(trial, run.graph, SETTINGS), Record(trial, figure, SETTINGS.epochs))
        ledger.add_event("ended", "the time is used up")
    outcome = outcome_of(run)
    assert outcome.standings[0].structure == LUCKY
    assert outcome.best.structure == STEADY
    assert outcome.best.verdict is None
