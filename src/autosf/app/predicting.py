"""A trained model to be asked: by label, with a frame as the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch

from autosf.app.given import described, path_given, whole_number, whole_number_or_none
from autosf.embedding.answering import Hidden, best_heads, best_relations, best_tails, nearest
from autosf.embedding.model_folder import load_model, save_model
from autosf.embedding.new_facts import new_facts
from autosf.embedding.trained_model import with_graph
from autosf.errors import UserError, did_you_mean, quoted
from autosf.evaluation.ranking import rank
from autosf.graph.frames import table_of
from autosf.graph.known_answers import KnownAnswers, known_answers, tail_queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from autosf.algebra.structure import Structure
    from autosf.embedding.answering import Best
    from autosf.embedding.model import Model
    from autosf.embedding.new_facts import Block
    from autosf.embedding.trained_model import TrainedModel
    from autosf.evaluation.calibration import Calibration
    from autosf.graph.knowledge_graph import KnowledgeGraph
    from autosf.graph.negatives import LabelledTriples, Negatives

KNOWN = ("mark", "hide")
ROLES = ("head", "relation", "tail")
PLACES = ("tail_rank", "tail_candidates", "head_rank", "head_candidates")
TRIPLES_AT_ONCE = 1 << 16


def load(path: Path | str, *, graph: object = None, device: str = "cpu") -> AskableModel:
    """The model of a folder, or of a search's run, ready to be asked.

    `graph` stands in for triples that the folder leaves out; the device is "cpu", "cuda", "mps", or "auto" for
    the best there is.
    """
    from autosf.app.training import device_of

    trained = load_model(model_folder(path_given("model", path)), device=device_of(device))
    if graph is not None:
        from autosf.app.graphs import graph_of

        trained = with_graph(trained, graph_of(graph))
    return AskableModel(trained, str(graph) if isinstance(graph, (str, Path)) else "")


def model_folder(path: Path | str) -> Path | str:
    """The folder itself, or that of the model in a run."""
    from autosf.app.run_results import is_run, model_of_run

    return model_of_run(Path(path)) if is_run(path) else path


@dataclass(frozen=True, slots=True, eq=False)
class AskableModel:
    """Questions to a trained model. Answers are polars frames, best first, equal scores in label order.

    `known` is "mark", a column says which answers are in the graph already, or "hide", they are left out.
    A folder without triples leaves the column empty. Labels that the model does not have are answered with
    the nearest it has.
    """

    trained: TrainedModel
    source: str = ""  # of a graph that was given in the place of the model's own
    _kept: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __repr__(self) -> str:
        return repr(self.trained)

    def _repr_html_(self) -> str:
        return self.trained._repr_html_()

    @property
    def model(self) -> Model:
        return self.trained.model

    @property
    def structure(self) -> Structure:
        return self.trained.model.structure

    @property
    def facts(self) -> Mapping[str, Any]:
        """How the model came to be: graph, settings, metrics, seed, versions."""
        return self.trained.facts

    @property
    def graph(self) -> KnowledgeGraph | None:
        """The graph whose triples are known; None if the model was saved without."""
        return self.trained.graph

    def known_answers(self) -> KnownAnswers:
        """The known answers of the graph, all splits together; made when first needed."""
        if "known" not in self._kept:
            self._kept["known"] = known_answers(needed_graph(self.trained))
        known: KnownAnswers = self._kept["known"]
        return known

    def predict_tails(self, head: str, relation: str, top: int = 10, known: str = "mark") -> pl.DataFrame:
        """The best answers of (head, relation, ?): columns entity, score, known."""
        asked = {"head": [head], "relation": [relation]}
        return self.predict_many(asked, top, known).drop("head", "relation")

    def predict_heads(self, relation: str, tail: str, top: int = 10, known: str = "mark") -> pl.DataFrame:
        """The best answers of (?, relation, tail): columns entity, score, known."""
        asked = {"relation": [relation], "tail": [tail]}
        return self.predict_many(asked, top, known).drop("relation", "tail")

    def predict_relations(self, head: str, tail: str, top: int = 10, known: str = "mark") -> pl.DataFrame:
        """The best answers of (head, ?, tail): columns relation, score, known."""
        return self.predict_many({"head": [head], "tail": [tail]}, top, known).drop("head", "tail")

    def predict_many(self, queries: object, top: int = 10, known: str = "mark") -> pl.DataFrame:
        """The best answers of many queries: a frame or a mapping with two of the columns head, relation and tail,
        or triples, as a list or three columns, with "?" or None for what is asked of each. Triples of a list
        may be dicts that lack it.

        Of two columns come back the two, the answer as entity or relation, score and known; queries in their
        order. Of triples: the number of the question, from 1, what was asked, the triple with the answer put
        in, score and known. Triples without any "?" are judged instead.
        """
        from autosf.app.questions import answers_of

        return answers_of(self, queries, top, known)

    def score(self, triples: object) -> pl.DataFrame:
        """The triples with score and known; given as a frame, an array or a list of (head, relation, tail).

        With reciprocal relations the score is the mean of both directions.
        """
        labels, ids = self._triples(triples)
        return labels.with_columns(score=self.scores_of(ids), known=self.are_known(ids))

    def predict_proba(
        self, triples: object, seed: int = 0, negatives: Path | str | None = None
    ) -> pl.DataFrame:
        """The triples with probability, how likely each is true, and known.

        Platt's curve for each relation, fitted to valid with as many false triples, drawn by `seed`: a
        probability among triples of which half are true. `negatives` is a folder with a valid_neg of your own
        to fit it to instead.
        """
        labels, ids = self._triples(triples)
        probability = self.calibration(seed, negatives).probability(self.scores_of(ids), ids[:, 1])
        return labels.with_columns(probability=pl.Series(probability), known=self.are_known(ids))

    def judge(self, triples: object) -> pl.DataFrame:
        """The triples with all that the model says of each: score, probability, known, and the places of its tail
        and its head among all that are not known answers, with how many those are.

        Without a graph, or where its valid split is empty, what needs them is null.
        """
        labels, ids = self._triples(triples)
        graph, scores = self.graph, self.scores_of(ids)
        unknown = pl.Series([None] * len(ids), dtype=pl.Float64)
        ranks = None if graph is None else rank(self.model, ids, self.known_answers())
        probability = unknown
        if graph is not None and len(graph.valid):
            probability = pl.Series(self.calibration().probability(scores, ids[:, 1]))
        return labels.with_columns(
            score=scores,
            probability=probability,
            known=self.are_known(ids),
            **{name: unknown if ranks is None else pl.Series(getattr(ranks, name)) for name in PLACES},
        )

    def evaluate(
        self, split: str = "test", by: str | None = None, candidates: int | None = None
    ) -> dict[str, Any]:
        """The filtered metrics of a split, with those of each "relation", "pattern", "side" or "category" in
        `groups` if `by` says so. `candidates` are as many entities to estimate ranks from; all, exact, by default.
        """
        from autosf.app.measuring import evaluation

        return evaluation(self, split, by, candidates)

    def classify(self, negatives: Path | str | None = None, seed: int = 0) -> dict[str, Any]:
        """How well true triples are told from false ones, and the threshold of each relation.

        The false ones are of the folder `negatives`, with a valid_neg and a test_neg, else of the graph's own
        folder, else made by `seed`.
        """
        from autosf.app.measuring import classification

        return classification(self, negatives, seed)

    def neighbours(self, entity: str, top: int = 10) -> pl.DataFrame:
        """The entities with the most similar embeddings, by cosine: columns entity, similarity."""
        refuse_options(top)
        place = int(self.encoded(pl.Series([entity]), "entity")[0])
        found = nearest(self.model.entities, place, top)
        labels = self.trained.entities.labels.gather(found.candidate)
        return pl.DataFrame({"entity": labels, "similarity": found.score})

    def new_facts(
        self,
        top: int = 1000,
        relations: Sequence[str] | None = None,
        *,
        pairs: str = "seen",
        each: int | None = None,
        loops: bool = False,
        progress: Callable[[int], None] = lambda _: None,
    ) -> pl.DataFrame:
        """The best triples that the graph does not have: columns head, relation, tail, score.

        `pairs` are the (head, relation) to look at: "seen" in train, or "all", which takes as many passes over
        the entities as there are entities and relations. `relations` narrows them. `each` is the most facts
        from one pair: scores of different pairs are only roughly comparable, and a few pairs with many answers
        may fill the list. Triples of an entity with itself are left out unless `loops`.
        """
        refuse_options(top, each=each)
        chosen = range(len(self.trained.relations)) if relations is None else self._some(relations)
        tails = self.known_answers().tails
        blocks = self._pairs(pairs, np.array(chosen, np.int32))
        found = new_facts(self.model, blocks, tails, top, each=each, loops=loops, progress=progress)
        vocabularies = (self.trained.entities, self.trained.relations, self.trained.entities)
        columns = {
            role: vocabulary.labels.gather(np.ascontiguousarray(found.triples[:, side]))
            for side, (role, vocabulary) in enumerate(zip(ROLES, vocabularies, strict=True))
        }
        return pl.DataFrame({**columns, "score": found.scores})

    def save(self, folder: Path | str, *, with_triples: bool = True) -> Path:
        """Write the model folder, whole or not at all; its path comes back."""
        return save_model(path_given("folder", folder), self.trained, with_triples=with_triples)

    def _triples(self, triples: object) -> tuple[pl.DataFrame, NDArray[np.int32]]:
        """Triples as the user gives them, as a frame of labels and as ids. [n, 3]"""
        columns = dict(zip(ROLES, table_of(triples, "triples").columns, strict=True))
        ids = np.stack([self.encoded(column, role) for role, column in columns.items()], axis=1)
        return pl.DataFrame(columns), ids

    def calibration(self, seed: int = 0, negatives: Path | str | None = None) -> Calibration:
        """The curves from scores to probabilities; made when first needed."""
        from autosf.evaluation.calibration import calibrate

        name = f"calibration {seed} {negatives or ''}"
        if name not in self._kept:
            valid = self.labelled_valid(seed, negatives)
            scores, relations = self.scores_of(valid.triples), valid.triples[:, 1]
            self._kept[name] = calibrate(scores, relations, valid.is_true, self.model.relation_count)
        kept: Calibration = self._kept[name]
        return kept

    def labelled_triples(self, seed: int = 0, negatives: Path | str | None = None) -> Negatives:
        """True and false triples of valid and test, from the folder of negatives or made by the seed."""
        from autosf.evaluation.corrupting import made_negatives
        from autosf.graph.negatives import read_negatives

        graph, seed = needed_graph(self.trained), whole_number("seed", seed, 0)
        if negatives is not None:
            return read_negatives(path_given("negatives", negatives), graph)
        return made_negatives(graph, np.random.default_rng(seed), self.known_answers())

    def labelled_valid(self, seed: int = 0, negatives: Path | str | None = None) -> LabelledTriples:
        """Those of valid alone, the same as with those of test."""
        from autosf.evaluation.corrupting import with_negatives
        from autosf.graph.negatives import read_labelled

        graph, seed = needed_graph(self.trained), whole_number("seed", seed, 0)
        if negatives is not None:
            return read_labelled(path_given("negatives", negatives), "valid", graph)
        return with_negatives(graph, graph.valid, self.known_answers(), np.random.default_rng(seed))

    def unseen(self, entities: Sequence[str] = (), relations: Sequence[str] = ()) -> list[str]:
        """Those of the labels that the graph has in no train triple: their embeddings have learnt nothing."""
        graph = self.trained.graph
        if graph is None:
            return []
        found: list[str] = []
        for labels, role, columns in ((entities, "head", (0, 2)), (relations, "relation", (1,))):
            told = pl.Series(labels, dtype=pl.String)
            is_seen = np.isin(self.encoded(told, role), graph.train[:, columns])
            found.extend(told.filter(pl.Series(~is_seen)))
        return found

    def encoded(self, labels: pl.Series, role: str) -> NDArray[np.int32]:
        """Labels as ids. [n]"""
        vocabulary = self.trained.relations if role == "relation" else self.trained.entities
        if labels.dtype != pl.String or labels.null_count():
            raise UserError(
                f"{role}: expected labels, found {quoted(labels.dtype)} with {labels.null_count()} nulls"
            )
        return vocabulary.encode(labels)

    def _some(self, relations: Any) -> list[int]:
        """The ids of a list of relations."""
        if isinstance(relations, str):
            raise UserError(f"relations: expected a list of labels, found {quoted(relations)} alone")
        labels = list(relations) if isinstance(relations, Iterable) else [relations]
        if not all(isinstance(label, str) for label in labels):
            raise UserError(f"relations: expected a list of labels, found {described(relations)}")
        return sorted(set(self.trained.relations.ids(labels)))

    def _pairs(self, pairs: str, relations: NDArray[np.int32]) -> Iterator[Block]:
        """The (head, relation) that are looked at, in blocks."""
        graph, entities = needed_graph(self.trained), len(self.trained.entities)
        if pairs == "seen":
            queries = tail_queries(graph.train, entities=entities, relations=len(graph.relations))
            kept = np.isin(queries.relations, relations)
            yield queries.entities[kept], queries.relations[kept]
        elif pairs == "all":
            for relation in relations:
                yield np.arange(entities, dtype=np.int32), np.full(entities, relation, np.int32)
        else:
            raise UserError(f'pairs: expected "seen" or "all", found {quoted(pairs)}')

    def best_of(
        self, absent: str, ids: list[NDArray[np.int32]], top: int, hidden: Hidden | None = None
    ) -> Best:
        """The best answers of queries, given as ids of the two roles that are not absent."""
        return BEST[absent](self.model, *self._on_device(*ids), top, hidden)

    def scores_of(self, ids: NDArray[np.int32]) -> NDArray[np.float64]:
        """The score of each triple, as `score` gives it. [n] of [n, 3]"""
        parts = [np.empty(0)]
        for start in range(0, len(ids), TRIPLES_AT_ONCE):
            with torch.no_grad():
                scores = self.model.score(*self._on_device(*ids[start : start + TRIPLES_AT_ONCE].T))
            parts.append(scores.double().cpu().numpy())
        return np.concatenate(parts)

    def _on_device(self, *columns: NDArray[np.int32]) -> list[Tensor]:
        """Columns of ids as tensors where the model is."""
        device = self.model.entities.device
        return [torch.from_numpy(column.astype(np.int64)).to(device) for column in columns]

    def are_known(self, ids: NDArray[np.int32]) -> pl.Series:
        """Whether each triple is in the graph; all null without a graph."""
        if self.graph is None:
            return pl.Series([None] * len(ids), dtype=pl.Boolean)
        return pl.Series(self.known_answers().hold(ids))


BEST: dict[str, Callable[..., Best]] = {"head": best_heads, "relation": best_relations, "tail": best_tails}


def needed_graph(trained: TrainedModel) -> KnowledgeGraph:
    """The graph with the known triples; a model without says what to do."""
    if trained.graph is None:
        raise UserError(
            "model: saved without its triples, so that nothing is known to be true;"
            " give its graph (--graph GRAPH, or graph=...)"
        )
    return trained.graph


def hidden_answers(asked: AskableModel, absent: str, ids: list[NDArray[np.int32]]) -> Hidden:
    """The known answers of queries."""
    known, (first, second) = asked.known_answers(), ids
    if absent == "tail":
        return Hidden(*known.tail_slices(first, second), known.tails.answers)
    if absent == "head":
        return Hidden(*known.head_slices(first, second), known.heads.answers)
    return hidden_relations(asked, heads=first, tails=second)


def hidden_relations(asked: AskableModel, *, heads: NDArray[np.int32], tails: NDArray[np.int32]) -> Hidden:
    """The known relations between each pair of entities: each relation is tried, as nothing is sorted by pair."""
    relations = np.arange(asked.model.relation_count)
    kept = [np.empty(0, np.int32)]
    for head, tail in zip(heads, tails, strict=True):
        tried = [np.full_like(relations, head), relations, np.full_like(relations, tail)]
        is_known = asked.are_known(np.stack(tried, axis=1).astype(np.int32))
        kept.append(np.flatnonzero(is_known.to_numpy()).astype(np.int32))
    ends = np.cumsum([len(part) for part in kept], dtype=np.int64)
    return Hidden(starts=ends[:-1], ends=ends[1:], answers=np.concatenate(kept))


def filled(absent: str, ids: list[NDArray[np.int32]], answers: Best) -> NDArray[np.int32]:
    """Queries with their answers put in: triples of ids. [m, 3]"""
    first, second = (column[answers.query] for column in ids)
    columns = [first, second]
    columns.insert(ROLES.index(absent), answers.candidate.astype(np.int32))
    return np.stack(columns, axis=1)


def refuse_options(top: int, known: str = "mark", each: int | None = None) -> None:
    whole_number("top", top, 1)
    whole_number_or_none("each", each, 1)
    if known not in KNOWN:
        raise UserError(
            f'known: expected "mark" or "hide", found {quoted(known)}{did_you_mean(known, KNOWN)}'
        )
