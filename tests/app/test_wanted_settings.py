"""Settings from a file: what is no file of settings is told in words."""

import json
from pathlib import Path

import pytest

from autosf.app.wanted_settings import settings_in
from autosf.embedding.model_folder import save_model
from autosf.errors import UserError
from random_models import random_graph, random_model


def told(path) -> str:
    with pytest.raises(UserError) as caught:
        settings_in(path)
    return str(caught.value)


def test_a_file_that_is_not_there_is_told_with_what_was_expected(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = "expected a TOML file or the folder of a tuning"
    assert told(Path("nosuch")) == f'"nosuch": there is no such file; {expected}'


def test_a_folder_without_settings_is_told_what_it_is(tmp_path):
    (tmp_path / "run").mkdir()
    assert "a folder without settings.toml; expected" in told(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(json.dumps({}))
    assert "the folder of a search, whose structure --structure takes; expected" in told(tmp_path / "run")
    model = save_model(tmp_path / "model", random_model(random_graph()))
    assert "the folder of a model; expected" in told(model)


@pytest.mark.parametrize("content", [b"PK\x03\x04\xff\xfe", b"\x80\x81"])
def test_a_binary_file_is_no_toml(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    assert told(tmp_path / "x").endswith("expected a TOML file, found something else")


def test_a_wrong_line_of_toml_is_told(tmp_path):
    (tmp_path / "x").write_text("learning_rate: 3")
    assert "expected TOML such as learning_rate = 0.1" in told(tmp_path / "x")
