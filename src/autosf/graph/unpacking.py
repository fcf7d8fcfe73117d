"""Files taken out of an archive that may be hostile: plain files only, inside the folder, bounded."""

from __future__ import annotations

import gzip
import lzma
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, TYPE_CHECKING

from autosf.errors import UserError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

LARGEST_UNPACKED = 8 * 2**30
MOST_MEMBERS = 10_000
BLOCK = 1 << 20


def unpack(
    archive: Path, wanted: Mapping[str, str], folder: Path, *, largest: int = LARGEST_UNPACKED
) -> None:
    """Write the wanted files of a tar (also compressed), zip or gz archive into `folder`.

    `wanted` is the name each file gets, and the end of its path in the archive; a gz file holds the only one.
    The whole archive is refused if any member has an absolute path, a `..`, is a link or a device, or if all
    members together unpack to more than `largest` bytes: such an archive is not what was published.
    """
    try:
        if zipfile.is_zipfile(archive):
            found = _from_zip(archive, wanted, folder, largest)
        elif tarfile.is_tarfile(archive):
            found = _from_tar(archive, wanted, folder, largest)
        else:
            found = _from_gzip(archive, wanted, folder, largest)
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        gzip.BadGzipFile,
        lzma.LZMAError,
        zlib.error,
        EOFError,
    ) as error:
        raise UserError(
            f"{archive.name}: expected a tar, zip or gz archive, found a damaged one ({error})"
        ) from error
    missing = [end for name, end in wanted.items() if name not in found]
    if missing:
        raise UserError(f"{archive.name}: expected a file {quoted(missing[0])}, found none")


def _from_tar(archive: Path, wanted: Mapping[str, str], folder: Path, largest: int) -> set[str]:
    """One pass over the stream. A header's size bounds its member's bytes, so headers can be summed."""
    found: set[str] = set()
    total = 0
    with tarfile.open(archive, "r|*") as members:
        for count, member in enumerate(members, 1):
            kind = "file" if member.isreg() else "folder" if member.isdir() else "link or device"
            _refuse_unsafe(archive, member.name, kind)
            total += member.size
            _refuse_large(archive, count, total, largest)
            name = _wanted_name(member.name, wanted)
            content = members.extractfile(member) if name and member.isreg() else None
            if name and content:
                _refuse_second(archive, name, found)
                _copy(content, folder / name, archive, largest)
                found.add(name)
    return found


def _from_zip(archive: Path, wanted: Mapping[str, str], folder: Path, largest: int) -> set[str]:
    found: set[str] = set()
    total = 0
    with zipfile.ZipFile(archive) as members:
        for count, member in enumerate(members.infolist(), 1):
            _refuse_unsafe(archive, member.filename, _zip_kind(member))
            total += member.file_size
            _refuse_large(archive, count, total, largest)
        for member in members.infolist():
            name = None if member.is_dir() else _wanted_name(member.filename, wanted)
            if name:
                _refuse_second(archive, name, found)
                with members.open(member) as content:
                    _copy(content, folder / name, archive, largest)
                found.add(name)
    return found


def _from_gzip(archive: Path, wanted: Mapping[str, str], folder: Path, largest: int) -> set[str]:
    if len(wanted) != 1:
        raise UserError(f"{archive.name}: expected a tar or zip archive, found a single file")
    (name,) = wanted
    if not archive.stat().st_size:
        raise EOFError("an empty file")
    with gzip.open(archive) as content:
        _copy(content, folder / name, archive, largest)
    return {name}


def _zip_kind(member: zipfile.ZipInfo) -> str:
    """The kind of a zip member by its Unix mode, where it has one."""
    kind = (member.external_attr >> 16) & 0o170000
    if kind not in (0, 0o100000, 0o040000):
        return "link or device"
    return "folder" if member.is_dir() else "file"


def _refuse_unsafe(archive: Path, path: str, kind: str) -> None:
    """Refuse what could write outside the folder, under the rules of any system."""
    posix, windows = PurePosixPath(path), PureWindowsPath(path)
    outside = windows.drive or windows.root or ".." in (*posix.parts, *windows.parts)
    if outside or "\0" in path:
        raise UserError(
            f"{archive.name}: expected paths inside the archive, found {quoted(path)}; nothing was unpacked"
        )
    if kind not in ("file", "folder"):
        raise UserError(
            f"{archive.name}: expected plain files, found a {kind} {quoted(path)}; nothing was unpacked"
        )


def _refuse_large(archive: Path, count: int, total: int, largest: int) -> None:
    if count > MOST_MEMBERS or total > largest:
        raise UserError(
            f"{archive.name}: expected at most {largest:,} bytes in {MOST_MEMBERS:,} files, found more; "
            "nothing was unpacked"
        )


def _refuse_second(archive: Path, name: str, found: set[str]) -> None:
    if name in found:
        raise UserError(f"{archive.name}: expected one file for {quoted(name)}, found two")


def _wanted_name(path: str, wanted: Mapping[str, str]) -> str | None:
    """The name that the member at `path` gets: the one whose wished path is the end of it, part by part."""
    parts = PurePosixPath(path).parts
    for name, end in wanted.items():
        tail = PurePosixPath(end).parts
        if parts[-len(tail) :] == tail:
            return name
    return None


def _copy(content: IO[bytes] | gzip.GzipFile, target: Path, archive: Path, largest: int) -> None:
    """Copy with the bound checked on the bytes themselves, not on what a header claims."""
    written = 0
    with target.open("xb") as file:
        while block := content.read(BLOCK):
            written += len(block)
            _refuse_large(archive, 1, written, largest)
            file.write(block)
