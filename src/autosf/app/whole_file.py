"""Files that are whole or absent, and never written over what is no file."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from autosf.errors import UserError
from autosf.graph.text_lines import shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write beside and rename: an earlier file stays until this one is whole."""
    place = place_of(path)
    beside = place.with_name(place.name + ".partial")
    beside.write_text(text, encoding="utf-8")
    beside.replace(place)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write beside the one of that name, whose place it takes in the end if all goes well."""
    place = place_of(path)
    beside = place.with_name(f".{place.name}.partial")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        beside.touch()
        mode = beside.stat().st_mode & 0o777
        yield beside
        beside.chmod(mode)  # some writers make files that only their owner reads
        beside.replace(place)
    except OSError as error:
        raise UserError(f"{shown(path)}: cannot write it ({error.strerror or error})") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


def place_of(path: Path) -> Path:
    """Where a file of that name goes: at the end of its links, which stay. A device or a pipe would be lost."""
    place = path.resolve() if path.is_symlink() else path
    if place.is_dir():
        raise UserError(f"{shown(path)}: expected a file to write, found a folder")
    if place.exists() and not place.is_file():
        raise UserError(f"{shown(path)}: expected a file to write, found a device or a pipe; name a file")
    return place
