"""The one error that is the user's to mend; every layer may raise it, only the command line catches it."""

from __future__ import annotations

import errno
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Numbers of an OSError that a full or locked disk is to blame for: the user's to mend.
OF_DISKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES})


class UserError(Exception):
    """A mistake of the user's, told in one line: the place, what was expected, what was found, what to do."""


def quoted(text: object, longest: int = 60) -> str:
    """`text` in double quotes on one line, shortened, with control characters escaped: safe in any message."""
    plain = str(text)
    plain = plain if len(plain) <= longest else plain[: longest - 3] + "..."
    return '"' + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in plain) + '"'


def shown(path: Path) -> str:
    """The path in an error message: on one line, whatever its name holds."""
    return quoted(path, longest=1000)[1:-1]


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """`; did you mean "x" or "y"?` for the nearest known words, whatever their case, or an empty text."""
    spelt: dict[str, str] = {}
    for name in known:
        spelt.setdefault(name.lower(), name)
    nearest = [spelt[low] for low in get_close_matches(str(word).lower(), spelt, n=3, cutoff=0.6)]
    return f"; did you mean {' or '.join(quoted(name) for name in nearest)}?" if nearest else ""


def lacks_extra(what: str, extra: str) -> UserError:
    """What to raise where an optional package is missing: what needs it, and how to get it."""
    return UserError(f'{what} needs the extra "{extra}": pip install "autosf[{extra}]"')
