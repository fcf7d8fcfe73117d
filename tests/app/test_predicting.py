"""Answers are those of plain sorting, in the same order, however the work is cut."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import autosf
from autosf.app.predicting import AskableModel, load
from autosf.app.training import device_of
from autosf.embedding.answering import _best_of_rows, best
from autosf.embedding.model_folder import save_model
from autosf.embedding.new_facts import fact_query, new_facts
from autosf.errors import UserError
from autosf.graph.known_answers import known_answers
from random_models import STRANGE_LABELS, random_graph, random_model
from strategies import structures


@st.composite
def askable(draw: st.DrawFn) -> AskableModel:
    """A random model whose scores are whole numbers: exact, and full of ties."""
    seed = draw(st.integers(0, 10_000))
    graph = random_graph(seed, entities=draw(st.integers(2, 15)), relations=draw(st.integers(1, 5)))
    structure, reciprocal = draw(structures()), draw(st.booleans())
    model = random_model(
        graph, seed, structure=structure, reciprocal=reciprocal, dimension=4, whole_numbers=True
    )
    return AskableModel(model)


def all_triples(asked: AskableModel) -> set[tuple[str, str, str]]:
    return {row for split, _ in asked.graph.splits() for row in zip(*asked.graph.columns(split), strict=True)}


def plainly(
    labels: pl.Series, scores: list[float], is_known: list[bool], top: int, hide: bool
) -> list[tuple]:
    """Sort all candidates by score, then label order; leave the known ones out or not; cut."""
    rows = sorted(range(len(labels)), key=lambda place: (-scores[place], place))
    return [(labels[i], scores[i], is_known[i]) for i in rows if not (hide and is_known[i])][:top]


@given(askable(), st.integers(1, 20), st.booleans(), st.data())
def test_tails_heads_and_relations_are_those_of_plain_sorting(asked, top, hide, data):
    entities, relations = asked.trained.entities.labels, asked.trained.relations.labels
    h, t = (data.draw(st.integers(0, len(entities) - 1)) for _ in range(2))
    r = data.draw(st.integers(0, len(relations) - 1))
    head, relation, tail = entities[h], relations[r], entities[t]
    model, facts, known = asked.model, all_triples(asked), "hide" if hide else "mark"
    ids = torch.tensor

    scores = (model.entities @ model.tail_query(ids([h]), ids([r]))[0]).tolist()
    expected = plainly(entities, scores, [(head, relation, x) in facts for x in entities], top, hide)
    assert asked.predict_tails(head, relation, top, known).rows() == expected

    scores = (model.entities @ model.head_query(ids([r]), ids([t]))[0]).tolist()
    expected = plainly(entities, scores, [(x, relation, tail) in facts for x in entities], top, hide)
    assert asked.predict_heads(relation, tail, top, known).rows() == expected

    scores = [model.score(ids([h]), ids([x]), ids([t])).item() for x in range(len(relations))]
    expected = plainly(relations, scores, [(head, x, tail) in facts for x in relations], top, hide)
    assert asked.predict_relations(head, tail, top, known).rows() == expected


@given(
    askable(),
    st.integers(1, 50),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
    st.booleans(),
    st.integers(1, 200),
)
def test_new_facts_are_those_of_plain_sorting_however_the_stream_is_cut(
    asked, top, everywhere, each, loops, at_once
):
    facts, graph, model = all_triples(asked), asked.graph, asked.model
    entities, relations = graph.entities.labels.to_list(), graph.relations.labels.to_list()
    seen = {(h, r) for h, r, _ in graph.train.tolist()}
    pairs = [
        (h, r) for h in range(len(entities)) for r in range(len(relations)) if everywhere or (h, r) in seen
    ]
    expected = []
    for h, r in pairs:
        tails = torch.arange(len(entities))
        scores = model.score(torch.full_like(tails, h), torch.full_like(tails, r), tails).tolist()
        rows = [(entities[h], relations[r], entities[t], scores[t]) for t in range(len(entities))]
        unknown = [row for row in rows if row[:3] not in facts and (loops or row[0] != row[2])]
        expected += sorted(unknown, key=lambda row: -row[3])[:each]

    def order(row):
        return -row[3], entities.index(row[0]), relations.index(row[1]), entities.index(row[2])

    expected = sorted(expected, key=order)[:top]
    found = asked.new_facts(top, pairs="all" if everywhere else "seen", each=each, loops=loops)
    assert found.rows() == expected
    blocks = [(np.array([h], np.int32), np.array([r], np.int32)) for h, r in pairs]
    cut = new_facts(
        model, blocks, known_answers(graph).tails, top, each=each, loops=loops, scores_at_once=at_once
    )
    assert cut.scores.tolist() == [row[3] for row in expected]


@given(askable())
def test_a_fact_query_scores_as_the_model_does(asked):
    model = asked.model
    heads, relations, tails = (torch.tensor(column) for column in asked.graph.train.T.astype(np.int64))
    found = (fact_query(model, heads, relations) * model.entities[tails]).sum(-1)
    assert torch.equal(found, model.score(heads, relations, tails))


@given(st.integers(0, 999), st.integers(1, 12), st.integers(1, 40))
def test_chunks_do_not_change_the_best(seed, top, at_once):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(-2, 3, (9, 4), generator=generator).float()
    asked = torch.randint(-2, 3, (7, 4), generator=generator).float()
    whole = best(lambda i, j: asked[i:j], 7, rows, top)
    parts = best(lambda i, j: asked[i:j], 7, rows, top, scores_at_once=at_once)
    for left, right in (
        (whole.query, parts.query),
        (whole.candidate, parts.candidate),
        (whole.score, parts.score),
    ):
        assert left.tolist() == right.tolist()


@pytest.fixture(params=[1, 2, 4])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9, 16])
@pytest.mark.parametrize(("entities", "dimension"), [(101, 36), (9, 8), (135, 64), (1000, 64)])
def test_equal_candidates_stand_in_the_order_of_their_ids(count, entities, dimension, threads):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(1, dimension, generator=generator).repeat(entities, 1)
    asked = torch.randn(count, dimension, generator=generator)
    found = best(lambda first, last: asked[first:last], count, rows, 5)
    assert found.candidate.tolist() == [0, 1, 2, 3, 4] * count


def test_scores_that_are_not_numbers_are_never_answers():
    rows = torch.tensor([[1.0], [float("nan")], [2.0]])
    found = best(lambda i, j: torch.ones(1, 1), 1, rows, 3)
    assert found.candidate.tolist() == [2, 0]


@pytest.fixture
def asked() -> AskableModel:
    return AskableModel(random_model(random_graph(), dimension=16))


def test_many_queries_answer_as_one_by_one(asked):
    queries = {"relation": ["r0", "r3", "r0"], "tail": ["e4", "e1", "e4"]}
    many = asked.predict_many(queries, 3)
    assert many.columns == ["relation", "tail", "entity", "score", "known"]
    parts = [asked.predict_heads(r, t, 3) for r, t in zip(*queries.values(), strict=True)]
    assert many["entity"].to_list() == pl.concat(parts)["entity"].to_list()
    none = pl.DataFrame(schema={"relation": pl.String, "tail": pl.String})
    assert asked.predict_many(none).schema == many.schema


def test_triples_with_a_question_mark_or_none_are_asked_by_kind(asked):
    triples = [("e1", "r1", "?"), ("?", "r0", "e4"), ("e2", None, "e3"), ("e5", "r3", None)]
    found = asked.predict_many(triples, 3)
    assert found.columns == ["question", "asked", "head", "relation", "tail", "score", "known"]
    parts = {number: part for (number,), part in found.group_by("question")}
    assert parts[1]["tail"].to_list() == asked.predict_tails("e1", "r1", 3)["entity"].to_list()
    assert parts[2]["head"].to_list() == asked.predict_heads("r0", "e4", 3)["entity"].to_list()
    assert parts[3]["relation"].to_list() == asked.predict_relations("e2", "e3", 3)["relation"].to_list()
    assert parts[4]["tail"].to_list() == asked.predict_tails("e5", "r3", 3)["entity"].to_list()
    columns = dict(zip(("head", "relation", "tail"), map(list, zip(*triples, strict=True)), strict=True))
    for same in (columns, pl.DataFrame(columns), pl.LazyFrame(columns), np.array(triples, object)):
        assert asked.predict_many(same, 3).equals(found)
    whole = [("e1", "r1", "e2"), ("e2", "r0", "e3")]
    assert asked.predict_many(whole).equals(asked.judge(whole))


def test_triples_may_be_dicts_that_lack_what_is_asked(asked):
    rows = [
        {"head": "e1", "relation": "r1"},
        ("?", "r0", "e4"),
        {"head": "e2", "tail": "e3", "relation": None},
    ]
    triples = [("e1", "r1", "?"), ("?", "r0", "e4"), ("e2", "?", "e3")]
    assert asked.predict_many(rows, 3).equals(asked.predict_many(triples, 3))
    whole = dict(zip(("tail", "head", "relation"), ("e2", "e1", "r1"), strict=True))
    assert asked.predict_many([whole]).equals(asked.judge([("e1", "r1", "e2")]))


def test_triples_of_pandas_may_be_asked_too(asked):
    pandas = pytest.importorskip("pandas")
    triples = [("e1", "r1", None), ("e1", "r2", None)]
    frame = pandas.DataFrame(triples, columns=["head", "relation", "tail"])
    assert asked.predict_many(frame).equals(asked.predict_many(triples))


def test_no_queries_have_no_answers(asked):
    two, three = {"head": [], "relation": []}, {"head": [], "relation": [], "tail": []}
    assert asked.predict_many(two).schema == asked.predict_many({"head": ["e1"], "relation": ["r1"]}).schema
    for none in (three, [], pl.DataFrame(three)):
        assert asked.predict_many(none).is_empty()
        assert asked.predict_many(none).schema == asked.predict_many([("e1", "r1", "?")]).schema


@settings(max_examples=20)
@given(st.integers(0, 99), st.booleans())
def test_scores_are_the_models_and_known_triples_are_marked(seed, reciprocal):
    graph = random_graph(seed)
    asked = AskableModel(random_model(graph, seed, reciprocal=reciprocal))
    h, r, t = (torch.from_numpy(column.astype(np.int64)) for column in graph.test.T)
    frame = pl.DataFrame(dict(zip(("head", "relation", "tail"), graph.columns("test"), strict=True)))
    found = asked.score(frame)
    assert found.columns == ["head", "relation", "tail", "score", "known"]
    assert np.allclose(found["score"], asked.model.score(h, r, t))
    assert found["known"].all()
    facts = all_triples(asked)
    others = [(a, "r1", b) for a in graph.entities.labels for b in graph.entities.labels]
    assert asked.score(others)["known"].to_list() == [row in facts for row in others]


def test_probabilities_rise_with_the_score_of_a_relation(asked):
    triples = [("e1", "r1", f"e{i}") for i in range(20)]
    found = asked.predict_proba(triples)
    assert found.columns == ["head", "relation", "tail", "probability", "known"]
    assert found["probability"].is_between(0, 1).all()
    by_score = asked.score(triples)["score"].arg_sort()
    assert found["probability"].gather(by_score).is_sorted()
    assert found.equals(asked.predict_proba(triples))


def test_probabilities_can_be_fitted_to_negatives_of_ones_own(asked, tmp_path):
    triples = asked.score([("e1", "r1", f"e{i}") for i in range(20)]).sort("score")
    rows = triples.select("head", "relation", "tail").rows()
    labelled = [(*row, "1" if place >= 10 else "-1") for place, row in enumerate(rows)]
    text = "".join("\t".join(row) + "\n" for row in labelled)
    (tmp_path / "valid_neg.tsv").write_text(text, encoding="utf-8")
    own, made = asked.predict_proba(rows, negatives=tmp_path), asked.predict_proba(rows)
    assert own["probability"].is_sorted()
    assert own["probability"][0] < 0.5 < own["probability"][-1]
    assert own["probability"][-1] > made["probability"][-1]


def test_the_false_triples_of_valid_are_the_same_with_and_without_those_of_test(asked):
    alone, together = asked.labelled_valid(3), asked.labelled_triples(3).valid
    assert np.array_equal(alone.triples, together.triples)
    assert np.array_equal(alone.is_true, together.is_true)


def test_a_judgement_has_the_places_among_what_is_not_known(asked):
    """Of known triples and of others alike: place 1 + better candidates, known answers but itself left out."""
    triples = [("e1", "r1", f"e{i}") for i in range(20)]
    found = asked.judge(triples)
    facts = all_triples(asked)
    scores = asked.predict_tails("e1", "r1", top=100)
    of_tail = dict(zip(scores["entity"], scores["score"], strict=True))
    for row in found.to_dicts():
        rivals = [e for e in of_tail if e != row["tail"] and ("e1", "r1", e) not in facts]
        better = sum(of_tail[e] > of_tail[row["tail"]] for e in rivals)
        assert row["tail_rank"] == 1 + better
        assert row["tail_candidates"] == 1 + len(rivals)
        assert row["known"] == (("e1", "r1", row["tail"]) in facts)
    both = asked.score(triples).join(asked.predict_proba(triples), on=["head", "relation", "tail", "known"])
    assert found.select(both.columns).equals(both)


def test_a_judgement_without_a_graph_is_the_score(asked):
    alone = AskableModel(replace(asked.trained, graph=None))
    (row,) = alone.judge([("e1", "r1", "e2")]).to_dicts()
    assert row["score"] == asked.score([("e1", "r1", "e2")])["score"][0]
    assert {row[name] for name in ("probability", "known", "tail_rank", "head_candidates")} == {None}


def test_neighbours_are_the_most_similar_others(asked):
    found = asked.neighbours("e3", 4)
    place = asked.trained.entities.id("e3")
    cosine = torch.nn.functional.cosine_similarity(asked.model.entities, asked.model.entities[place], dim=1)
    cosine[place] = -2
    order = cosine.argsort(descending=True)[:4]
    assert found.columns == ["entity", "similarity"]
    assert found["entity"].to_list() == [asked.trained.entities.label(i) for i in order]
    assert np.allclose(found["similarity"], cosine[order])


def test_an_entity_without_length_has_neighbours(asked):
    asked.model.entities[0] = 0
    assert asked.neighbours(asked.trained.entities.label(0), 50)["similarity"].abs().max() == 0


def test_new_facts_of_some_relations_only(asked):
    found = asked.new_facts(5, ["r2"])
    assert found["relation"].unique().to_list() == ["r2"]
    assert len(asked.new_facts(10**6, pairs="all", loops=True)) == 20 * 4 * 20 - len(all_triples(asked))
    done = []
    asked.new_facts(5, progress=done.append)
    assert sum(done) == len(np.unique(asked.graph.train[:, :2], axis=0))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda m: m.predict_tails("e33", "r1"), 'unknown entity "e33"; did you mean'),
        (lambda m: m.predict_tails("e3", "R1"), 'unknown relation "R1"; did you mean "r1"'),
        (lambda m: m.predict_tails("e3", "r1", top=0), "top: expected a number from 1, found 0"),
        (lambda m: m.predict_tails("e3", "r1", known="hid"), 'did you mean "hide"'),
        (lambda m: m.predict_many({"head": ["e3"]}), "expected two of the columns"),
        (lambda m: m.predict_many({"head": [3], "tail": [4]}), "head: expected labels"),
        (
            lambda m: m.predict_many({"head": ["e1", "e2"], "relation": ["r1"], "tail": ["?", "?", "?"]}),
            "all of one length, found 2 in head, 1 in relation, 3 in tail",
        ),
        (lambda m: m.predict_many([("e1", "r1")]), "queries: row 1: expected a triple"),
        (lambda m: m.predict_many([("e1", "r1", "?"), ("?", "r1", "?")]), "row 2: expected one ?"),
        (lambda m: m.predict_many([("e1", "r1", "?"), ("e1", "r1", "e2")]), "row 2: expected a ?"),
        (lambda m: m.predict_many([("e1", "r1", "?"), ("e33", "r1", "?")]), 'row 2: unknown entity "e33"'),
        (lambda m: m.predict_many([{"head": "e1"}]), "queries: row 1: expected one ?, found several"),
        (lambda m: m.predict_many([{"Head": "e1", "relation": "r1"}]), "queries: row 1: expected a triple"),
        (lambda m: m.predict_many([{"e1", "r1", "?"}]), "queries: row 1: expected a triple"),
        (lambda m: m.predict_many([("e1", "r1", "?"), (3, "r1", "?")]), 'as text, found "3" (int) in "head"'),
        (lambda m: m.predict_many({"head": ["e1", 1.5], "tail": ["e1", "e2"]}), 'found "1.5" (float)'),
        (lambda m: m.predict_many([("\ud800", "r1", "?")]), "expected labels as text"),
        (lambda m: m.predict_many([(object(), "r1", "?")]), "expected a column of text"),
        (lambda m: m.predict_many({"head": {"e1"}, "tail": ["e2"]}), "found set as head, list as tail"),
        (lambda m: m.predict_many({"head": np.array("e1"), "tail": ["e2"]}), "found ndarray as head"),
        (lambda m: m.predict_many(np.array(3)), "or an array of n x 3"),
        (lambda m: m.predict_many(np.array(["e1", "r1", "?"])), "or an array of n x 3"),
        (lambda m: m.predict_many("e1"), "columns by name, a list of triples or an array of n x 3, found"),
        (lambda m: m.new_facts(relations="r0"), 'relations: expected a list of labels, found "r0" alone'),
        (lambda m: m.neighbours("nobody"), 'unknown entity "nobody"'),
        (lambda m: m.new_facts(relations=["nope"]), 'unknown relation "nope"'),
        (lambda m: m.new_facts(relations=5), 'relations: expected a list of labels, found "5" (int)'),
        (
            lambda m: m.new_facts(relations=["r0", 5]),
            "relations: expected a list of labels, found \"['r0', 5]\"",
        ),
        (lambda m: m.evaluate(by=["side"]), 'cannot group ranks by "[\'side\']"; did you mean "side"?'),
        (lambda m: m.new_facts(pairs="some"), 'pairs: expected "seen" or "all", found "some"'),
        (lambda m: m.new_facts(each=0), "each: expected a number from 1, found 0"),
        (lambda m: m.score([("e1", "r1")]), "expected"),
        (lambda m: m.score([("e1", "r1", "nobody")]), 'unknown entity "nobody"'),
    ],
)
def test_mistakes_are_told_in_one_line(asked, ask, words):
    with pytest.raises(UserError) as caught:
        ask(asked)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_without_its_triples_answers_but_knows_nothing(tmp_path, asked):
    folder = asked.save(tmp_path / "model", with_triples=False)
    bare = autosf.load(folder)
    assert bare.predict_tails("e3", "r1")["known"].null_count() == 10
    for ask in (lambda: bare.predict_tails("e3", "r1", known="hide"), bare.new_facts):
        with pytest.raises(UserError, match="saved without its triples"):
            ask()
    whole = autosf.load(folder, graph=random_graph())
    assert whole.new_facts(5).equals(asked.new_facts(5))


def test_a_loaded_model_answers_as_the_saved_one_also_with_gradients(tmp_path, asked):
    asked.model.entities.requires_grad_()
    asked.model.relations.requires_grad_()
    loaded = load(save_model(tmp_path / "model", asked.trained))
    # All but the last bits, which on some CPUs hang on where the weights lie in memory.
    assert_frame_equal(loaded.predict_tails("e3", "r1"), asked.predict_tails("e3", "r1"))
    assert_frame_equal(loaded.predict_relations("e3", "e4"), asked.predict_relations("e3", "e4"))
    assert_frame_equal(loaded.neighbours("e3"), asked.neighbours("e3"))
    assert_frame_equal(loaded.score([("e3", "r1", "e4")]), asked.score([("e3", "r1", "e4")]))
    assert_frame_equal(loaded.new_facts(9, each=2), asked.new_facts(9, each=2))
    assert loaded.structure == asked.structure
    assert loaded.facts == asked.facts


def test_a_model_is_loaded_to_the_best_device_or_told_that_there_is_none_such(tmp_path, asked):
    folder = asked.save(tmp_path / "model")
    assert load(folder, device="auto").model.entities.device.type == device_of("auto")
    if not torch.cuda.is_available():
        with pytest.raises(UserError, match="device: cuda is not available here"):
            load(folder, device="cuda")


@pytest.mark.parametrize("label", STRANGE_LABELS, ids=ascii)
def test_any_label_can_be_asked_about(label):
    graph = random_graph(labels=STRANGE_LABELS, entities=20, relations=len(STRANGE_LABELS), triples=200)
    asked = AskableModel(random_model(graph))
    assert len(asked.predict_tails(label, label)) == 10
    assert label in asked.predict_heads(label, label, top=20)["entity"]
    assert label not in asked.neighbours(label, top=20)["entity"]


def test_double_precision_models_are_asked_in_double(asked):
    model = replace(
        asked.model, entities=asked.model.entities.double(), relations=asked.model.relations.double()
    )
    double = AskableModel(replace(asked.trained, model=model))
    assert (
        double.new_facts(5)
        .select("head", "relation", "tail")
        .equals(asked.new_facts(5).select("head", "relation", "tail"))
    )


def test_importing_the_package_loads_nothing_heavy():
    code = "import sys, autosf; print([m for m in ('torch', 'polars', 'numpy', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_front_doors_are_listed_and_others_are_refused():
    assert {"load", "read_graph"} <= set(dir(autosf))
    assert callable(autosf.read_graph)
    with pytest.raises(AttributeError, match="no attribute 'laod'"):
        autosf.laod  # noqa: B018


@given(
    st.integers(1, 4),
    st.integers(1, 30),
    st.integers(1, 12),
    st.booleans(),
    st.integers(0, 10_000),
    st.data(),
)
def test_the_best_are_those_of_plain_sorting_with_ties_and_without(rows, width, top, ties, seed, data):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, width, generator=generator)
    if ties:
        scores = scores.round()
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, width - 1))
        scores[place] = data.draw(st.sampled_from([torch.nan, torch.inf, -torch.inf]))
    expected = []
    for row, values in enumerate(scores.nan_to_num(-torch.inf, torch.inf, -torch.inf).tolist()):
        order = sorted(range(width), key=lambda place: (-values[place], place))[:top]
        expected += [(row, place, values[place]) for place in order if values[place] > -torch.inf]
    found = _best_of_rows(scores, top, 0)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected


@pytest.mark.parametrize("top", ["3", 2.5, None, True, 0])
def test_a_number_of_answers_that_is_none_is_refused(top):
    asked = AskableModel(random_model(random_graph()))
    for ask in (
        lambda: asked.predict_tails("e1", "r1", top=top),
        lambda: asked.neighbours("e1", top=top),
        lambda: asked.new_facts(top=top),
    ):
        with pytest.raises(UserError, match=r"^top: expected a (whole )?number"):
            ask()
    assert asked.neighbours("e1", top=np.int64(3)).height == 3


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda _: autosf.load(None), r'model: expected a path, found "None" \(NoneType\)'),
        (lambda asked: asked.save(3), "folder: expected a path"),
        (
            lambda asked: load(asked.save("model"), device="gpu"),
            'device: expected auto, cpu, cuda, mps, found "gpu"',
        ),
        (
            lambda asked: asked.predict_tails("e1", "r1", known=3),
            'known: expected "mark" or "hide", found "3"',
        ),
        (lambda asked: asked.neighbours(3), "entity: expected labels"),
        (lambda asked: asked.predict_proba([("e1", "r1", "e2")], seed="a"), "seed: expected a whole number"),
        (lambda asked: asked.predict_proba([("e1", "r1", "e2")], seed=-1), "seed: expected a number from 0"),
        (lambda asked: asked.predict_proba([("e1", "r1", "e2")], negatives=3), "negatives: expected a path"),
    ],
)
def test_wrong_types_are_told_in_one_line(tmp_path, monkeypatch, ask, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        ask(AskableModel(random_model(random_graph())))
