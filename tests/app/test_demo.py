"""The demo does the main job, offline, in the time it says."""

import io
import json
import sys
import time

import pytest
from rich.console import Console

from autosf.app.cli import run
from autosf.app.commands.demo import demo_graph, told


@pytest.mark.slow
def test_the_demo_finds_a_structure_compares_it_with_what_people_designed_and_tells_of_it(capfd, tmp_path):
    began = time.monotonic()
    assert run(["demo", "--budget", "45s", "--out", str(tmp_path / "run"), "--json"]) == 0
    assert time.monotonic() - began < 120
    result = json.loads(capfd.readouterr().out)
    humans = {row["names"][0] for row in result["human_designed"]}
    assert humans == {"distmult", "complex", "analogy", "simple", "quate"}
    assert result["best"]["valid_mrr"] >= result["best"]["human"]["valid_mrr"]
    assert result["best"]["seeds"] == 3
    assert len(result["new_facts"]) == 3
    out = Console(file=io.StringIO(), width=120)
    out.print(*told(demo_graph()[1], result), sep="\n")
    shown = out.file.getvalue()
    assert shown.startswith("UMLS: 135 medical terms, 46 relations")
    assert "validation MRR 0." in shown
    assert "    ComplEx    0." in shown
    assert "the winner believes most" in shown
    assert run(["resume", str(tmp_path / "run")]) == 0


def test_without_umls_the_demo_has_a_village(monkeypatch, tmp_path):
    monkeypatch.delenv("AUTOSF_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert demo_graph()[0] == "umls"
    monkeypatch.setitem(sys.modules, "pykeen", None)  # where UMLS would be
    source, graph = demo_graph()
    assert (source, graph.name) == ("", "Families")
