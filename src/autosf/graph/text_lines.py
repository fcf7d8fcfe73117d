"""Text files cut into records line by line: the exact, slow definition, which names the line at fault."""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

from autosf.errors import UserError, quoted, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = "\ufeff"
BLANKS = " \t"
DELIMITER_NAMES = {"\t": "tab", ",": "comma", ";": "semicolon", " ": "space"}
OTHER_MAGICS = {
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"BZh91AY&SY": "a bzip2 file; unpack it first",
    b"\xfd7zXZ": "an xz file; unpack it first",
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it first",
    b"PAR1\x15": "a parquet file; name it .parquet",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a line is cut: at each delimiter (at runs of them if it is a space); `quoted` fields as in CSV."""

    delimiter: str
    quoted: bool = False

    @property
    def stripped(self) -> bool:
        """Whether blanks around a field mean nothing, as people put one after a comma."""
        return self.quoted and self.delimiter in ",;"

    def describe(self, count: int) -> str:
        """`3 tab-separated fields`"""
        name = DELIMITER_NAMES.get(self.delimiter, quoted(self.delimiter))
        return f"{count} {name}-separated field{'s' if count != 1 else ''}"


class Record(NamedTuple):
    """One record's fields and the line it starts on, counted from 1."""

    line: int
    fields: list[str]


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, unpacked if they are gzip; every fault of the file itself is told by its name."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            if not packed:
                yield raw
                return
            with gzip.open(raw) as unpacked:
                yield unpacked  # type: ignore[misc]
    except EOFError:
        raise UserError(f"{shown(path)}: the gzip file is truncated; fetch or pack it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UserError(
            f"{shown(path)}: the gzip file is damaged ({error}); fetch or pack it again"
        ) from None
    except OSError as error:
        raise UserError(f"{shown(path)}: cannot be read: {error.strerror or error}") from None


def refuse_binary(path: Path) -> None:
    """Raise if the file is empty or not text, judged by its first bytes."""
    with opened(path) as stream:
        start = stream.read(8192)
    if not start:
        raise UserError(f"{shown(path)}: expected triples, found an empty file")
    for magic, what in OTHER_MAGICS.items():
        if start.startswith(magic):
            raise UserError(f"{shown(path)}: expected a text file, found {what}")
    if b"\0" in start:
        found = f"a zero byte at offset {start.index(0)}"
        raise UserError(f"{shown(path)}: expected a text file, found a binary one ({found})")


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line with its ending, the byte order mark removed."""
    with opened(path) as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                text = raw.decode()
            except UnicodeDecodeError as error:
                found = f"byte 0x{raw[error.start]:02x} at column {error.start + 1}"
                what_to_do = "save the file as UTF-8"
                raise UserError(
                    f"{shown(path)}:{number}: expected UTF-8 text, found {found}; {what_to_do}"
                ) from None
            yield number, text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text


def records(path: Path, dialect: Dialect) -> Iterator[Record]:
    """All records of a file; blank lines are passed over."""
    return cut(text_lines(path), dialect, path)


def cut(lines: Iterable[tuple[int, str]], dialect: Dialect, path: Path) -> Iterator[Record]:
    """The records that numbered lines make up in a dialect.

    As the fast reader has it, a carriage return at the end of any unquoted field is dropped, and so is a
    delimiter right at the end of the file: nobody means a label by them.
    """
    if dialect.quoted:
        yield from _cut_quoted(iter(lines), dialect, path)
        return
    for number, line in lines:
        text = line[:-1] if line.endswith("\n") else line.removesuffix(dialect.delimiter)
        fields = [field.removesuffix("\r") for field in text.split(dialect.delimiter)]
        if dialect.delimiter == " ":
            fields = [field for field in fields if field]
        if fields and fields != [""]:
            yield Record(number, fields)


def is_blank(text: str) -> bool:
    """Whether nothing but a line's end is left."""
    return text in ("", "\n", "\r\n", "\r")


def _cut_quoted(lines: Iterator[tuple[int, str]], dialect: Dialect, path: Path) -> Iterator[Record]:
    delimiter, blanks = dialect.delimiter, BLANKS if dialect.stripped else ""
    for number, line in lines:
        if is_blank(line.strip(blanks)):
            continue
        fields: list[str] = []
        current, place = line, 0
        while True:
            place = _after(blanks, current, place)
            if current.startswith('"', place):
                field, current, place = _quoted_field(current, place, number, lines, path)
                place = _after(blanks, current, place)
            else:
                end = current.find(delimiter, place)
                end = len(current.removesuffix("\n")) if end < 0 else end
                field, place = current[place:end].removesuffix("\r").rstrip(blanks), end
            fields.append(field)
            place += current.startswith(f"\r{delimiter}", place)
            if not current.startswith(delimiter, place) or current[place:] == delimiter:
                break
            place += 1
        if not is_blank(current[place:].removeprefix(delimiter)):
            found = quoted(current[place:].rstrip("\r\n"), longest=20)
            expected = "expected a delimiter or the line's end after a closing quote"
            advice = 'inside quotes write a quote as ""'
            if "\n" in field:
                advice = f"the quote that opens field {len(fields)} is not closed on its line; close it there"
            raise UserError(f"{shown(path)}:{number}: {expected}, found {found}; {advice}")
        yield Record(number, fields)


def _after(blanks: str, line: str, place: int) -> int:
    """The place after the blanks that stand at `place`, if any."""
    while line.startswith(tuple(blanks), place):
        place += 1
    return place


def _quoted_field(
    line: str, place: int, number: int, lines: Iterator[tuple[int, str]], path: Path
) -> tuple[str, str, int]:
    """The quoted field that opens at `place`, the line it ends on, and the place after its closing quote."""
    pieces, start = [], place + 1
    while True:
        close = line.find('"', start)
        if close < 0:
            pieces.append(line[start:])
            following = next(lines, None)
            if following is None:
                raise UserError(
                    f"{shown(path)}:{number}: a quote is opened and never closed; close or remove it"
                )
            line, start = following[1], 0
        elif line.startswith('"', close + 1):
            pieces.append(line[start : close + 1])
            start = close + 2
        else:
            pieces.append(line[start:close])
            return "".join(pieces), line, close + 1


def first_lines(path: Path, count: int = 100, size: int = 262_144) -> list[tuple[int, str]]:
    """The first lines, at least one: up to `count`, and no more after `size` characters."""
    found: list[tuple[int, str]] = []
    total = 0
    for number, line in text_lines(path):
        found.append((number, line))
        total += len(line)
        if len(found) == count or total > size:
            break
    return found


def line_where(path: Path, dialect: Dialect, wanted: Callable[[int, list[str]], bool]) -> int | None:
    """The line of the first record for which `wanted(index, fields)` holds, if any; the index is from 0."""
    found = (
        record.line for index, record in enumerate(records(path, dialect)) if wanted(index, record.fields)
    )
    return next(found, None)
