"""A report tells what the run holds, whatever its labels are and however far the search has come."""

import csv
import json
import re
import shutil
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from autosf.algebra.invariance import canonical
from autosf.algebra.zoo import named
from autosf.app.cli import run as autosf
from autosf.app.final_model import final_model, has_model_of_winner, kept_entities, kept_model
from autosf.app.found import Found
from autosf.app.pages import environment
from autosf.app.predicting import load
from autosf.app.report import write_report
from autosf.app.report.comparison import Ground, compared, split_in_two
from autosf.app.report.content import content_of
from autosf.app.report.figures import figures, in_sight
from autosf.app.report.opponent import CHEAP, best_human, opponent_of, train_opponent
from autosf.app.report.page import page
from autosf.app.report.portrait import case_headings, portrait
from autosf.app.report.search_story import Predicted, covered, over_seeds, rank_correlation
from autosf.app.run_results import near, outcome_of, structure_meant, zoo_names
from autosf.app.searching import asked
from autosf.errors import UserError
from autosf.evaluation.metrics import by_group, each_relation, summarise
from autosf.evaluation.ranking import rank
from autosf.graph.known_answers import known_answers
from autosf.graph.negatives import LabelledTriples
from autosf.graph.writing import write_graph
from autosf.runs.history import added_epochs, search_curve
from autosf.runs.ledger import held, opened_ledger
from autosf.runs.run import open_run
from autosf.runs.task import key_of
from autosf.search.record import Record, Trial
from autosf.search.settings import SearchSettings
from autosf.search.verdict import fresh_seeds
from searched_run import NASTY, SETTINGS, add_trials, ended_run, finish, made_run, nasty_graph, tried

COMPLEX, SIMPLE = named("complex").structure, named("simple").structure


@pytest.fixture(scope="module")
def graph():
    return nasty_graph()


@pytest.fixture(scope="module")
def ended(tmp_path_factory, graph):
    """An ended run with both its models, to be read only."""
    run = ended_run(tmp_path_factory.mktemp("ended") / "run", graph)
    train_opponent(run, opponent_of(run, outcome_of(run)), "cpu", pytest.fail, lambda _: None)
    return run


@pytest.fixture(scope="module")
def report(ended):
    return content_of(ended)


@pytest.fixture(scope="module")
def html(ended):
    return render(ended)


def render(run) -> str:
    """A run's report as HTML."""
    report = content_of(run)
    return page(report, figures(report))


def answered(capfd, *arguments):
    code = autosf(["report", *map(str, arguments), "--json"])
    out, err = capfd.readouterr()
    return (json.loads(out) if code == 0 else code), err


class Page(HTMLParser):
    """Tags, attributes and texts of a page as a browser would see them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.texts = set(), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


def test_labels_stay_text(html):
    page = Page(html)
    assert not page.tags & {"script", "img", "iframe", "object", "h4", "form"}
    assert "big" not in page.texts, "a label's heading became one of the page's"
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    text = "".join(page.texts)
    for label in NASTY[:4]:
        assert f"{label} relation" in text
    assert "\u202e" not in html
    assert "\u0007" not in html


def test_nothing_is_loaded_from_anywhere(html):
    for name, value in Page(html).attributes:
        if name in ("src", "href", "srcset", "data", "action"):
            assert value.startswith(("#", "data:image/svg+xml;base64,", "data:text/csv;base64,"))
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_links_within_the_page_lead_somewhere(html):
    ids = {value for name, value in Page(html).attributes if name == "id"}
    targets = {value[1:] for name, value in Page(html).attributes if name == "href" and value.startswith("#")}
    assert targets
    assert targets <= ids


def test_page_and_json_tell_the_same(ended, tmp_path):
    result = json.loads(json.dumps(write_report(ended, tmp_path / "page.html")))
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert result["path"] == str(tmp_path / "page.html")
    best = result["result"]["best"]
    assert f"{best['valid_mrr']:.4f}" in html
    text = "".join(Page(html).texts).replace("\N{NO-BREAK SPACE}", " ").replace("\N{MINUS SIGN}", "-")
    assert f"f(h, r, t) = {result['winner']['formula']}" in text
    assert all(f"{model['mrr']:.4f}" in html for model in result["comparison"]["models"])
    assert result["circumstances"]["command"] == "autosf search '<graph>'"
    assert {"graph", "search_curves", "learning_curves", "prediction", "time", "missing"} <= set(result)


def test_every_figure_is_a_drawing_and_a_table(ended, tmp_path):
    result = write_report(ended, tmp_path / "page.html")
    assert {"winner", "structure-complex", "search-curve", "learning-curves", "prediction", "patterns-valid",
            "relations-valid", "leaderboard", "graph-patterns", "time"} <= set(result["figures"])  # fmt: skip
    for name, files in result["figures"].items():
        assert ElementTree.parse(files["svg"]).getroot().tag.endswith("svg")
        with Path(files["csv"]).open(encoding="utf-8", newline="") as file:
            heading, *rows = csv.reader(file)
        assert rows, name
        assert {len(row) for row in rows} == {len(heading)}
    relations = Path(result["figures"]["relations-valid"]["csv"]).read_text(encoding="utf-8")
    assert all(label in relations for label in NASTY[3:5])


def test_figures_are_saved_from_the_page_without_other_files(html):
    saved = dict.fromkeys(name for name, _ in re.findall(r'download="([^"]+)"( href)', html))
    assert {"winner.svg", "winner.csv", "search-curve.svg", "search-curve.csv"} <= set(saved)


def test_the_winner_is_beside_the_four(report, html):
    assert [known.title for known in report.human] == ["DistMult", "ComplEx", "Analogy", "SimplE"]
    assert html.count('class="structure"') >= 1 + 4 + min(12, len(report.result["leaderboard"]))
    assert report.headline[0].startswith("The winner is a new structure: validation MRR")
    assert "better than ComplEx, the best human-designed one" in report.headline[-1]


def test_the_winner_is_marked_on_the_leaderboard_though_a_lucky_seed_is_above_it(tmp_path, graph):
    run, (lucky, *others) = made_run(tmp_path / "run", graph), tried()
    add_trials(run, [lucky], bonus=5.0)
    add_trials(run, others)
    for seed in fresh_seeds(SearchSettings(strategy="free", epochs=SETTINGS.epochs)):
        add_trials(run, [others[-1]], seed=seed, bonus=0.5)
        add_trials(run, [others[0]], seed=seed)
    assert "the winner</span>" not in render(run), "the finals are not over"
    finish(run)
    html = render(run)
    first, second = re.findall(r'<th scope="row"><span class="with-thumb">.*', html)[:2]
    assert "the winner</span>" not in first
    assert "the winner</span>" in second
    assert "is the winner by seeds that took no part in the search; figures here are over all seeds." in html


def test_kinds_of_relations_are_told_with_their_counts(html):
    assert re.search(r"Relations that are 1-1: \d+, 1-N: \d+, N-1: \d+, N-N: \d+\.", html)


def test_models_are_measured_as_the_search_ranks(ended, report, graph):
    """The test split takes no part: by the known answers of train and valid alone."""
    model = load(ended.folder).model
    known = known_answers(replace(graph, test=np.empty((0, 3), np.int32)))
    ranks = rank(model, graph.valid, known)
    winner, human = report.comparison.models
    assert winner.mrr == summarise(ranks).mrr
    assert human.title == "ComplEx"
    by_relation = by_group(ranks, each_relation(graph))
    assert {row.relation: row.mrr[0] for row in report.comparison.relations} == pytest.approx(
        {name: metrics.mrr for name, metrics in by_relation.items()}
    )
    for row in report.comparison.relations:
        assert row.gain == pytest.approx(row.mrr[0] - row.mrr[1])
    gains = [row.gain for row in report.comparison.relations]
    assert gains == sorted(gains, reverse=True)
    assert sum(row.count for row in report.comparison.patterns) == len(graph.valid)
    assert len(report.comparison.classification.accuracy) == 2


def test_the_test_split_is_read_only_when_asked_for(tmp_path, ended, graph):
    copy = tmp_path / "run"
    shutil.copytree(ended.folder, copy)
    run = open_run(copy)
    assert "test" not in content_of(run).graph.splits
    assert "Results on the test split" not in render(run)
    with pytest.raises(UserError, match=r"no test triples of .* to measure on: its source is gone"):
        content_of(run, test=True)


def test_asked_for_it_is_what_evaluate_says(tmp_path, capfd):
    from autosf.graph.reading import read_graph
    from autosf.graph.synthetic import patterned_graph

    source = write_graph(
        patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1, test=0.1),
        tmp_path / "graph",
    )
    graph = read_graph(source)
    run = ended_run(tmp_path / "run", graph)
    facts = json.loads((run.folder / "run.json").read_text())
    facts["graph"]["source"] = str(source)
    (run.folder / "run.json").write_text(json.dumps(facts))
    found, _ = answered(capfd, run.folder, "--test", "--no-human")
    assert found["test"]["split"] == "test"
    assert found["test"]["models"][0]["mrr"] == load(run.folder).evaluate()["mrr"]
    assert found["graph"]["splits"]["test"] == len(graph.test)
    assert "Results on the test split" in (run.folder / "report.html").read_text(encoding="utf-8")


def test_a_running_search_is_reported_as_far_as_it_is(tmp_path, graph):
    run = made_run(tmp_path / "run", graph)
    empty = content_of(run)
    assert empty.headline == ("No trial is finished yet.",)
    assert empty.winner is None
    add_trials(run, tried(5))
    with held(run.lock):
        found = content_of(run)
        html = render(run)
    assert (found.result["state"], found.comparison, found.prediction) == ("running", None, None)
    assert found.missing[0].startswith("The search is still running")
    assert "so far" in found.headline[0]
    assert "still running" in html
    assert "Results on validation" not in html


def test_a_stopped_search_says_how_to_go_on(tmp_path, graph):
    run = made_run(tmp_path / "run", graph)
    add_trials(run, tried(3))
    assert "`autosf resume run` goes on" in render(run)


def test_a_search_that_was_made_longer_is_told_with_what_was_asked_for_last(tmp_path, graph):
    run = made_run(tmp_path / "run", graph)
    assert "resumed with" not in render(run)
    longer = asked(run, outcome_of(run), {"trials": 48, "budget": 90.0})
    told = content_of(longer).circumstances
    assert told.asked == {"trials": 48, "budget": 90.0}
    assert {"trials": 48, "budget": 90.0}.items() <= told.search.items()
    assert "Afterwards it was resumed with trials 48, budget 90.0." in render(longer)


def test_a_page_of_nothing_is_a_page(tmp_path, graph):
    assert "No trial is finished yet." in render(made_run(tmp_path / "run", graph))


def test_the_human_designed_one_is_trained_once(tmp_path, graph, capfd):
    run = ended_run(tmp_path / "run", graph)
    found, err = answered(capfd, run.folder, "--no-human")
    assert (len(found["comparison"]["models"]), err) == (1, "")
    assert not (run.folder / "human").exists()
    found, err = answered(capfd, run.folder)
    assert len(found["comparison"]["models"]) == 2
    assert err.startswith("autosf: training ComplEx to compare with, about 0.5 s")
    assert load(run.folder / "human").facts["settings"] == load(run.folder).facts["settings"]
    again, err = answered(capfd, run.folder)
    assert err == ""
    assert again["comparison"]["models"] == found["comparison"]["models"]


def test_what_a_models_manifest_tells_is_asked_of_it_alone(tmp_path, ended):
    folder = tmp_path / "run"
    shutil.copytree(ended.folder, folder)
    (folder / "model" / "model.safetensors").unlink()
    run = open_run(folder)
    best = outcome_of(run).best.structure
    assert has_model_of_winner(run, outcome_of(run))
    assert structure_meant(str(run.model)) == best
    assert kept_entities(run, run.model, best) == 24
    assert kept_entities(run, run.model, COMPLEX) is None
    with pytest.raises(UserError, match=r"model.safetensors: missing"):
        kept_model(run, run.model, best)


def test_a_costly_one_is_trained_only_if_asked_for(tmp_path, graph, capfd):
    run = ended_run(tmp_path / "run", graph, seconds=2 * CHEAP)
    found, err = answered(capfd, run.folder)
    assert (len(found["comparison"]["models"]), err) == (1, "")
    assert found["missing"][-1].endswith("`autosf report --human` does it, about 2 min of training.")
    found, _ = answered(capfd, run.folder, "--human")
    assert (len(found["comparison"]["models"]), found["missing"]) == (2, [])


def test_the_opponent_is_the_best_human_designed_one_but_the_winner(ended):
    outcome = outcome_of(ended)
    assert portrait(best_human(outcome)).title == "ComplEx"
    itself = replace(outcome, best=replace(outcome.best, structure=COMPLEX, verdict=None))
    assert portrait(best_human(itself)).title in ("DistMult", "Analogy", "SimplE")
    untried = replace(outcome, standings=(), best=replace(outcome.best, verdict=None))
    assert portrait(best_human(untried)).title == "ComplEx"


def test_what_no_search_tried_is_not_called_the_best(tmp_path, graph, ended, html):
    assert "beside that of ComplEx, the best human-designed structure," in " ".join(html.split())
    run, new = made_run(tmp_path / "run", graph, "random"), tried()[-3:]
    add_trials(run, new)
    finish(run)
    final_model(run, graph, "cpu")
    untried = "ComplEx, which stands for what people designed (this search tried none of it),"
    assert content_of(run).missing[-1].startswith(f"{untried} is not trained to compare with")
    train_opponent(run, opponent_of(run, outcome_of(run)), "cpu", pytest.fail, lambda _: None)
    page = " ".join(render(run).split())
    assert f"beside that of {untried} trained with the same settings" in page
    assert "best human-designed" not in page
    outcome = outcome_of(ended)
    itself = replace(outcome, best=replace(outcome.best, structure=COMPLEX, verdict=None))
    assert opponent_of(ended, itself).role == "the best human-designed structure but for the winner itself"


def test_rivals_are_drawn_beside(tmp_path, ended, graph):
    rival = made_run(tmp_path / "rival", graph, "random")
    add_trials(rival, tried(6))
    twin = made_run(tmp_path / "twin", graph)
    add_trials(twin, tried(4))
    found = content_of(ended, [rival, twin])
    assert [curve.name for curve in found.search_curves] == ["free (run)", "random", "free (twin)"]
    other = made_run(tmp_path / "other", replace(graph, train=graph.train[1:]))
    with pytest.raises(UserError, match="expected a run on the same graph"):
        content_of(ended, [other])
    hidden = made_run(tmp_path / "hidden", graph, hide_test=True)
    with pytest.raises(UserError, match="ranked otherwise"):
        content_of(ended, [hidden])


def test_a_rival_is_named_apart_and_has_to_compare(tmp_path, ended, graph, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    wider = replace(SETTINGS, dimension=16, learning_rate=0.1)
    rival = made_run(tmp_path / "other" / ended.folder.name, graph, settings=wider)
    add_trials(rival, tried(3))
    found = content_of(ended, [rival])
    first, second = found.search_curves
    assert (first.run, second.run) == (near(ended.folder), "other/run")
    assert second.name == "free (other/run)"
    assert figures(found)["search-curve"].note == (
        "Other settings of free (other/run): dimension 16, learning_rate 0.1. "
    )
    assert figures(content_of(ended))["search-curve"].note == ""
    for twice in ([ended], [rival, rival]):
        with pytest.raises(UserError, match="given twice"):
            content_of(ended, twice)
    few = made_run(tmp_path / "few", graph, settings=replace(SETTINGS, validation_candidates=5))
    with pytest.raises(UserError, match="expected validation_candidates 0, found 5"):
        content_of(ended, [few])


def test_a_user_is_told_in_one_line(tmp_path, ended, capfd):
    for arguments in (
        [tmp_path],
        [ended.folder, "--with", tmp_path],
        [ended.folder, "--out", tmp_path / "a" / "b"],
        [ended.folder, "--out", ""],
        [ended.folder, "--out", "."],
    ):
        (tmp_path / "a").write_text("a file", encoding="utf-8")
        code, err = answered(capfd, *arguments)
        assert code == 2
        assert err.count("\n") == 1


@pytest.mark.parametrize("out", [".", "", "..", 5])
def test_a_page_that_would_be_no_file_is_refused_in_python(ended, out):
    with pytest.raises(UserError, match=r"expected a (file to write, found a folder|path, found)"):
        Found(ended.folder, outcome_of(ended)).report(out)


def test_time_is_that_of_the_clock_on_the_wall(report):
    """24 trials and 6 of the finals took half a second each, one after the other, in 30 seconds."""
    spent = report.time
    assert spent.training + spent.ranking + spent.rest == pytest.approx(30.0)
    assert spent.worker_seconds == pytest.approx(15.0)
    assert spent.epochs == 30 * SETTINGS.epochs


def test_spans_are_counted_once_where_they_overlap():
    assert covered([]) == (0.0, 0)
    assert covered([(0, 2), (1, 3), (5, 6)]) == (4.0, 2)
    assert covered([(0, 1), (1, 2)]) == (2.0, 1)


def test_going_on_costs_what_it_adds():
    records = [Record(Trial(SIMPLE, epochs, 0), 0.1, epochs) for epochs in (2, 8)]
    other = Record(Trial(COMPLEX, 8, 0), 0.2, 8)
    assert added_epochs([*records, other]) == [2, 6, 8]
    settings = SearchSettings(strategy="random", epochs=8)
    assert search_curve([*records, other], settings) == [(8, 0.1), (16, 0.2)]
    worse = Record(Trial(COMPLEX, 8, 1), 0.05, 8)
    assert search_curve([*records, other, worse], settings)[-1] == (24, 0.2)
    assert search_curve([], settings) == []


def test_learning_curves_are_over_the_seeds(report):
    first = report.learning_curves[0]
    assert first.rows == report.winner.rows
    assert first.seeds == 4
    assert [epoch for epoch, *_ in first.points] == [1, 2, 3, 4]
    assert all(least <= mean <= most for _, mean, least, most in first.points)
    curves = ((1, 0.1), (2, 0.2)), ((2, 0.4),)
    one, other = (Record(Trial(SIMPLE, 2, seed), 0.2, 2, curve) for seed, curve in enumerate(curves))
    assert over_seeds([one, other]) == ((2, pytest.approx(0.3), 0.2, 0.4),)


def test_only_the_winners_curve_is_called_its(tmp_path, graph):
    """Best so far may be a structure of which there is a short training alone."""
    run, (first, second, *_) = made_run(tmp_path / "run", graph), tried()
    add_trials(run, [first])
    with opened_ledger(run.ledger, lambda: 2_000.0, writes=True) as ledger:
        trial = Trial(second, 1, 0)
        ledger.add(key_of(trial, run.graph, SETTINGS), Record(trial, 0.99, 1, ((1, 0.99),)))
    found = content_of(run)
    drawn = figures(found)["learning-curves"]
    assert found.winner.rows == canonical(second, "extended").rows
    assert [curve.is_winner for curve in found.learning_curves] == [False]
    assert "the winner" not in drawn.svg
    assert drawn.note == "The best so far is not trained to the full yet. "
    add_trials(run, [second], bonus=1.0)
    found = content_of(run)
    assert [curve.is_winner for curve in found.learning_curves] == [True, False]
    assert "the winner" in figures(found)["learning-curves"].svg


def test_a_full_training_that_stopped_early_is_no_short_one(tmp_path, graph):
    run, (first, *others) = made_run(tmp_path / "run", graph), tried(14)
    new = [structure for structure in others if not zoo_names(structure)]
    add_trials(run, [first])
    with opened_ledger(run.ledger, lambda: 2_000.0, writes=True) as ledger:
        for structure, asked in zip(new, (SETTINGS.epochs, 2), strict=False):
            trial = Trial(structure, asked, 0)
            ledger.add(key_of(trial, run.graph, SETTINGS), Record(trial, 0.5, 2, ((2, 0.5),)))
    drawn = figures(content_of(run))["leaderboard"].svg
    clouds = {cloud.get("class"): len(list(cloud.iter("circle"))) for cloud in ElementTree.fromstring(drawn)
              if cloud.find("circle/title") is not None}  # fmt: skip
    assert clouds == {"s1": 1, "s2": 1, "s3": 1}  # new, known before, new and briefly trained


def test_each_structure_is_predicted_from_the_others(report):
    assert len(report.prediction.structures) == 24
    assert -1 <= report.prediction.correlation <= 1
    rows = [Predicted(SIMPLE.rows, "", value, value**3) for value in (0.1, 0.5, 0.3)]
    assert rank_correlation(rows) == pytest.approx(1.0)
    assert rank_correlation([replace(row, predicted=0.5) for row in rows]) == 0.0


def test_the_papers_search_is_judged_by_its_own_predictor(tmp_path, graph):
    run = made_run(tmp_path / "run", graph, "paper")
    add_trials(run, tried(14))
    finish(run)
    assert content_of(run).prediction.method == "the paper's network on srf features"


def test_halves_hold_both_classes():
    triples = np.zeros((8, 3), np.int32)
    halves = split_in_two(LabelledTriples(triples, np.arange(8) < 4), np.random.default_rng(0))
    assert halves is None or all(half.is_true.any() and not half.is_true.all() for half in halves)
    assert (
        split_in_two(LabelledTriples(triples[:2], np.array([True, False])), np.random.default_rng(0)) is None
    )


def test_a_single_triple_of_a_relation_has_no_error(ended, graph):
    model = load(ended.folder).model
    few = replace(graph, valid=graph.valid[:1])
    found = compared({"a": model, "b": model}, Ground(few, known_answers(few), "valid"))
    assert (found.relations[0].gain, found.relations[0].error) == (0.0, None)


def test_ranks_are_estimated_where_the_search_estimates_them(tmp_path, graph):
    from autosf.evaluation.sampled_ranking import rank_among

    run = ended_run(tmp_path / "run", graph, settings=replace(SETTINGS, validation_candidates=5))
    found = content_of(run).comparison.models[0].mrr
    known = known_answers(replace(graph, test=np.empty((0, 3), np.int32)))
    model = load(run.folder).model
    assert found == summarise(rank_among(model, graph.valid, known, 5)).mrr
    assert found != summarise(rank(model, graph.valid, known)).mrr
    assert "estimated among 5 entities, as in the search" in render(run)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("distmult", "every relation is symmetric"),
        ("distmult", "does not satisfy the paper's C1"),
        ("complex", "r3 = 0, r4 = 0 is symmetric"),
        ("complex", "expressive in the paper's sense"),
        ("simple", "r3 = r1, r4 = r2 is symmetric"),
        ("simple", "r3 = \N{MINUS SIGN}r1"),
        ("autosf-fb15k237", "never just turns its sign"),
    ],
)
def test_what_a_structure_means_is_told_in_words(name, words):
    assert words in " ".join(portrait(named(name).structure).meaning)


def test_the_cases_of_the_srf_are_shown_by_example():
    assert case_headings(4) == (
        ["abcd", "aabb", "aabc", "aaab", "aaaa", "abc0", "aab0", "aaa0", "ab00", "aa00", "a000"]
    )


def test_a_hopeless_structure_is_out_of_sight():
    assert in_sight([0.60, 0.61, 0.62, 0.63]) < 0.60
    assert in_sight([0.01, 0.60, 0.61, 0.62, 0.63]) > 0.01
    assert in_sight([]) == 0.0


def test_templates_escape_by_default():
    assert environment().from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"


def test_pages_travel_with_the_package():
    from hatchling.builders.wheel import WheelBuilder

    builder = WheelBuilder(str(Path(__file__).parents[2]))
    found = {Path(file.distribution_path).name for file in builder.recurse_included_files()}
    assert {"report.html", "style.css", "charts.css"} <= found


def test_content_is_plain_json(report):
    json.dumps(asdict(report), allow_nan=False)
