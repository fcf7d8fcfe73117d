"""Text files that are whole or absent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write beside and rename: an earlier file stays until this one is whole."""
    beside = path.with_name(path.name + ".partial")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
