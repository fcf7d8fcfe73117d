"""What columns and splits may be called, and which columns of a table are head, relation and tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosf.errors import UserError, did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

ROLES = ("head", "relation", "tail")
ROLE_WORDS = {
    "head": (
        *("head", "subject", "source", "from", "src", "subj", "start", "h", "s"),
        *("head_id", "subject_id", "source_id", "from_id", "start_id", ":start_id"),
    ),
    "relation": (
        *(
            "relation",
            "predicate",
            "property",
            "edge",
            "rel",
            "pred",
            "type",
            "label",
            "relationship",
            "r",
            "p",
        ),
        *("relation_id", "predicate_id", "edge_type", "relation_type", ":type"),
    ),
    "tail": (
        *("tail", "object", "target", "to", "dst", "obj", "end", "t", "o"),
        *("tail_id", "object_id", "target_id", "to_id", "end_id", ":end_id"),
    ),
    "split": ("split", "partition", "fold", "subset"),
}
SPLIT_WORDS = {
    "train": ("train", "training"),
    "valid": ("valid", "validation", "dev", "val"),
    "test": ("test", "testing"),
}
ROLE_OF_WORD = {word: role for role, words in ROLE_WORDS.items() for word in words}
SPLIT_OF_WORD = {word: split for split, words in SPLIT_WORDS.items() for word in words}

# What to do about columns that nothing tells apart, in a file and in memory.
CHOOSING_IN_PYTHON = "say which are head, relation and tail: autosf.read_graph(..., columns=(0, 1, 2))"
CHOOSING = (
    "say which are head, relation and tail: autosf data split FILE --columns 0,1,2 --out DIR"
    " (Python: columns=(0, 1, 2))"
)


@dataclass(frozen=True, slots=True)
class Roles:
    """Places (from 0) of the columns for head, relation, tail and, if there is one, the split's name."""

    head: int = 0
    relation: int = 1
    tail: int = 2
    split: int | None = None

    def places(self) -> tuple[int, int, int]:
        return self.head, self.relation, self.tail


def roles_by_name(names: Sequence[str], place: str) -> Roles | None:
    """The roles if the names tell all three, else None. A role told twice is the user's mistake."""
    told = [ROLE_OF_WORD.get(name.strip().casefold()) for name in names]
    if sum(role in ROLES for role in told) < len(ROLES):
        return None
    found: dict[str, int] = {}
    for index, role in enumerate(told):
        if role in found:
            _refuse_double(role, names[found[role]], names[index], place)
        elif role is not None:
            found[role] = index
    return Roles(**found) if set(ROLES) <= set(found) else None


def _refuse_double(role: str, first: str, second: str, place: str) -> None:
    """Two header words for one role; single letters pass, since `s p s` may well be a triple."""
    if len(first.strip()) > 1 and len(second.strip()) > 1:
        both = f"{quoted(first)} and {quoted(second)}"
        raise UserError(f"{place}: the header is duplicated: {both} both name the {role}; rename one")


def roles_by_choice(columns: Sequence[str | int], names: Sequence[str], place: str) -> Roles:
    """The roles that the option `columns` names, by header words or by places from 0."""
    if isinstance(columns, str) or len(columns) != 3:
        raise UserError(
            f"columns: expected three names or places, for head, relation, tail; found {columns!r}"
        )
    head, relation, tail = found = [_place_of(column, names, place) for column in columns]
    for column, index in zip(columns, found, strict=True):
        if found.count(index) > 1:
            what = quoted(column) if isinstance(column, str) else f"place {column}"
            raise UserError(f"columns: expected three different ones, found {what} twice")
    split = [
        index for index, name in enumerate(names) if ROLE_OF_WORD.get(name.strip().casefold()) == "split"
    ]
    return Roles(head, relation, tail, split[0] if split and split[0] not in (head, relation, tail) else None)


def _place_of(column: str | int, names: Sequence[str], place: str) -> int:
    if isinstance(column, int):
        if 0 <= column < len(names):
            return column
        raise UserError(f"{place}: columns asks for place {column}, found places 0 to {len(names) - 1}")
    if column not in names:
        found = ", ".join(quoted(name) for name in names[:10])
        raise UserError(f"{place}: no column {quoted(column)} in {found}{did_you_mean(column, names)}")
    return list(names).index(column)
