"""TAB in a shell completes commands, options and the names of what is there."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autosf.app.cli import autosf as command_group
from autosf.app.cli import run
from autosf.app.completing import SHELLS, VARIABLE, script


def completed(place: Path, line: str) -> list[str]:
    """What bash is offered after `line`, which begins with autosf; the type of each, if it is not plain."""
    words = line.split(" ")
    asked = {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1), VARIABLE: "bash_complete"}
    environment = {
        "PYTHONPATH": ":".join(sys.path),
        "HOME": str(place),
        "AUTOSF_DATA": str(place / "graphs"),
        **asked,
    }
    command = [sys.executable, "-m", "autosf"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place, env=environment)
    items = [item.split(",", 1) for item in done.stdout.splitlines() if item]
    return [value if kind == "plain" else f"({kind})" for kind, value in items]


@pytest.fixture
def place(tmp_path):
    """A folder with a graph, a graph beside, a run with its model, and a model."""
    for folder in ("graphs/Rivers", "roads"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "train.tsv").touch()
    for file in ("found/run.json", "found/model/model.json", "deep/vectors/model.json", "odd\nname/run.json"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("autosf lea", ["leaderboard"]),
        ("autosf search x --bud", ["--budget"]),
        ("autosf show comp", ["complex"]),
        ("autosf train r", ["Rivers", "roads"]),
        ("autosf data stats ri", ["Rivers"]),
        ("autosf train x --structure fo", ["found"]),
        ("autosf resume ", ["found"]),
        ("autosf predict ", ["deep/vectors", "found"]),
        ("autosf data stats /", ["(file)"]),
        ("autosf evaluate elsewhere", ["(dir)"]),
    ],
)
def test_a_shell_is_offered_what_fits(place, line, offers):
    assert completed(place, line) == offers


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_the_shells_own(shell, capfd):
    assert run(["completion", shell]) == 0
    out = capfd.readouterr().out
    assert out == script(command_group, shell)
    assert f"{VARIABLE}={shell}_complete" in out
    assert run(["completion", shell, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {"shell": shell, "script": out}


def test_without_a_shell_it_is_the_one_in_use(capfd, monkeypatch):
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert run(["completion"]) == 0
    assert capfd.readouterr().out.startswith("#compdef autosf")
    monkeypatch.setenv("SHELL", "/bin/ed")
    assert run(["completion"]) == 2
    assert (
        capfd.readouterr().err
        == "autosf: which shell? expected one of bash, zsh, fish (see: autosf completion --help)\n"
    )


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_itself_completes_with_the_script(place):
    (place / "completion").write_text(script(command_group, "bash"), encoding="utf-8")
    (place / "bin").mkdir()
    (place / "bin" / "autosf").write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -m autosf "$@"\n', encoding="utf-8"
    )
    (place / "bin" / "autosf").chmod(0o755)
    typed = 'COMP_WORDS=(autosf resume ""); COMP_CWORD=2; _autosf_completion autosf; echo "${COMPREPLY[@]}"'
    path = f"{place / 'bin'}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", f". ./completion; {typed}"],
        capture_output=True, text=True, check=True, cwd=place,
        env={"PATH": path, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.stdout == "found\n"
