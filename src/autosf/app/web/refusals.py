"""What is answered to a request that cannot be served: a status and one line, never more of our insides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """`error` in one line; where a label was misspelt, the ones it may be meant for."""

    status: int
    error: str
    suggestions: tuple[str, ...] = ()


class Refused(Exception):  # noqa: N818 - the client's mistake, no fault of ours
    """Raised by whoever finds that a request cannot be served."""

    def __init__(self, status: int, error: str, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(error)
        self.refusal = Refusal(status, error, suggestions)
