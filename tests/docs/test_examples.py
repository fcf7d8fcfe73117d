"""What the documents show is what happens: their console and Python examples are run."""

import re
import shlex
from pathlib import Path

import pytest

from autosf.app.cli import run

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(language: str) -> list[pytest.param]:
    found = []
    for page in PAGES:
        for number, match in enumerate(FENCE.finditer(page.read_text(encoding="utf-8")), 1):
            if match[1] == language:
                found.append(pytest.param(match[2], id=f"{page.name}-{number}"))
    return found


def commands(block: str) -> list[tuple[str, str]]:
    """Each `$ command` of a console block with the output shown below it."""
    pieces = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


@pytest.mark.parametrize("block", examples("console"))
def test_console_examples(block, capfd, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for command, shown in commands(block):
        words = shlex.split(command)
        assert words[0] == "autosf", f"only autosf commands are shown with their output, found {command}"
        assert run(words[1:]) == 0
        printed = capfd.readouterr().out
        beginning, dots, _ = shown.partition("...\n")
        assert printed.startswith(beginning) if dots else printed.rstrip("\n") == shown.rstrip("\n")


@pytest.mark.filterwarnings("ignore:split the triples:UserWarning")
@pytest.mark.parametrize("block", examples("python"))
def test_python_examples(block, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "example", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
