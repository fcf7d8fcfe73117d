"""Values that a Python program gives, taken in their plain type or refused in one line."""

from __future__ import annotations

import os
from numbers import Real
from operator import index
from pathlib import Path
from typing import Any

from autosf.errors import UserError, quoted


def whole_number(name: str, value: Any, least: int | None = None) -> int:
    """The value as an int, if it is a whole number (numpy's too) and no less than the least."""
    try:
        if isinstance(value, bool):
            raise TypeError
        found = index(value)
    except TypeError:
        raise UserError(f"{name}: expected a whole number, found {described(value)}") from None
    if least is not None and found < least:
        raise UserError(f"{name}: expected a number from {least}, found {found}")
    return found


def whole_number_or_none(name: str, value: Any, least: int | None = None) -> int | None:
    """The same where None stands for a default."""
    return None if value is None else whole_number(name, value, least)


def share(name: str, value: Any) -> float:
    """The value as a float, if it is a number between 0 and 1."""
    if isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1:
        return float(value)
    found = value if isinstance(value, Real) else described(value)
    raise UserError(f"{name}: expected a number between 0 and 1, found {found}")


def path_given(name: str, value: Any) -> Path:
    """The value as a path, if it is a text or a path."""
    if isinstance(value, (str, os.PathLike)):
        return Path(value)
    raise UserError(f"{name}: expected a path, found {described(value)}")


def described(value: object) -> str:
    """A value with its type, as a text such as "5" looks like a number."""
    return f"{quoted(value)} ({type(value).__name__})"
