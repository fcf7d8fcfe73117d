"""The page of settings tells every setting, its default, its choices, and what graphs without a preset have."""

import re
import tomllib
from pathlib import Path

import pytest

from autosf.embedding.presets import FOR_LARGE, FOR_MANY, FOR_OTHERS, LARGE, MANY, presets
from autosf.embedding.settings import CHOICES, TrainingSettings

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| `(.*?)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
DEFAULTS = TrainingSettings().as_dict()
QUOTED = re.compile(r"`([^`]+)`")


def shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_every_setting_is_told_once_and_in_order():
    assert [name for name, *_ in ROWS] == list(DEFAULTS)


def test_defaults_are_those_of_the_code():
    assert {name: default for name, default, *_ in ROWS} == {
        name: shown(value) for name, value in DEFAULTS.items()
    }


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_those_of_the_code(name):
    others = next(others for row, _, others, _ in ROWS if row == name)
    assert {DEFAULTS[name], *QUOTED.findall(others)} == set(CHOICES[name])


def test_every_preset_is_named_and_those_that_draw_last():
    listed = re.search(
        r"^Ten graphs have a preset, found by validation: (.*?)\. The last six", PAGE, re.MULTILINE
    )
    names = re.split(", | and ", listed[1])
    assert len(names) == 10
    assert set(names) == set(presets())
    drawn = {name for name, values in presets().items() if values.get("loss") == "sampled-softmax"}
    assert drawn == set(names[-6:])


def test_settings_of_graphs_without_a_preset_are_those_of_the_code():
    few, many, large = re.findall(r"^\| (?:up to|more than) ([\d,]+) \| (.*) \|$", PAGE, re.MULTILINE)
    assert [int(row[0].replace(",", "")) for row in (few, many, large)] == [MANY, MANY, LARGE]
    assert told(few[1]) == FOR_OTHERS
    assert told(few[1]) | told(many[1]) == FOR_MANY
    assert told(few[1]) | told(many[1]) | told(large[1]) == FOR_LARGE


def test_the_recipe_can_be_read():
    recipe = re.search(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[1]
    assert TrainingSettings().changed(tomllib.loads(recipe)).dimension == 128


def told(cell: str) -> dict[str, object]:
    return tomllib.loads("\n".join(QUOTED.findall(cell)))
