"""Files that are whole or absent, and never written over what is no file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from autosf.errors import UserError
from autosf.graph.text_lines import shown

if TYPE_CHECKING:
    from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write beside and rename: an earlier file stays until this one is whole."""
    place = place_of(path)
    beside = place.with_name(place.name + ".partial")
    beside.write_text(text, encoding="utf-8")
    beside.replace(place)


def place_of(path: Path) -> Path:
    """Where a file of that name goes: at the end of its links, which stay. A device or a pipe would be lost."""
    place = path.resolve() if path.is_symlink() else path
    if place.is_dir():
        raise UserError(f"{shown(path)}: expected a file to write, found a folder")
    if place.exists() and not place.is_file():
        raise UserError(f"{shown(path)}: expected a file to write, found a device or a pipe; name a file")
    return place
