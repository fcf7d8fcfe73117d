"""Folders that are whole or absent, and that tell when a byte of them has changed.

A folder's manifest, a JSON object, holds the size and SHA-256 of every other file and, as `seal`, the SHA-256
of its own content. New folders are written beside and renamed. The checks find damage and careless editing;
they are no signature, so that a reader still trusts nothing it has not looked at.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autosf.errors import UserError, quoted, shown
from autosf.whole import LONGEST_STEM, folder_beside, refuse_here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

LARGEST_MANIFEST = 1 << 26
OWN_KEYS = ("format", "version", "files", "seal")
MENDING = "restore a copy or make it again"


@dataclass(frozen=True, slots=True)
class Kind:
    """What sort of folder: `noun` in messages, the manifest's name, its format's name and newest version."""

    noun: str
    manifest: str
    format: str
    version: int


def save_sealed(
    folder: Path, kind: Kind, record: Mapping[str, Any], write: Callable[[Path], Sequence[str]]
) -> None:
    """Write a whole folder, replacing one of the same kind: `write` fills it and names its files."""
    assert not set(record) & set(OWN_KEYS)
    folder = folder.resolve()  # a link keeps pointing at the place
    refuse_to_replace(folder, kind)
    try:
        with _swapped_in(folder) as beside:
            names = write(beside)
            files = {name: _fingerprint(beside / name) for name in sorted(names)}
            sealed = {"format": kind.format, "version": kind.version, **record, "files": files}
            sealed["seal"] = _seal(sealed)
            (beside / kind.manifest).write_text(_by_lines(sealed), encoding="utf-8")
            mode = (beside / kind.manifest).stat().st_mode & 0o777
            for name in names:
                (beside / name).chmod(mode)  # some writers make files that only their owner reads
            _flush([beside / kind.manifest, *(beside / name for name in names), beside])
    except OSError as error:
        raise UserError(
            f"{shown(folder)}: cannot write the {kind.noun} ({error.strerror or error})"
        ) from None


def open_sealed(folder: Path, kind: Kind, names: Callable[[dict[str, Any]], Sequence[str]]) -> dict[str, Any]:
    """The manifest of a folder of which every byte of the manifest and of the files in `names` is as written.

    `names` are the file names that a manifest implies; none is ever taken from the folder itself.
    """
    try:
        record = _manifest(folder, kind)
        for name in names(record):
            _refuse_changed(folder / name, record["files"].get(name))
    except OSError as error:
        raise UserError(f"{shown(folder)}: cannot read the {kind.noun} ({error.strerror or error})") from None
    return record


def is_sealed(folder: Path, kind: Kind) -> bool:
    """Whether the folder says it is of this kind."""
    try:
        return bool(_manifest_of_kind(folder, kind))
    except (UserError, OSError):
        return False


def names_sealed(folder: Path, kind: Kind) -> set[str]:
    """The files of a folder of this kind, its manifest among them; none if it says it is of another, or none."""
    try:
        files = _manifest_of_kind(folder, kind).get("files")
    except (UserError, OSError):
        return set()
    return {kind.manifest, *(files if isinstance(files, dict) else ())}


def _manifest(folder: Path, kind: Kind) -> dict[str, Any]:
    """The manifest, if its seal holds and this version of the program reads it."""
    record = _manifest_of_kind(folder, kind)
    place, version = shown(folder / kind.manifest), record.get("version")
    if type(version) is int and version > kind.version:
        found = f"found {version}, written by a newer autosf; update autosf"
        raise UserError(f"{place}: expected format version {kind.version} or older, {found}")
    if record.get("seal") != _seal(record) or type(version) is not int or version < 1:
        raise UserError(f"{place}: changed or damaged since it was written (its seal is broken); {MENDING}")
    files = record.get("files")
    if not isinstance(files, dict) or not all(isinstance(value, dict) for value in files.values()):
        raise UserError(f"{place}: expected the sizes and checksums of its files, found something else")
    return record


def _manifest_of_kind(folder: Path, kind: Kind) -> dict[str, Any]:
    """The JSON object of the manifest, if it names the format."""
    _refuse_absent(folder, kind)
    path = folder / kind.manifest
    if not path.is_file():
        raise UserError(f"{shown(folder)}: not a {kind.noun}: it has no {kind.manifest}")
    if path.stat().st_size > LARGEST_MANIFEST:
        raise UserError(f"{shown(path)}: expected at most {LARGEST_MANIFEST:,} bytes, found more")
    try:
        record = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", "not readable")
        raise UserError(f"{shown(path)}: expected JSON, found {reason}: truncated or damaged") from None
    if not isinstance(record, dict) or record.get("format") != kind.format:
        raise UserError(f"{shown(path)}: expected the format {quoted(kind.format)}: not a {kind.noun}")
    return record


def _refuse_absent(folder: Path, kind: Kind) -> None:
    if folder.is_dir():
        return
    if folder.exists():
        raise UserError(f"{shown(folder)}: expected a {kind.noun}, found a file")
    earlier = _set_aside(folder)
    hint = f"; an interrupted save left the earlier one as {shown(earlier)}" if earlier.is_dir() else ""
    raise UserError(f"{shown(folder)}: there is no such folder{hint}")


def _refuse_changed(path: Path, expected: Mapping[str, Any] | None) -> None:
    """Raise unless the file has the size and the digest of the manifest; the size is the cheaper one."""
    if expected is None or not path.is_file():
        raise UserError(f"{shown(path)}: missing; {MENDING}")
    size = path.stat().st_size
    if size != expected.get("bytes"):
        found = f"expected {expected.get('bytes')} bytes, found {size}: truncated or changed"
        raise UserError(f"{shown(path)}: {found}; {MENDING}")
    if _fingerprint(path) != expected:
        raise UserError(
            f"{shown(path)}: changed or damaged since it was written (SHA-256 differs); {MENDING}"
        )


def refuse_to_replace(folder: Path, kind: Kind) -> None:
    """Raise if something is there that is neither empty nor of the same kind."""
    refuse_here(folder)
    if not folder.exists() or is_sealed(folder, kind):
        return
    if not folder.is_dir():
        raise UserError(f"{shown(folder)}: expected a new folder for the {kind.noun}, found a file")
    if any(folder.iterdir()):
        raise UserError(f"{shown(folder)}: holds other files and no {kind.noun}; name a new folder")


@contextmanager
def _swapped_in(folder: Path) -> Iterator[Path]:
    """A temporary folder beside, which takes the folder's place at the end, or vanishes on an error.

    Files of the user's in the replaced folder move along. Killed between the two renames, the earlier folder
    lies whole under the name of `_set_aside`, and opening says so.
    """
    with folder_beside(folder) as beside:
        yield beside
        _swap(folder, beside)


def _swap(folder: Path, beside: Path) -> None:
    earlier = _set_aside(folder)
    replaces = folder.exists()
    if replaces:
        _take_along(earlier, folder)  # what an older crash left
        folder.rename(earlier)
    try:
        beside.rename(folder)
    except BaseException:
        if replaces:
            earlier.rename(folder)
        raise
    _take_along(earlier, folder)


def _take_along(earlier: Path, folder: Path) -> None:
    """Move what the new folder does not have, the user's files, into it; the rest of the earlier one is done."""
    if not earlier.is_dir():
        return
    for path in earlier.iterdir():
        if not (folder / path.name).exists():
            path.rename(folder / path.name)
    shutil.rmtree(earlier, ignore_errors=True)


def _set_aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name[:LONGEST_STEM]}.previous")


def _flush(paths: Sequence[Path]) -> None:
    """Hand the files to the disk before their folder gets its name."""
    for path in paths:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def _by_lines(record: Mapping[str, Any]) -> str:
    """The record as JSON, a line for each key: for people, too."""
    lines = (f" {json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in record.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _seal(record: Mapping[str, Any]) -> str:
    """SHA-256 of the record without its seal, whatever the order of keys and the spaces."""
    content = {key: value for key, value in record.items() if key != "seal"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
