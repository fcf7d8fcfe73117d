"""Downloads against a server on the loopback that does what servers do on bad days, and hostile archives."""

import gzip
import hashlib
import io
import shutil
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from autosf.errors import UserError
from autosf.graph import unpacking
from autosf.graph.download import ATTEMPTS, Progress, faults, fetch, get_graph
from autosf.graph.registry import KnownGraph, Mirror
from autosf.graph.unpacking import unpack

TRAIN = "".join(f"a{i}\tlikes\ta{i + 1}\n" for i in range(3000)).encode()
VALID = b"a0\tlikes\ta2\n"
TEST = b"a1\tlikes\ta3\n"
CONTENT = {"train": TRAIN, "valid": VALID, "test": TEST}


@dataclass
class Server:
    """Files by path, and what goes wrong: each path's list of deeds is worked off, one a request."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    deeds: dict[str, list[str]] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def url(self, path: str) -> str:
        return f"{self.address}/{path}"


def handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            wanted_range = self.headers.get("Range")
            server.requests.append((name, wanted_range))
            deeds = server.deeds.get(name, [])
            deed = deeds.pop(0) if deeds else "serve"
            if name not in server.files or deed.isdigit():
                return self.send_error(int(deed) if deed.isdigit() else 404)
            return self.answer(server.files[name], wanted_range, deed)

        def answer(self, body: bytes, wanted_range: str | None, deed: str) -> None:
            start = int(wanted_range.removeprefix("bytes=").rstrip("-")) if wanted_range else 0
            if deed == "ignore range":
                start = 0
            if start >= len(body):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(body)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206 if start else 200)
            if start:
                told = start + 1 if deed == "another part" else start
                self.send_header("Content-Range", f"bytes {told}-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body) - start))
            self.end_headers()
            rest = body[start:]
            self.wfile.write(rest[: len(rest) // 2] if deed == "break" else rest)
            return None

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server("")
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler(state))
    state.address = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


def serve_files(server: Server, folder: str = "good") -> Mirror:
    files = {split: f"{folder}/{split}.txt" for split in CONTENT}
    server.files |= {path: CONTENT[split] for split, path in files.items()}
    return Mirror(None, {split: server.url(path) for split, path in files.items()})


def serve_archive(server: Server, name: str, archive: bytes) -> Mirror:
    server.files[name] = archive
    return Mirror(server.url(name), {split: f"data/{split}.txt" for split in CONTENT})


def known(*mirrors: Mirror, **other: object) -> KnownGraph:
    facts = {
        "name": "Tiny",
        "other_names": (),
        "entities": 3001,
        "relations": 1,
        "sizes": {"train": 3000, "valid": 1, "test": 1},
        "licence": "none",
        "source": "here",
        "unverified": None,
        "algorithm": "sha256",
        "hashes": {split: hashlib.sha256(content).hexdigest() for split, content in CONTENT.items()},
        "mirrors": mirrors,
    }
    return KnownGraph(**(facts | other))


@dataclass
class Watch:
    """What a download reported, and how long it would have waited."""

    progress: list[Progress] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)


def got(graph: KnownGraph, folder: Path, watch: Watch | None = None) -> Path:
    watch = watch or Watch()
    return get_graph(graph, folder, report=watch.progress.append, pause=watch.pauses.append)


def assert_complete(folder: Path) -> None:
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        f"{split}.txt": content for split, content in CONTENT.items()
    }
    assert [path.name for path in folder.parent.iterdir()] == [folder.name], "nothing else is left behind"


def tar_of(
    files: dict[str, bytes], mode: str = "w:gz", change: Callable[[tarfile.TarFile], None] | None = None
):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        if change:
            change(archive)
    return buffer.getvalue()


def zip_of(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


GOOD_FILES = {f"data/{split}.txt": content for split, content in CONTENT.items()}
WANTED = {"train.txt": "data/train.txt"}


def test_three_files_arrive_whole_and_progress_reaches_the_end(server: Server, tmp_path: Path):
    watch = Watch()
    assert_complete(got(known(serve_files(server)), tmp_path / "Tiny", watch))
    last = {step.address: step for step in watch.progress}
    assert sorted(step.done for step in last.values()) == sorted(map(len, CONTENT.values()))
    assert all(step.done == step.total for step in last.values())
    assert watch.pauses == []


@pytest.mark.parametrize(
    ("name", "archive"),
    [
        ("a.tar.gz", tar_of(GOOD_FILES)),
        ("a.tar", tar_of(GOOD_FILES, "w")),
        ("a.tgz?x=1", tar_of(GOOD_FILES, "w:xz")),
        ("a.zip", zip_of(GOOD_FILES)),
        ("deep.zip", zip_of({f"deep/er/{name}": content for name, content in GOOD_FILES.items()})),
    ],
)
def test_an_archive_is_unpacked(server: Server, tmp_path: Path, name: str, archive: bytes):
    assert_complete(got(known(serve_archive(server, name, archive)), tmp_path / "Tiny"))


def test_single_gz_files_are_unpacked(server: Server, tmp_path: Path):
    server.files = {f"{split}.txt.gz": gzip.compress(content) for split, content in CONTENT.items()}
    mirror = Mirror(None, {split: server.url(f"{split}.txt.gz") for split in CONTENT})
    assert_complete(got(known(mirror), tmp_path / "Tiny"))


def test_a_broken_connection_is_resumed_where_it_broke(server: Server, tmp_path: Path):
    mirror = serve_files(server)
    server.deeds["good/train.txt"] = ["break", "break"]
    watch = Watch()
    assert_complete(got(known(mirror), tmp_path / "Tiny", watch))
    ranges = [asked for path, asked in server.requests if path == "good/train.txt"]
    half = len(TRAIN) // 2
    assert ranges == [None, f"bytes={half}-", f"bytes={half + (len(TRAIN) - half) // 2}-"]
    assert watch.pauses == [1.0, 1.0], "each gained byte starts the count anew"


def test_a_server_that_ignores_ranges_is_read_from_the_start(server: Server, tmp_path: Path):
    mirror = serve_files(server)
    server.deeds["good/train.txt"] = ["break", "ignore range"]
    assert_complete(got(known(mirror), tmp_path / "Tiny"))


def test_another_part_than_asked_for_is_thrown_away(server: Server, tmp_path: Path):
    mirror = serve_files(server)
    server.deeds["good/train.txt"] = ["break", "another part"]
    assert_complete(got(known(mirror), tmp_path / "Tiny"))
    asked = [wanted for path, wanted in server.requests if path == "good/train.txt"]
    assert asked == [None, f"bytes={len(TRAIN) // 2}-", None]


def test_the_next_call_takes_up_what_an_interrupted_one_left(server: Server, tmp_path: Path):
    mirror = serve_files(server)
    server.deeds["good/train.txt"] = ["break"]

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_graph(known(mirror), tmp_path / "Tiny", report=lambda _: None, pause=interrupted)
    assert not (tmp_path / "Tiny").exists()
    assert [path.suffix for path in tmp_path.iterdir()] == [".partial"]
    assert_complete(got(known(mirror), tmp_path / "Tiny"))
    assert ("good/train.txt", f"bytes={len(TRAIN) // 2}-") in server.requests


def test_a_resumed_file_that_proves_wrong_is_fetched_anew(server: Server, tmp_path: Path):
    mirror = serve_files(server)
    server.deeds["good/train.txt"] = ["break"]
    with pytest.raises(ZeroDivisionError):
        get_graph(known(mirror), tmp_path / "Tiny", report=lambda _: None, pause=lambda _: 1 / 0)
    (partial,) = tmp_path.glob("*.partial")
    partial.write_bytes(b"x" * partial.stat().st_size)
    assert_complete(got(known(mirror), tmp_path / "Tiny"))


@pytest.mark.parametrize("extra", [0, 7])
def test_a_partial_as_long_as_the_file_or_longer_is_settled(server: Server, tmp_path: Path, extra: int):
    server.files["f"] = TRAIN
    target = tmp_path / "f.partial"
    target.write_bytes(TRAIN + b"x" * extra)
    fetch(server.url("f"), target, report=lambda _: None, pause=lambda _: None)
    assert target.read_bytes() == TRAIN
    assert len(server.requests) == (2 if extra else 1)


def test_a_busy_server_is_asked_again_with_growing_pauses(server: Server, tmp_path: Path):
    mirror = serve_files(server)
    server.deeds["good/valid.txt"] = ["503", "429"]
    watch = Watch()
    assert_complete(got(known(mirror), tmp_path / "Tiny", watch))
    assert watch.pauses == [1.0, 2.0]


def test_a_missing_file_is_not_asked_for_twice_but_the_next_mirror_is(server: Server, tmp_path: Path):
    gone = Mirror(None, {split: server.url(f"gone/{split}.txt") for split in CONTENT})
    assert_complete(got(known(gone, serve_files(server)), tmp_path / "Tiny"))
    assert [path for path, _ in server.requests].count("gone/train.txt") == 1


def test_wrong_bytes_are_refused_and_the_next_mirror_is_tried(server: Server, tmp_path: Path):
    wrong = serve_files(server, "wrong")
    server.files["wrong/test.txt"] = TEST.replace(b"a3", b"a4")
    assert_complete(got(known(wrong, serve_files(server)), tmp_path / "Tiny"))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (TRAIN + b"x\ty\tz\n", "expected 3,000 triples, found 3,001"),
        (TRAIN.replace(b"a17\t", b"b17\t"), "expected 3,001 entities and 1 relations, found 3,002 and 1"),
        (TRAIN.replace(b"\ta17\n", b"\n"), "expected three tab-separated columns"),
    ],
)
def test_without_a_published_hash_the_counts_decide(
    server: Server, tmp_path: Path, content: bytes, told: str
):
    mirror = serve_files(server)
    server.files["good/train.txt"] = content
    graph = known(mirror, algorithm=None, hashes={})
    with pytest.raises(UserError, match=told):
        got(graph, tmp_path / "Tiny")
    server.files["good/train.txt"] = TRAIN
    assert_complete(got(graph, tmp_path / "Tiny"))


def test_when_no_mirror_helps_one_line_says_why_and_nothing_is_left(server: Server, tmp_path: Path):
    gone = Mirror(None, {split: server.url(f"gone/{split}.txt") for split in CONTENT})
    wrong = serve_files(server, "wrong")
    server.files["wrong/train.txt"] = b"<html>Sign in</html>"
    refused = Mirror(None, dict.fromkeys(CONTENT, "http://127.0.0.1:9/nobody.txt"))
    watch = Watch()
    with pytest.raises(UserError) as error:
        got(known(gone, wrong, refused), tmp_path / "Tiny", watch)
    message = str(error.value)
    assert "Tiny: could not be downloaded" in message
    assert "HTTP 404" in message
    assert "train.txt: expected sha256" in message
    assert f"({ATTEMPTS} attempts)" in message
    assert "\n" not in message
    assert len(watch.pauses) == ATTEMPTS - 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/etc/passwd"])
def test_only_web_addresses_are_followed(tmp_path: Path, address: str):
    graph = known(Mirror(None, dict.fromkeys(CONTENT, address)))
    with pytest.raises(UserError, match="expected an http or https address"):
        got(graph, tmp_path / "Tiny")


def test_a_file_larger_than_allowed_is_given_up(server: Server, tmp_path: Path):
    server.files["f"] = TRAIN
    with pytest.raises(Exception, match="expected at most 100 bytes"):
        fetch(server.url("f"), tmp_path / "f", report=lambda _: None, pause=lambda _: None, largest=100)


def test_a_good_copy_is_not_downloaded_again_and_a_damaged_one_is_replaced(server: Server, tmp_path: Path):
    graph = known(serve_files(server))
    got(graph, tmp_path / "Tiny")
    asked = len(server.requests)
    got(graph, tmp_path / "Tiny")
    assert len(server.requests) == asked
    (tmp_path / "Tiny" / "test.txt").write_bytes(b"")
    assert faults(graph, tmp_path / "Tiny")
    got(graph, tmp_path / "Tiny")
    previous = tmp_path / "Tiny.previous"
    assert (previous / "test.txt").read_bytes() == b"", "it may have been somebody's own"
    shutil.rmtree(previous)
    assert_complete(tmp_path / "Tiny")


def test_a_folder_that_cannot_be_made_is_the_users_to_mend(server: Server, tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="cannot be written"):
        got(known(serve_files(server)), tmp_path / "file" / "Tiny")


def add_link(kind: bytes, target: str) -> Callable[[tarfile.TarFile], None]:
    def change(archive: tarfile.TarFile) -> None:
        member = tarfile.TarInfo("data/link")
        member.type, member.linkname = kind, target
        archive.addfile(member)

    return change


def zip_with_link() -> bytes:
    buffer = io.BytesIO(zip_of(GOOD_FILES))
    with zipfile.ZipFile(buffer, "a") as archive:
        member = zipfile.ZipInfo("data/link")
        member.external_attr = 0o120777 << 16
        archive.writestr(member, "/etc/passwd")
    return buffer.getvalue()


HOSTILE = {
    "traversal.tar": tar_of(GOOD_FILES | {"../evil.txt": b"x"}),
    "traversal in the middle.tar": tar_of(GOOD_FILES | {"data/../../evil.txt": b"x"}),
    "traversal of a wanted file.tar": tar_of({"../data/train.txt": TRAIN}),
    "absolute.tar": tar_of(GOOD_FILES | {"/tmp/evil.txt": b"x"}),
    "symbolic link.tar": tar_of(GOOD_FILES, change=add_link(tarfile.SYMTYPE, "/etc/passwd")),
    "hard link.tar": tar_of(GOOD_FILES, change=add_link(tarfile.LNKTYPE, "data/train.txt")),
    "device.tar": tar_of(GOOD_FILES, change=add_link(tarfile.CHRTYPE, "")),
    "pipe.tar": tar_of(GOOD_FILES, change=add_link(tarfile.FIFOTYPE, "")),
    "traversal.zip": zip_of(GOOD_FILES | {"../evil.txt": b"x"}),
    "absolute.zip": zip_of(GOOD_FILES | {"/tmp/evil.txt": b"x"}),
    "drive.zip": zip_of(GOOD_FILES | {"C:/evil.txt": b"x"}),
    "backslash.zip": zip_of(GOOD_FILES | {"..\\evil.txt": b"x"}),
    "link.zip": zip_with_link(),
    "two files.tar": tar_of({"data/train.txt": b"1", "more/data/train.txt": b"2"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing(server: Server, tmp_path: Path, name: str):
    cache = tmp_path / "cache"
    mirror = serve_archive(server, "evil", HOSTILE[name])
    with pytest.raises(UserError, match=r"expected (paths inside|plain files|one file)") as error:
        got(known(mirror), cache / "Tiny")
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["cache"]


@pytest.mark.parametrize(
    "bomb",
    [
        tar_of({"data/train.txt": b"\0" * 3_000_000}),
        tar_of({"data/other.txt": b"\0" * 3_000_000, "data/train.txt": b"x"}),
        zip_of({"data/train.txt": b"\0" * 3_000_000}),
        zip_of({f"{i}.txt": b"\0" * 300_000 for i in range(10)}),
        gzip.compress(b"a\tb\tc\n" * 500_000),
    ],
    ids=["tar", "unwanted in tar", "zip", "many in zip", "gz"],
)
def test_a_bomb_is_stopped(tmp_path: Path, bomb: bytes):
    assert len(bomb) < 20_000
    (tmp_path / "bomb").write_bytes(bomb)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(UserError, match="expected at most 1,000,000 bytes"):
        unpack(tmp_path / "bomb", WANTED, out, largest=1_000_000)
    assert sum(path.stat().st_size for path in out.iterdir()) <= 1_000_000


def test_a_zip_that_lies_about_a_size_writes_no_more_than_it_says(tmp_path: Path):
    honest = zip_of({"data/train.txt": b"\0" * 3_000_000})
    lying = honest.replace((3_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    (tmp_path / "lying.zip").write_bytes(lying)
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match="damaged"):
        unpack(tmp_path / "lying.zip", WANTED, tmp_path / "out", largest=1_000_000)
    assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) <= 1_000_000


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unpacking, "MOST_MEMBERS", 2)
    (tmp_path / "a.zip").write_bytes(zip_of(GOOD_FILES))
    with pytest.raises(UserError, match="in 2 files"):
        unpack(tmp_path / "a.zip", WANTED, tmp_path)


@pytest.mark.parametrize(
    "damaged",
    [b"", b"<html></html>", tar_of(GOOD_FILES)[:-200], gzip.compress(TRAIN)[:-20], zip_of(GOOD_FILES)[:-40]],
    ids=["empty", "a page", "cut tar", "cut gz", "cut zip"],
)
def test_a_damaged_archive_is_told_in_one_line(tmp_path: Path, damaged: bytes):
    (tmp_path / "a.tar.gz").write_bytes(damaged)
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match=r"a\.tar\.gz: expected") as error:
        unpack(tmp_path / "a.tar.gz", WANTED, tmp_path / "out")
    assert "\n" not in str(error.value)


def test_a_missing_member_is_named(tmp_path: Path):
    (tmp_path / "a.zip").write_bytes(zip_of({"train.txt": b"x"}))
    with pytest.raises(UserError, match=r'expected a file "data/train.txt", found none'):
        unpack(tmp_path / "a.zip", WANTED, tmp_path)
