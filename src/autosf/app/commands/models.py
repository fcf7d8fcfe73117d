"""`autosf evaluate`, `classify`, `predict` and `export`: what is done with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from autosf.app import completing
from autosf.app.answer import answer, json_option, say
from autosf.counting import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from autosf.app.predicting import AskableModel

TOP = 10
graph_option = click.option(
    "--graph",
    "source",
    shell_complete=completing.graphs,
    help="The graph it was trained on, if the folder was saved without its triples.",
)


@click.command(epilog="Example: autosf evaluate MODEL --by pattern")
@click.argument("model", shell_complete=completing.models)
@click.option(
    "--split", type=click.Choice(["test", "valid", "train"]), default="test", show_default=True,
    help="The triples to rank.",
)  # fmt: skip
@click.option(
    "--by",
    type=click.Choice(["relation", "pattern", "side", "category"]),
    help="Also the metrics of each group.",
)
@click.option(
    "--candidates", type=click.IntRange(2),
    help="Estimate ranks from so many entities for each relation and side. [default: all, exact]",
)  # fmt: skip
@graph_option
@json_option
def evaluate(
    model: str, split: str, by: str | None, candidates: int | None, source: str | None, as_json: bool
) -> None:
    """Measure MODEL by filtered ranking on a split.

    The true answers are ranked among all entities that are not known answers. Both sides, ties at their
    mean place; the metrics are those of link prediction (Sec. V-B). With --candidates ranks are unbiased
    estimates, quick on a large graph; MRR and hits come out too high, the more so the fewer the candidates.
    """
    result = opened(model, source).evaluate(split, by, candidates)

    def for_people() -> Any:
        from autosf.app.model_tables import evaluation_for_people

        return evaluation_for_people(result, by)

    answer(result, as_json, for_people)


@click.command(epilog="Example: autosf classify MODEL")
@click.argument("model", shell_complete=completing.models)
@click.option(
    "--negatives",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with valid_neg and test_neg; else that of the graph, else false triples are made.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="For false triples that are made."
)
@graph_option
@json_option
def classify(model: str, negatives: Path | None, seed: int, source: str | None, as_json: bool) -> None:
    """Tell true triples from false ones with MODEL.

    By a threshold for each relation (Sec. V-C). Thresholds are set on valid, the accuracy is that on
    test. Relations without both classes in valid use the
    threshold that is best for all; the answer says how many triples did.
    """
    result = opened(model, source).classify(negatives, seed)

    def for_people() -> Any:
        from autosf.app.model_tables import classification_for_people

        return classification_for_people(result)

    answer(result, as_json, for_people)


@click.command(epilog="Example: autosf predict MODEL --head virus --relation causes")
@click.argument("model", shell_complete=completing.models)
@click.option("--head", help="With --relation: which tails? With --tail: which relations?")
@click.option("--relation", help="With --head or --tail; or of new facts only.")
@click.option("--tail", help="With --relation: which heads? With --head, too: is it true?")
@click.option("--near", help="Which entities are embedded most alike?")
@click.option(
    "--from", "questions", type=click.Path(dir_okay=False, path_type=Path),
    help="A file of questions: head, relation, tail, with ? for one of them; without any ? triples are judged.",
)  # fmt: skip
@click.option(
    "--new-facts", "wants_facts", is_flag=True, help="The best triples that the graph does not have."
)
@click.option("--each", type=click.IntRange(1), help="New facts: at most so many of one head and relation.")
@click.option("--all-pairs", is_flag=True, help="New facts: of all heads and relations, also unseen pairs.")
@click.option("--loops", is_flag=True, help="New facts: also of an entity with itself.")
@click.option("--top", type=int, help="How many answers, to each question. [default: 10]")
@click.option("--hide-known", is_flag=True, help="Leave out what the graph has already.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write the answers to a .tsv, .csv, .parquet or .jsonl file.",
)
@graph_option
@json_option
def predict(
    model: str, source: str | None, top: int | None, out: Path | None, as_json: bool, **question: Any
) -> None:
    """Ask MODEL for tails, heads, relations or new facts.

    With all three of --head, --relation and --tail the triple is judged: its probability among as many
    true as false ones, and the places of its tail and head. With --near: similar entities. With --from: many
    questions at once. Equal scores stand in label order. Scores of one question are comparable, those of two
    only roughly.
    """
    ask, told = asking(top, **question)
    if out is not None:
        from autosf.app.questions import writer_for

        write = writer_for(out)  # a name that nobody can write is told before anything is asked
        found = ask(opened(model, source))
        write(found)
        result = {"path": str(out), "count": len(found)}
        answer(result, as_json, lambda: f"{counted(len(found), 'answer')} written to {out}")
        return
    rows = ask(opened(model, source)).to_dicts()

    def for_people() -> Any:
        from autosf.app.model_tables import judgement_for_people, predictions_for_people

        judged = question["questions"] is None and bool(rows) and "probability" in rows[0]
        return judgement_for_people(rows[0], told) if judged else predictions_for_people(rows, told)

    answer({"predictions": rows}, as_json, for_people)


def asking(
    top: int | None,
    *,
    head: str | None,
    relation: str | None,
    tail: str | None,
    near: str | None,
    questions: Path | None,
    wants_facts: bool,
    each: int | None,
    all_pairs: bool,
    loops: bool,
    hide_known: bool,
) -> tuple[Callable[[AskableModel], pl.DataFrame], str]:
    """What is asked of the model, by the options given, and the question in words."""
    named = {"head": head, "relation": relation, "tail": tail}
    given = {role: [label] for role, label in named.items() if label is not None}
    if not wants_facts and (each is not None or all_pairs or loops):
        raise click.UsageError("--each, --all-pairs and --loops go with --new-facts")
    if hide_known and (wants_facts or near is not None or len(given) == 3):
        raise click.UsageError("--hide-known goes with two of --head, --relation and --tail, or with --from")
    if top is not None and len(given) == 3:
        raise click.UsageError("--top goes with questions; a whole triple is judged")
    known, most = "hide" if hide_known else "mark", TOP if top is None else top
    limit = "--hide-known" if hide_known else "--top" if top is not None else None
    kinds = (near is not None) + (questions is not None) + wants_facts  # beside a triple's own roles
    if wants_facts and kinds == 1 and set(given) <= {"relation"}:
        return (
            lambda asked: facts_of(asked, most, relation, each=each, all_pairs=all_pairs, loops=loops)
        ), "New facts"
    if near is not None and kinds == 1 and not given:
        return (lambda asked: warned(asked, {"near": near}).neighbours(near, most)), f"Near {_shown(near)}"
    if questions is not None and kinds == 1 and not given:
        return (
            lambda asked: answers_from(questions, asked, most, known, limit)
        ), f"Questions of {questions.name}"
    told = "  ".join("?" if label is None else _shown(label) for label in named.values())
    if not kinds and len(given) == 3:
        return (lambda asked: warned(asked, named).judge([tuple(named.values())])), told
    if not kinds and len(given) == 2:
        return (lambda asked: warned(asked, named).predict_many(given, most, known).drop(*given)), told
    raise click.UsageError(
        "expected two of --head, --relation and --tail, or all three, or --near, or --from,"
        " or --new-facts (with --relation or without)"
    )


def warned(asked: AskableModel, labels: Mapping[str, str | None]) -> AskableModel:
    """The model, with a word to the user on labels that it has learnt nothing of."""
    given = {role: label for role, label in labels.items() if label is not None}
    entities = [label for role, label in given.items() if role != "relation"]
    relations = [label for role, label in given.items() if role == "relation"]
    for label in asked.unseen(entities, relations):
        say(f'"{_shown(label)}" is in no train triple: what the model says of it means nothing')
    return asked


def answers_from(path: Path, asked: AskableModel, top: int, known: str, limit: str | None) -> pl.DataFrame:
    """The answers to the questions of a file, with a word on labels that the model has learnt nothing of.

    `limit` is an option given that leaves answers out: whole triples are judged, all of them.
    """
    from autosf.app.questions import MISSING, answers_to, are_whole, read_questions
    from autosf.errors import UserError, shown

    questions = read_questions(path, asked)
    if limit and are_whole(questions):
        raise UserError(
            f"{shown(path)}: {limit} goes with questions, found none with a {MISSING}; whole triples are judged"
        )
    entities = {*questions["head"], *questions["tail"]} - {MISSING}
    relations = {*questions["relation"]} - {MISSING}
    unseen = asked.unseen(sorted(entities), sorted(relations))
    if unseen:
        which = f'"{_shown(unseen[0])}"' + (f" and {len(unseen) - 1} more" if len(unseen) > 1 else "")
        say(f"labels in no train triple: {which}; what the model says of them means nothing")
    return answers_to(asked, questions, top, known)


def facts_of(
    asked: AskableModel, top: int, relation: str | None, *, each: int | None, all_pairs: bool, loops: bool
) -> pl.DataFrame:
    """New facts, none of which is known."""
    import polars as pl

    wanted = None if relation is None else [relation]
    found = asked.new_facts(top, wanted, each=each, pairs="all" if all_pairs else "seen", loops=loops)
    return found.with_columns(pl.lit(False).alias("known"))


def _shown(label: str) -> str:
    from autosf.errors import quoted

    return quoted(label, 120)[1:-1]


@click.command(epilog="Example: autosf export MODEL --to npz embeddings.npz")
@click.argument("model", shell_complete=completing.models)
@click.option(
    "--to", "form", required=True, type=click.Choice(["safetensors", "npz", "word2vec", "parquet", "pykeen"]),
    help="The file's form; pykeen is a folder.",
)  # fmt: skip
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--force", is_flag=True, help="Replace any file OUT, not just an earlier export; never one of a model."
)
@json_option
def export(model: str, form: str, out: Path, force: bool, as_json: bool) -> None:
    """Write the embeddings of MODEL to the file OUT.

    With their labels, in a form that other tools open; as pykeen, a folder that PyKEEN opens without us.
    """
    from autosf.app.exporting import export as exported
    from autosf.app.interop.pykeen_export import export_to_pykeen
    from autosf.app.sizes import size_in_words

    if force and form == "pykeen":
        raise click.UsageError("--force goes with files, not with the folder for pykeen; name a new folder")
    trained = opened(model, None).trained
    path = export_to_pykeen(trained, out) if form == "pykeen" else exported(trained, out, form, force=force)
    size = sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))
    result = {"path": str(path), "form": form, "bytes": size}
    answer(result, as_json, lambda: f"written to {path} ({size_in_words(size)})")


def opened(model: str, source: str | None) -> AskableModel:
    """The model of a folder, with the triples of a graph that the user names."""
    from autosf.app.predicting import load

    return load(model, graph=source)
