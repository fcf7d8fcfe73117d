"""Spans of time as users write them: 90s, 30m, 1h30m, 2d."""

from __future__ import annotations

import re
from numbers import Real

from autosf.errors import UserError, quoted

SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
PATTERN = re.compile(r"(?:([\d.]+)d)?(?:([\d.]+)h)?(?:([\d.]+)m)?(?:([\d.]+)s)?")


def seconds_in(text: str) -> float:
    """The seconds of a span such as 30m or 1h30m; a bare number is seconds."""
    written = text.strip().lower()
    found = PATTERN.fullmatch(f"{written}s" if re.fullmatch(r"[\d.]+", written) else written)
    try:
        parts = [float(part or 0) * unit for part, unit in zip(found.groups(), SECONDS.values(), strict=True)]  # type: ignore[union-attr]
    except (AttributeError, ValueError):
        parts = []
    if not sum(parts) > 0:
        raise UserError(f"expected a time such as 90s, 30m or 1h30m, found {quoted(text)}")
    return sum(parts)


def seconds_given(budget: object) -> float | None:
    """The seconds of a budget given as a text, as a number of seconds, or not at all."""
    if budget is None or isinstance(budget, str):
        return None if budget is None else seconds_in(budget)
    if isinstance(budget, Real) and not isinstance(budget, bool) and 0 < float(budget) < float("inf"):
        return float(budget)
    raise UserError(f'budget: expected a text such as "30m", or seconds above 0, found {quoted(budget)}')


def time_in_words(seconds: float) -> str:
    """Whole minutes and seconds, such as 12:05 or 1:02:03."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def span_in_words(seconds: float) -> str:
    """A length of time in its own unit, as people say it: 0.8 s, 45 s, 12 min, 3.5 h, 2.1 days."""
    for unit, name in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            amount = seconds / unit
            return f"{amount:.0f} {name}" if amount >= 10 or name == "min" else f"{amount:.1f} {name}"
    if seconds < 0.095:
        return f"{1000 * seconds:.0f} ms"
    return f"{seconds:.0f} s" if seconds >= 9.5 else f"{seconds:.1f} s"
