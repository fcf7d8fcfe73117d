"""`autosf serve` says where it is as soon as it listens, and tells mistakes in one line."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from autosf.app.cli import run
from autosf.embedding.model_folder import save_model


@pytest.fixture
def model(trained, tmp_path):
    return str(save_model(tmp_path / "model", trained))


@contextmanager
def served(*arguments: str):
    """The URL of a server, and its process, which Ctrl-C ends."""
    command = [sys.executable, "-m", "autosf", "serve", *arguments, "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield json.loads(process.stdout.readline())["url"], process
    finally:
        process.send_signal(signal.SIGINT)
        process.err = process.communicate(timeout=60)[1]


def test_it_listens_when_it_says_so_and_ends_with_ctrl_c(model):
    with served(model) as (url, process):
        assert url.startswith("http://127.0.0.1:")
        with urlopen(url + "api/health", timeout=60) as answer:
            assert json.load(answer) == {"status": "ok"}
    assert (process.returncode, process.err.strip()) == (130, "autosf: interrupted")


@pytest.mark.slow
def test_elsewhere_than_here_a_token_is_made_and_headers_have_an_end(model):
    with served(model, "--host", "0.0.0.0") as (url, _):
        address, token = url.split("?token=")
        port = address.rstrip("/").rpartition(":")[2]
        health = f"http://127.0.0.1:{port}/api/health"
        with pytest.raises(HTTPError, match="401"):
            urlopen(health, timeout=60)
        with urlopen(Request(health, headers={"Authorization": f"Bearer {token}"}), timeout=60) as answer:
            assert json.load(answer) == {"status": "ok"}
        with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as endless:
            endless.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 100_000)
            assert b"400" in endless.recv(100)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "70000"], "--port"),
        (["--host", "no.such.host.invalid"], "cannot listen there"),
        (["--token", "short"], "--token: expected at least 8"),
        (["--graph", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_told_in_one_line(model, capfd, options, message):
    assert run(["serve", model, *options]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n"), message in err) == ("", 1, True)


def test_a_folder_of_something_else_is_refused(tmp_path, capfd):
    assert run(["serve", str(tmp_path)]) == 2
    assert str(tmp_path) in capfd.readouterr().err


def test_a_port_in_use_is_told_with_what_to_do(model, capfd):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", model, "--port", str(port)]) == 2
    assert f"127.0.0.1:{port}: cannot listen there" in capfd.readouterr().err


def test_without_the_extra_one_is_told_what_to_install(model, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert run(["serve", model]) == 2
    assert 'pip install "autosf[web]"' in capfd.readouterr().err
