"""The examples of the page "Your own data" run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from autosf.app.commands.data import data

PAGE = Path(__file__).parents[2] / "docs" / "your-own-data.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python_examples_run(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(code, PAGE.name, "exec"), {})


def test_shell_examples_run_in_the_order_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for code in PYTHON:
        exec(compile(code, PAGE.name, "exec"), {})
    rows = [f"e{a}\tr{(a + b) % 3}\te{b}\n" for a in range(20) for b in range(20)]
    Path("all-triples.tsv").write_text("".join(rows))
    for language, block in BLOCKS:
        if language == "sh":
            for line in block.splitlines():
                program, group, *arguments = shlex.split(line)
                assert (program, group) == ("autosf", "data")
                data.main(arguments, standalone_mode=False)
                assert capsys.readouterr().out


def test_every_option_is_told():
    import inspect

    from autosf.graph.reading import read_graph

    options = set(inspect.signature(read_graph).parameters) - {"source", "name", "search_path"}
    assert all(f"`{option}`" in PAGE.read_text(encoding="utf-8") for option in options)
