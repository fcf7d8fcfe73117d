"""Files and folders that are whole or absent: written beside their place, then renamed into it."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from autosf.errors import UserError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_STEM = 100  # of the place's name in the one beside it, as names of files have an end


def write_whole(path: Path, text: str) -> None:
    """A file of this text: an earlier one stays until this one is whole."""
    with whole_file(path, parents=False) as beside:
        beside.write_text(text, encoding="utf-8")


@contextmanager
def whole_file(path: Path, *, parents: bool = True) -> Iterator[Path]:
    """A file to write beside the one of that name, whose place it takes in the end if all goes well.

    With `parents` the folder it lies in is made if it is not there.
    """
    with told(path):
        place = place_of(path)
        beside = place.with_name(f".{place.name[:LONGEST_STEM]}.{token_hex(4)}.partial")  # nobody else's
        try:
            if parents:
                place.parent.mkdir(parents=True, exist_ok=True)
            beside.touch(exist_ok=False)
            mode = beside.stat().st_mode & 0o777
            yield beside
            beside.chmod(mode)  # some writers make files that only their owner reads
            beside.replace(place)
        finally:
            with suppress(OSError):
                beside.unlink(missing_ok=True)


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill beside the one of that name, whose place it takes in the end if all goes well.

    The place is free: nothing is there, or an empty folder.
    """
    with told(folder), folder_beside(folder) as beside:
        yield beside
        beside.replace(folder)


@contextmanager
def folder_beside(folder: Path) -> Iterator[Path]:
    """An empty folder next to the one of that name, which is removed in the end unless it was renamed."""
    refuse_here(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:LONGEST_STEM]}.", dir=folder.parent))
    try:
        beside.chmod(0o755)  # a temporary folder is its owner's alone
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def make_folder(folder: Path) -> None:
    """The folder with all above it, where they are not there yet."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:  # a file in its way, or a place that nobody may write to
        raise UserError(f"{shown(folder)}: cannot be made ({error.strerror or error})") from None


def refuse_here(folder: Path) -> None:
    """Raise if the folder is the one we are in, or above it: a new one in its place would leave us nowhere."""
    here = Path.cwd()
    if folder.resolve() in (here, *here.parents):
        raise UserError(f"{shown(folder)}: is the folder you are in, or above it; name a new one in it")


def place_of(path: Path) -> Path:
    """Where a file of that name goes: at the end of its links, which stay. A device or a pipe would be lost."""
    place = path.resolve() if path.is_symlink() else path
    if place.is_dir():
        raise UserError(f"{shown(path)}: expected a file to write, found a folder")
    if place.exists() and not place.is_file():
        raise UserError(f"{shown(path)}: expected a file to write, found a device or a pipe; name a file")
    return place


@contextmanager
def told(path: Path) -> Iterator[None]:
    """A full disk, or a place that nobody may write to, as one line."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{shown(path)}: cannot write it ({error.strerror or error})") from None
