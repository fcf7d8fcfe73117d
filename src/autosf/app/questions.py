"""Many questions to a model at once, from a file: rows of head, relation and tail, with a ? for what is asked."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from autosf.app.predicting import ROLES
from autosf.errors import UserError, quoted, shown
from autosf.graph.dialects import TableOptions, form_of
from autosf.graph.layouts import JSON_LINES, extension
from autosf.graph.rdf import FORMATS as RDF
from autosf.graph.reading import read_file
from autosf.graph.text_lines import line_where
from autosf.whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from autosf.app.predicting import AskableModel

MISSING = "?"


def read_questions(path: Path, asked: AskableModel) -> pl.DataFrame:
    """The rows of a file as head, relation and tail: each with one ?, or none with any; all other labels known."""
    if not path.is_file():
        raise UserError(f"{shown(path)}: there is no such file")
    questions = pl.DataFrame(dict(zip(ROLES, read_file(path).columns, strict=True)))
    asks = questions.select(pl.sum_horizontal(pl.col(role) == MISSING for role in ROLES)).to_series()
    _refuse_first(path, asks > 1, f"expected one {MISSING}, found several")
    if (asks > 0).any():
        advice = "judge whole triples in a file of their own"
        _refuse_first(path, asks == 0, f"expected a {MISSING} as in other rows, found none; {advice}")
    for role in ROLES:
        vocabulary = asked.trained.relations if role == "relation" else asked.trained.entities
        told = questions[role]
        is_unknown = (told != MISSING) & ~told.is_in(vocabulary.labels.implode())
        if is_unknown.any():
            try:
                vocabulary.id(told.filter(is_unknown)[0])
            except UserError as error:
                _refuse_first(path, is_unknown, str(error))
    return questions


def _refuse_first(path: Path, is_wrong: pl.Series, message: str) -> None:
    """Raise if a row is wrong, and name the first such line."""
    if not is_wrong.any():
        return
    row = int(is_wrong.arg_max() or 0)
    place = f"{shown(path)}: row {row + 1}"
    if extension(path) not in (*RDF, *JSON_LINES, "parquet"):
        form = form_of(path, TableOptions())
        record = row + (form.header is not None)
        place = f"{shown(path)}:{line_where(path, form.dialect, lambda index, _: index == record)}"
    raise UserError(f"{place}: {message}")


def answers_to(asked: AskableModel, questions: pl.DataFrame, top: int, known: str) -> pl.DataFrame:
    """The best answers of each question: its number from 1, the triple with the answer put in, score and known.

    Whole triples are judged instead, a row each.
    """
    wanted = {role: questions[role] == MISSING for role in ROLES}
    if not reduce(or_, wanted.values()).any():
        return asked.judge(questions)
    numbered = questions.with_row_index("row")
    parts = [
        _answers_of_kind(asked, role, numbered.filter(wanted[role]), top, known)
        for role in ROLES
        if wanted[role].any()
    ]
    return pl.concat(parts).sort("question", maintain_order=True)


def _answers_of_kind(
    asked: AskableModel, role: str, numbered: pl.DataFrame, top: int, known: str
) -> pl.DataFrame:
    """Of questions that all ask for the same role."""
    found = asked.numbered_answers(numbered.drop("row", role), top, known)
    number = numbered["row"].gather(found["question"]).cast(pl.Int64) + 1
    answer = found["relation" if role == "relation" else "entity"]
    columns = {"question": number, "asked": pl.Series([role]).new_from_index(0, len(found))}
    triples = {each: answer if each == role else found[each] for each in ROLES}
    return pl.DataFrame(columns | triples | {"score": found["score"], "known": found["known"]})


def writer_for(path: Path) -> Callable[[pl.DataFrame], None]:
    """A function that writes answers as a table, in the form that its extension names; whole or not at all."""
    ending = path.suffix.lower()
    if ending not in WRITERS:
        raise UserError(
            f"{shown(path)}: expected a name that ends in {', '.join(WRITERS)}, found {quoted(ending)}"
        )

    def write(rows: pl.DataFrame) -> None:
        with whole_file(path) as beside:
            WRITERS[ending](rows, beside)

    return write


WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".tsv": lambda rows, path: rows.write_csv(path, separator="\t"),
    ".csv": lambda rows, path: rows.write_csv(path),
    ".parquet": lambda rows, path: rows.write_parquet(path),
    ".jsonl": lambda rows, path: rows.write_ndjson(path),
}
