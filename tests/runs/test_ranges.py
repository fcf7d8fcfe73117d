"""Ranges to tune in: the paper's by default, in the settings' own types, and never without the start."""

import pytest

from autosf.embedding.settings import TrainingSettings
from autosf.errors import UserError
from autosf.runs.ranges import Between, OneOf, starts, tuning_ranges, with_values

DEFAULTS = TrainingSettings()


def test_the_papers_ranges_are_the_default():
    assert tuning_ranges(DEFAULTS, {}) == {
        "learning_rate": Between(0, 1),
        "regularisation": Between(1e-5, 1e-1, log=True),
        "decay": Between(0.99, 1),
        "batch_size": OneOf((256, 512, 1024)),
    }


def test_settings_outside_of_the_papers_ranges_widen_them():
    ranges = tuning_ranges(DEFAULTS.changed({"batch_size": 100, "decay": 0.97}), {})
    assert ranges["decay"] == Between(0.97, 1)
    assert ranges["batch_size"] == OneOf((100, 256, 512, 1024))


def test_the_first_trials_are_the_preset_itself_and_the_defaults_of_what_is_tuned():
    own = {"learning_rate": 0.3, "batch_size": 128, "entity_weight": 0.02}  # other than the relations' weight
    settings = DEFAULTS.changed(own)
    first, second = starts(settings, tuning_ranges(settings, {}))
    assert first.settings == settings
    assert first.point == {"learning_rate": 0.3, "regularisation": 0.02, "decay": 1.0, "batch_size": 128}
    assert second.settings == settings.changed(
        {"learning_rate": 0.1, "batch_size": 512, "entity_weight": 0.05}
    )


def test_a_preset_that_is_the_defaults_is_tried_once():
    assert len(starts(DEFAULTS, tuning_ranges(DEFAULTS, {}))) == 1


def test_a_given_range_is_kept_and_the_start_moves_into_it():
    given = {"learning_rate": Between(0.2, 0.9), "batch_size": OneOf((32, 64)), "regulariser": OneOf(("l2",))}
    ranges = tuning_ranges(DEFAULTS, given)
    (start,) = starts(DEFAULTS, ranges)
    assert ranges["learning_rate"] == Between(0.2, 0.9)
    assert start.settings == DEFAULTS.changed({"learning_rate": 0.2, "batch_size": 64, "regulariser": "l2"})


@pytest.mark.parametrize("held", ["regularisation", "entity_weight", "relation_weight"])
def test_what_is_held_is_not_tuned(held):
    assert set(tuning_ranges(DEFAULTS, {}, ["decay", held])) == {"learning_rate", "batch_size"}


def test_a_range_of_one_weight_takes_the_place_of_both():
    assert "regularisation" not in tuning_ranges(DEFAULTS, {"entity_weight": Between(0, 1)})


def test_regularisation_is_both_weights():
    found = with_values(DEFAULTS, {"regularisation": 0.5, "decay": 0.9})
    assert found == DEFAULTS.changed({"entity_weight": 0.5, "relation_weight": 0.5, "decay": 0.9})


@pytest.mark.parametrize(
    ("name", "wanted", "message"),
    [
        ("lerning_rate", Between(0, 1), 'unknown setting "lerning_rate"; did you mean "learning_rate"?'),
        ("decay", Between(0.5, 1.5), "setting decay: expected a number from 0 to 1, found 1.5"),
        ("batch_size", Between(1.5, 3.5), "setting batch_size: expected a whole number"),
        ("decay", Between(0.9, 0.8), "range of decay: expected a low end and a higher end, found 0.9:0.8"),
        ("decay", Between(0.0, 1.0, log=True), "range of decay: expected a low end above 0"),
        ("regulariser", OneOf(("n3", "n4")), 'setting regulariser: unknown value "n4"'),
        ("dimension", Between(8, 64), "range of dimension: expected values with commas between"),
    ],
)
def test_a_range_that_the_setting_would_refuse_is_refused(name, wanted, message):
    with pytest.raises(UserError) as refused:
        tuning_ranges(DEFAULTS, {name: wanted})
    assert message in str(refused.value)
