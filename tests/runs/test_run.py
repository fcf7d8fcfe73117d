"""A run folder is whole or absent, holds no test triple, and refuses to be another run than it was."""

import json
import resource
from dataclasses import replace

import numpy as np
import pytest

from autosf.algebra.invariance import images
from autosf.algebra.zoo import named
from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.graph.known_answers import known_answers
from autosf.graph.synthetic import patterned_graph
from autosf.runs.labels import labelled_graph
from autosf.runs.leaderboard import leaderboard
from autosf.runs.run import Plan, create_run, open_run, promise, refuse_other_graph
from autosf.runs.shared_graph import shared, without_test
from autosf.runs.task import key_of, settings_digest
from autosf.search.record import Record, Trial

PLAN = Plan(TrainingSettings(dimension=8), {"strategy": "random", "trials": 5}, seed=3, source="here")
COMPLEX, SIMPLE = named("complex").structure, named("simple").structure


@pytest.fixture(scope="module")
def graph():
    return patterned_graph(symmetric=1, general=2, valid=0.1, test=0.1)


def test_a_run_opens_as_it_was_created(tmp_path, graph):
    run = create_run(tmp_path / "run", graph, PLAN)
    assert open_run(tmp_path / "run") == run
    assert replace(run.plan, command="") == PLAN
    refuse_other_graph(run, graph)


def test_a_used_folder_is_refused_and_an_empty_one_taken(tmp_path, graph):
    (tmp_path / "run").mkdir()
    create_run(tmp_path / "run", graph, PLAN)
    with pytest.raises(UserError, match="holds a run already; `autosf resume"):
        create_run(tmp_path / "run", graph, PLAN)
    with pytest.raises(UserError, match="holds other files"):
        create_run(tmp_path, graph, PLAN)


def test_another_graph_is_refused(tmp_path, graph):
    run = create_run(tmp_path / "run", graph, PLAN)
    with pytest.raises(UserError, match="another graph"):
        refuse_other_graph(run, patterned_graph(symmetric=1, general=2, valid=0.1, test=0.1, seed=1))


def test_edited_settings_are_refused(tmp_path, graph):
    create_run(tmp_path / "run", graph, PLAN)
    path = tmp_path / "run" / "run.json"
    whole = path.read_text()
    path.write_text(whole.replace('"learning_rate": 0.1', '"learning_rate": 0.2'))
    with pytest.raises(UserError, match="changed since the run began"):
        open_run(tmp_path / "run")
    path.write_text(whole[:50])
    with pytest.raises(UserError, match="damaged"):
        open_run(tmp_path / "run")
    path.write_text(json.dumps({"format": "autosf run", "version": 1}))
    with pytest.raises(UserError, match="expected 'settings'"):
        open_run(tmp_path / "run")
    with pytest.raises(UserError, match="not a run"):
        open_run(tmp_path)


def test_a_run_from_before_a_setting_was_known_opens_with_its_records(tmp_path, graph):
    run = create_run(tmp_path / "run", graph, PLAN)
    path = tmp_path / "run" / "run.json"
    facts = json.loads(path.read_text())
    del facts["settings"]["averaging"]
    path.write_text(json.dumps({**facts, "digest": promise(facts)}))
    opened = open_run(tmp_path / "run")
    assert opened.plan.settings == PLAN.settings
    trial = Trial(named("simple").structure, 5, 0)
    assert key_of(trial, run.graph, opened.plan.settings) == key_of(trial, run.graph, PLAN.settings)
    assert settings_digest(PLAN.settings) != settings_digest(replace(PLAN.settings, averaging=0.5))


def test_a_search_needs_validation(tmp_path, graph):
    with pytest.raises(UserError, match="needs triples in valid"):
        create_run(tmp_path / "run", patterned_graph(general=1), PLAN)
    with pytest.raises(UserError, match="validate_every"):
        create_run(tmp_path / "run", graph, replace(PLAN, settings=replace(PLAN.settings, validate_every=0)))
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_does_not_fit_leaves_nothing(tmp_path, graph):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
    try:
        with pytest.raises(UserError, match="cannot write"):
            create_run(tmp_path / "run", graph, PLAN)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_workers_see_the_same_ids_and_no_test_triple(tmp_path, graph):
    run = create_run(tmp_path / "run", graph, PLAN)
    seen = shared(run.graph_folder)
    assert np.array_equal(seen.graph.train, graph.train)
    assert np.array_equal(seen.graph.valid, graph.valid)
    assert len(seen.graph.test) == 0
    assert (len(seen.graph.entities), len(seen.graph.relations)) == (
        len(graph.entities),
        len(graph.relations),
    )
    known = known_answers(without_test(graph))
    for mapped, plain in ((seen.known.tails, known.tails), (seen.known.heads, known.heads)):
        assert np.array_equal(mapped.keys, plain.keys)
        assert np.array_equal(mapped.offsets, plain.offsets)
        assert np.array_equal(mapped.answers, plain.answers)
        assert mapped.width == plain.width
    with pytest.raises(ValueError, match="read-only"):
        seen.graph.train[0, 0] = 1


def test_labels_come_back_with_the_graph_that_workers_see(tmp_path, graph):
    run = create_run(tmp_path / "run", graph, PLAN)
    found = labelled_graph(run.graph_folder, run.labels)
    assert found.entities.labels.equals(graph.entities.labels)
    assert found.relations.labels.equals(graph.relations.labels)
    assert found.digest == without_test(graph).digest
    (run.labels / "entities.parquet").write_bytes(b"PAR1")
    with pytest.raises(UserError, match=r"entities\.parquet: .* changed"):
        labelled_graph(run.graph_folder, run.labels)


def test_a_damaged_shared_graph_is_refused(tmp_path, graph):
    run = create_run(tmp_path / "run", graph, PLAN)
    path = run.graph_folder / "train.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"train\.npy: changed or damaged"):
        shared(run.graph_folder)


def test_standings_are_means_over_seeds_at_the_highest_fidelity():
    image = list(images(COMPLEX, "extended"))[4_321]
    records = [
        Record(Trial(COMPLEX, 5, 0), 0.9, 5),  # a lower fidelity no longer counts
        Record(Trial(COMPLEX, 20, 0), 0.5, 20),
        Record(Trial(image, 20, 1), 0.7, 15),  # the same class
        Record(Trial(COMPLEX, 40, 2), 0.0, 0, failure="was killed"),
        Record(Trial(SIMPLE, 5, 0), 0.65, 5),
        Record(Trial(named("distmult").structure, 5, 0), 0.0, 0, failure="diverged"),
    ]
    first, second = leaderboard(records)
    assert (first.valid_mrr, first.spread, first.seeds, first.epochs) == (0.65, None, 1, 5)
    assert second.valid_mrr == pytest.approx(0.6)
    assert second.spread == pytest.approx(0.02**0.5)
    assert (second.seeds, second.epochs) == (2, 35)
    assert leaderboard(reversed(records)) == [first, second]
