"""Well-known graphs from their public addresses: resumed, verified, complete or not at all."""

from __future__ import annotations

import glob
import hashlib
import http.client
import shutil
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import polars as pl

from autosf.errors import UserError
from autosf.graph.unpacking import unpack
from autosf.whole import folder_beside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from autosf.graph.registry import KnownGraph, Mirror

    Report = Callable[["Progress"], None]
    Pause = Callable[[float], None]

BLOCK = 1 << 18
LARGEST_DOWNLOAD = 4 * 2**30
ATTEMPTS = 4  # without a single byte gained; each gained byte starts the count anew
WORTH_RETRYING = {408, 416, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Progress:
    """What has come of one address: bytes so far and, where the server tells, bytes in all."""

    address: str
    done: int
    total: int | None


class _UnusableError(Exception):
    """This address will not give the file, however often it is asked; the next one may."""


class _BrokenError(Exception):
    """The connection ended early or could not be made; asking again may help."""


def get_graph(graph: KnownGraph, folder: Path, *, report: Report, pause: Pause) -> Path:
    """`folder` with the graph's train.txt, valid.txt and test.txt, verified; downloaded if need be.

    `pause(seconds)` waits between attempts. What was downloaded stays in a `.partial` file beside and is
    taken up again by the next call; `folder` itself appears complete or not at all.
    """
    if folder.is_dir() and not faults(graph, folder):
        return folder
    reasons = []
    with _writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        for mirror in graph.mirrors:
            try:
                _get_from(graph, mirror, folder, report, pause)
                _forget_partials(folder)
                return folder
            except (_UnusableError, UserError) as error:
                reasons.append(f"{_host(mirror)}: {error}")
    raise UserError(
        f"{graph.name}: could not be downloaded; {'; '.join(reasons)}. "
        f"Put train.txt, valid.txt and test.txt into {folder} by hand, or try again later"
    )


def _get_from(graph: KnownGraph, mirror: Mirror, folder: Path, report: Report, pause: Pause) -> None:
    """Download, unpack and verify beside `folder`, then rename; what was resumed wrongly is fetched anew."""
    addresses = [mirror.archive] if mirror.archive else list(mirror.files.values())
    downloads = {address: _partial(address, folder) for address in addresses}
    for again in (False, True):
        resumed = any(path.exists() for path in downloads.values())
        for address, path in downloads.items():
            fetch(address, path, report=report, pause=pause)
        try:
            with folder_beside(folder) as beside:
                _place(mirror, downloads, beside)
                wrong = faults(graph, beside)
                if not wrong:
                    _rename(beside, folder)
                    return
        except UserError as error:
            wrong = str(error)
        finally:
            for path in downloads.values():
                path.unlink(missing_ok=True)
        if again or not resumed:
            break
    raise _UnusableError(wrong)


def _place(mirror: Mirror, downloads: dict[str, Path], beside: Path) -> None:
    """The three split files in `beside`, from the archive or as they came."""
    if mirror.archive:
        wanted = {f"{split}.txt": name for split, name in mirror.files.items()}
        unpack(downloads[mirror.archive], wanted, beside)
        return
    for split, address in mirror.files.items():
        if urlsplit(address).path.endswith(".gz"):
            unpack(downloads[address], {f"{split}.txt": split}, beside)
        else:
            shutil.copyfile(downloads[address], beside / f"{split}.txt")


def _rename(beside: Path, folder: Path) -> None:
    """Put `beside` in the place of `folder`; what was there, faulty or somebody's own, stays as NAME.previous."""
    if folder.exists():
        names = (f"{folder.name}.previous{number or ''}" for number in count())
        folder.rename(next(path for path in map(folder.with_name, names) if not path.exists()))
    beside.rename(folder)


def faults(graph: KnownGraph, folder: Path) -> str:
    """What is wrong with a copy of the graph, in one line, or nothing: hashes where known, counts always."""
    for split, lines in graph.sizes.items():
        path = folder / f"{split}.txt"
        if not path.is_file():
            return f"{split}.txt: expected a file, found none"
        if graph.algorithm and _digest(path, graph.algorithm) != graph.hashes[split]:
            return (
                f"{split}.txt: expected {graph.algorithm} {graph.hashes[split][:12]}..., found other content"
            )
        found = _count_lines(path)
        if found != lines:
            return f"{split}.txt: expected {lines:,} triples, found {found:,}"
    return _wrong_vocabulary(graph, folder)


def _wrong_vocabulary(graph: KnownGraph, folder: Path) -> str:
    try:
        columns = pl.concat(_columns(folder / f"{split}.txt") for split in graph.sizes)
    except pl.exceptions.PolarsError as error:
        return f"expected three tab-separated columns, found others ({str(error).splitlines()[0]})"
    if columns.null_count().sum_horizontal().item():
        return "expected three tab-separated columns, found a shorter line"
    entities = pl.concat([columns["head"], columns["tail"]]).n_unique()
    relations = columns["relation"].n_unique()
    if (entities, relations) == (graph.entities, graph.relations):
        return ""
    return (
        f"expected {graph.entities:,} entities and {graph.relations:,} relations, "
        f"found {entities:,} and {relations:,}"
    )


def _columns(path: Path) -> pl.DataFrame:
    names = ["head", "relation", "tail"]
    return pl.read_csv(
        path, separator="\t", has_header=False, new_columns=names, infer_schema=False, quote_char=None
    )


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())


def fetch(
    address: str,
    target: Path,
    *,
    report: Report,
    pause: Pause,
    timeout: float = 30.0,
    largest: int = LARGEST_DOWNLOAD,
) -> None:
    """Download into `target`, going on from what is there; asked again, with growing pauses, if it breaks."""
    if urlsplit(address).scheme not in ("http", "https"):
        raise _UnusableError(f"expected an http or https address, found {address}")
    failures = 0
    while True:
        before = _size(target)
        try:
            return _fetch_once(address, target, report, timeout, largest)
        except _BrokenError as error:
            failures = 1 if _size(target) > before else failures + 1
            if failures >= ATTEMPTS:
                raise _UnusableError(f"{error} ({failures} attempts)") from error
            pause(2.0**failures / 2)


def _fetch_once(address: str, target: Path, report: Report, timeout: float, largest: int) -> None:
    """One request: 206 goes on where `target` ends, 200 starts over."""
    have = _size(target)
    response = _response(address, target, have, timeout)
    if response is None:
        return
    with response:
        headers = response.headers
        resumed = response.status == 206
        if resumed and _range_start(headers.get("Content-Range")) != have:
            target.unlink()
            raise _BrokenError("the server sent another part than asked for")
        start = have if resumed else 0
        length = headers.get("Content-Length", "")
        total = start + int(length) if length.isdigit() else None
        _receive(response, target, Progress(address, start, total), report, largest)


def _response(address: str, target: Path, have: int, timeout: float) -> http.client.HTTPResponse | None:
    """The server's answer to a request for all after the first `have` bytes; None if there are no more."""
    request = urllib.request.Request(address, headers={"User-Agent": "autosf"})  # noqa: S310 - scheme checked
    if have:
        request.add_header("Range", f"bytes={have}-")
    with _network():
        try:
            return cast("http.client.HTTPResponse", urllib.request.urlopen(request, timeout=timeout))  # noqa: S310
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 416 and error.headers.get("Content-Range") == f"bytes */{have}":
                    return None
                if error.code == 416:
                    target.unlink(missing_ok=True)  # what we have is of something else
                if error.code in WORTH_RETRYING:
                    raise _BrokenError(f"HTTP {error.code}") from error
                raise _UnusableError(f"HTTP {error.code}") from error


def _receive(
    response: http.client.HTTPResponse, target: Path, begun: Progress, report: Report, largest: int
) -> None:
    """Append or write the body, checking that all of it came and that it stays within bounds."""
    done = begun.done
    with target.open("ab" if done else "wb") as file:
        while True:
            report(Progress(begun.address, done, begun.total))
            with _network():
                block = response.read(BLOCK)
            if not block:
                break
            done += len(block)
            if done > largest:
                raise _UnusableError(f"expected at most {largest:,} bytes, found more")
            file.write(block)
    if begun.total is not None and done < begun.total:
        raise _BrokenError(f"the connection broke after {done:,} of {begun.total:,} bytes")


def _range_start(content_range: str | None) -> int | None:
    """17 of `bytes 17-99/100`."""
    start = (content_range or "").removeprefix("bytes ").partition("-")[0]
    return int(start) if start.isdigit() else None


@contextmanager
def _network() -> Iterator[None]:
    """Whatever the network throws, as one error; errors of our own disk do not pass through here."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise _BrokenError(
            f"no connection ({reason})" if isinstance(error, urllib.error.URLError) else str(reason)
        ) from error


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A full or forbidden disk is the user's to mend."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{error.filename or folder}: cannot be written ({error.strerror or error})"
        ) from error


def _partial(address: str, folder: Path) -> Path:
    """Where an address is downloaded to: its own file, so that two mirrors never mix."""
    mark = hashlib.sha256(address.encode()).hexdigest()[:8]
    return folder.parent / f".{folder.name}-{mark}.partial"


def _forget_partials(folder: Path) -> None:
    """Remove what other mirrors left unfinished."""
    for path in folder.parent.glob(f".{glob.escape(folder.name)}-*.partial"):
        path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _host(mirror: Mirror) -> str:
    return urlsplit(mirror.archive or next(iter(mirror.files.values()))).netloc
