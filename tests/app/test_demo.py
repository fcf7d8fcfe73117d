"""The demo does the main job, offline, in seconds."""

import json

import pytest

from autosf.app.cli import run


@pytest.mark.slow
def test_the_demo_trains_and_answers(capfd):
    assert run(["demo", "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    quality = {one["structure"]: one["test_mrr"] for one in result["runs"]}
    assert quality["complex"] > 0.8 > quality["distmult"]
    assert result["best"] == "complex"
    assert len(result["predictions"]) == 5
    assert len(result["new_facts"]) == 3


@pytest.mark.slow
def test_the_demo_shows_drawings_answers_and_new_facts(capfd):
    assert run(["demo"]) == 0
    out = capfd.readouterr().out
    assert "ComplEx: test MRR" in out
    assert "virus  causes  ?" in out
