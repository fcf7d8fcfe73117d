"""Many questions to a model at once, from a file or a program: head, relation and tail, a ? for what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs

from autosf.app.given import described
from autosf.app.predicting import ROLES, filled, hidden_answers, refuse_options
from autosf.errors import UserError, quoted, shown
from autosf.graph.dialects import TableOptions, form_of
from autosf.graph.frames import is_triple, table_of
from autosf.graph.layouts import extension
from autosf.graph.rdf import FORMATS as RDF
from autosf.graph.reading import read_file
from autosf.graph.text_lines import line_where
from autosf.graph.vocabulary import is_unicode
from autosf.whole import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from autosf.app.predicting import AskableModel

MISSING = "?"


def read_questions(path: Path, asked: AskableModel) -> pl.DataFrame:
    """The rows of a file as head, relation and tail: each with one ?, or none with any; all other labels known."""
    if not path.exists():
        raise UserError(f"{shown(path)}: there is no such file")
    if not path.is_file():  # it is read more than once
        raise UserError(f"{shown(path)}: expected a file, found a device or a pipe; save the questions first")
    if extension(path) in FRAMES:
        questions = triples_in(read_frame(path), shown(path))
    else:
        questions = pl.DataFrame(dict(zip(ROLES, read_file(path).columns, strict=True)))
    refuse_mistaken(questions, asked, lambda row: place_in_file(path, row))
    return questions


def read_frame(path: Path) -> pl.DataFrame:
    """The table of a file that is no text of fields."""
    kind = extension(path)
    try:
        return FRAMES[kind](path)
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:80]
        raise UserError(f"{shown(path)}: expected a {kind} file, found something else ({reason})") from None


FRAMES: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": lambda path: pl.read_parquet(path, glob=False),
    "jsonl": lambda path: pl.read_ndjson(path, infer_schema_length=None),
    "ndjson": lambda path: pl.read_ndjson(path, infer_schema_length=None),
}


def place_in_file(path: Path, row: int) -> str:
    """Where a row of questions, counted from 0, stands in their file."""
    if extension(path) in (*RDF, *FRAMES):
        return f"{shown(path)}: row {row + 1}"
    form = form_of(path, TableOptions())
    record = row + (form.header is not None)
    return f"{shown(path)}:{line_where(path, form.dialect, lambda index, _: index == record)}"


def refuse_mistaken(questions: pl.DataFrame, asked: AskableModel, place: Callable[[int], str]) -> None:
    """Raise at the first row that asks for several roles, for none where others ask, or has an unknown label."""

    def refuse_first(is_wrong: pl.Series, message: str) -> None:
        if is_wrong.any():
            raise UserError(f"{place(int(is_wrong.arg_max() or 0))}: {message}")

    asks = questions.select(pl.sum_horizontal(pl.col(role) == MISSING for role in ROLES)).to_series()
    refuse_first(asks > 1, f"expected one {MISSING}, found several")
    if (asks > 0).any():
        advice = "judge whole triples by themselves"
        refuse_first(asks == 0, f"expected a {MISSING} as in other rows, found none; {advice}")
    for role in ROLES:
        vocabulary = asked.trained.relations if role == "relation" else asked.trained.entities
        told = questions[role]
        is_unknown = (told != MISSING) & ~told.is_in(vocabulary.labels.implode())
        if is_unknown.any():
            try:
                vocabulary.id(told.filter(is_unknown)[0])
            except UserError as error:
                refuse_first(is_unknown, str(error))


def answers_of(asked: AskableModel, queries: object, top: int, known: str) -> pl.DataFrame:
    """The best answers of what a program asks: two columns of labels, or triples with a ? or null."""
    table = table_given(queries)
    if table.width < len(ROLES):
        return numbered_answers(asked, table, top, known).drop("question")
    questions = triples_in(table, "queries")
    refuse_mistaken(questions, asked, lambda row: f"queries: row {row + 1}")
    return answers_to(asked, questions, top, known)


def table_given(queries: object) -> pl.DataFrame:
    """What a program gives as a frame: a frame already, a mapping of columns, or rows of a list or an array."""
    if isinstance(queries, pl.LazyFrame):
        queries = queries.collect()
    table = queries if isinstance(queries, pl.DataFrame) else _table_of_columns(columns_given(queries))
    return table.cast(pl.String) if table.is_empty() else table


def _table_of_columns(columns: dict[str, Any]) -> pl.DataFrame:
    try:
        return pl.DataFrame(columns)
    except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
        raise UserError(f"queries: {_fault_of(columns)}") from None


def _fault_of(columns: dict[str, Any]) -> str:
    """What keeps columns from being a table of labels."""
    lists = {
        name: column
        for name, column in columns.items()
        if hasattr(column, "__getitem__") and not isinstance(column, str) and getattr(column, "ndim", 1) == 1
    }
    if len({len(column) for column in lists.values()}) > 1:
        told = quoted(", ".join(f"{len(column)} in {name}" for name, column in lists.items()))[1:-1]
        return f"expected columns of labels, all of one length, found {told}"
    for name, column in lists.items():
        for label in column:
            if label is not None and not (isinstance(label, str) and is_unicode(label)):
                return f"expected labels as text, found {described(label)} in {quoted(name)}"
    kinds = quoted(", ".join(f"{type(column).__name__} as {name}" for name, column in columns.items()))[1:-1]
    return f"expected lists of labels as text, found {kinds}"


def columns_given(queries: Any) -> dict[str, Any]:
    """The columns of a mapping, of a pandas frame, or of rows; what is missing there is None."""
    if isinstance(queries, Mapping):
        return {str(name): column for name, column in queries.items()}
    if isinstance(queries, list | tuple) or (isinstance(queries, np.ndarray) and queries.ndim == 2):
        rows = [_triple_of(row, f"queries: row {number}") for number, row in enumerate(queries, 1)]
        return {role: [triple[side] for triple in rows] for side, role in enumerate(ROLES)}
    if hasattr(queries, "iloc") and hasattr(queries, "to_dict"):
        return {
            str(name): [None if value != value else value for value in column]  # pandas has NaN for it
            for name, column in queries.to_dict("list").items()
        }
    expected = "expected a frame, columns by name, a list of triples or an array of n x 3"
    raise UserError(f"queries: {expected}, found {described(queries)}")


def _triple_of(row: Any, place: str) -> list[Any]:
    """A row by its roles' names, of which one may be missing, or in their order."""
    if isinstance(row, Mapping) and set(row) <= set(ROLES):
        return [row.get(role) for role in ROLES]
    if is_triple(row):
        return list(row)
    raise UserError(f"{place}: expected a triple (head, relation, tail), found {quoted(repr(row))}")


def triples_in(table: pl.DataFrame, place: str) -> pl.DataFrame:
    """Head, relation and tail of a table of three columns or more, with ? for what is null."""
    if table.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(ROLES, pl.String))
    labels = ~(cs.float() | cs.boolean() | cs.nested() | cs.object())
    told = table.with_columns(labels.cast(pl.String).fill_null(MISSING))
    return pl.DataFrame(dict(zip(ROLES, table_of(told, place).columns, strict=True)))


def are_whole(questions: pl.DataFrame) -> bool:
    """Whether they are triples to be judged, as none asks for anything."""
    return len(questions) > 0 and not any((questions[role] == MISSING).any() for role in ROLES)


def answers_to(asked: AskableModel, questions: pl.DataFrame, top: int, known: str) -> pl.DataFrame:
    """The best answers of each question: its number from 1, the triple with the answer put in, score and known.

    Whole triples are judged instead, a row each.
    """
    if are_whole(questions):
        return asked.judge(questions)
    wanted = {role: questions[role] == MISSING for role in ROLES}
    kinds = [role for role in ROLES if wanted[role].any()]
    numbered = questions.with_row_index("row")
    parts = [
        _answers_of_kind(asked, role, numbered.filter(wanted[role]), top, known)
        for role in kinds or ("tail",)  # of no question there is no answer
    ]
    return pl.concat(parts).sort("question", maintain_order=True)


def _answers_of_kind(
    asked: AskableModel, role: str, numbered: pl.DataFrame, top: int, known: str
) -> pl.DataFrame:
    """Of questions that all ask for the same role."""
    found = numbered_answers(asked, numbered.drop("row", role), top, known)
    number = numbered["row"].gather(found["question"]).cast(pl.Int64) + 1
    answer = found["relation" if role == "relation" else "entity"]
    columns = {"question": number, "asked": pl.Series([role]).new_from_index(0, len(found))}
    triples = {each: answer if each == role else found[each] for each in ROLES}
    return pl.DataFrame(columns | triples | {"score": found["score"], "known": found["known"]})


def numbered_answers(asked: AskableModel, queries: pl.DataFrame, top: int, known: str) -> pl.DataFrame:
    """The best answers of queries with two roles; `question` is the row that each answers, counted from 0."""
    refuse_options(top, known)
    given = _two_roles(queries.columns)
    ids = [asked.encoded(queries[role], role) for role in given]
    absent = next(role for role in ROLES if role not in given)
    hidden = hidden_answers(asked, absent, ids) if known == "hide" else None
    answers = asked.best_of(absent, ids, top, hidden)
    vocabulary = asked.trained.relations if absent == "relation" else asked.trained.entities
    return pl.DataFrame(
        {
            "question": answers.query,
            **{role: queries[role].gather(answers.query) for role in given},
            "relation" if absent == "relation" else "entity": vocabulary.labels.gather(answers.candidate),
            "score": answers.score,
            "known": asked.are_known(filled(absent, ids, answers)),
        }
    )


def _two_roles(columns: Sequence[str]) -> list[str]:
    given = [role for role in ROLES if role in columns]
    if len(given) != 2 or len(columns) != 2:
        raise UserError(
            f"queries: expected two of the columns head, relation, tail, or all three,"
            f" found {quoted(', '.join(columns))}"
        )
    return given


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


def write_tsv(rows: pl.DataFrame, path: Path) -> None:
    """Labels as they are, as nothing is quoted in a .tsv; those that would tear its lines apart are refused."""
    for column in rows.select(cs.string()):
        broken = column.filter(column.str.contains("[\t\n\r\0]"))
        if len(broken):
            raise UserError(
                f"{quoted(broken[0])}: a label with a tab or a line end does not go into a .tsv; name a .csv"
            )
    rows.write_csv(path, separator="\t", quote_style="never")


WRITERS: dict[str, Callable[[pl.DataFrame, Path], object]] = {
    ".tsv": write_tsv,
    ".csv": lambda rows, path: rows.write_csv(path, quote_style="non_numeric"),  # blanks around a label count
    ".parquet": lambda rows, path: rows.write_parquet(path),
    ".jsonl": lambda rows, path: rows.write_ndjson(path),
    ".ndjson": lambda rows, path: rows.write_ndjson(path),
}
