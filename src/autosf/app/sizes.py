"""Amounts of memory and disk as people read them."""

from __future__ import annotations

UNITS = ("bytes", "kB", "MB", "GB", "TB")


def size_in_words(size: float) -> str:
    """Two or three digits with a decimal unit: 840 bytes, 12 MB, 1.5 GB."""
    unit = 0
    while size >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = 1 if unit and size < 9.95 else 0
    return f"{size:.{digits}f} {UNITS[unit]}"
