"""`autosf serve` says where it is as soon as it listens, and tells mistakes in one line."""

import json
import signal
import subprocess
import sys
import urllib.request

import pytest

from autosf.app.cli import run
from autosf.embedding.model_folder import save_model


@pytest.fixture
def model(trained, tmp_path):
    return str(save_model(tmp_path / "model", trained))


def test_it_listens_when_it_says_so_and_ends_with_ctrl_c(model):
    command = [sys.executable, "-m", "autosf", "serve", model, "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        url = json.loads(process.stdout.readline())["url"]
        assert url.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(url + "api/health", timeout=10) as answer:
            assert json.load(answer) == {"status": "ok"}
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err.strip()) == (130, "autosf: interrupted")


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
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["serve", model, "--port", str(port)]) == 2
    assert f"127.0.0.1:{port}: cannot listen there" in capfd.readouterr().err
