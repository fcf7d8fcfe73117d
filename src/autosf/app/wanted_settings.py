"""The settings that a user asks for: a preset, under a file, under NAME=VALUE, under options."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.app.given import described
from autosf.embedding.model_folder import is_model_folder
from autosf.embedding.presets import preset
from autosf.errors import UserError, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from autosf.embedding.settings import TrainingSettings

EXPECTED = "expected a TOML file or the folder of a tuning"


def gathered_settings(
    graph_name: str, file: Path | None, pairs: Sequence[str], given: Mapping[str, Any], entities: int = 0
) -> TrainingSettings:
    """A value given by the user wins over the file, the file over the preset, which many entities change."""
    settings = preset(graph_name, entities)
    if file is not None:
        settings = settings.changed(settings_in(file))
    settings = settings.changed(dict(parsed_pair(pair) for pair in pairs))
    return settings.changed({name: value for name, value in given.items() if value is not None})


def settings_in(path: Path) -> dict[str, Any]:
    """The settings of a TOML file, or of the `settings.toml` that a tuning leaves in its folder."""
    file = path / "settings.toml" if path.is_dir() else path
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{quoted(path)}: {what_is_there(path)}; {EXPECTED}") from None
    except UnicodeDecodeError:
        raise UserError(f"{quoted(file)}: expected a TOML file, found something else") from None
    except OSError as error:
        raise UserError(f"{quoted(file)}: cannot be read ({error.strerror or error})") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{quoted(file)}: expected TOML such as learning_rate = 0.1 ({error})") from None


def settings_given(given: object) -> Mapping[str, Any]:
    """The settings that a Python program names: a path as in `settings_in`, a mapping, or none."""
    if given is None or isinstance(given, Mapping):
        return given or {}
    if isinstance(given, (str, Path)):
        return settings_in(Path(given))
    raise UserError(f"settings: {EXPECTED}, or a mapping, found {described(given)}")


def what_is_there(path: Path) -> str:
    """What a path without settings is, in words."""
    from autosf.app.run_results import is_run

    if not path.is_dir():
        return "there is no such file"
    if is_run(path):
        return "the folder of a search, whose structure --structure takes"
    return "the folder of a model" if is_model_folder(path) else "a folder without settings.toml"


def parsed_pair(pair: str) -> tuple[str, Any]:
    """A setting given as name=value, with the value's own type."""
    name, equals, value = pair.partition("=")
    if not equals:
        raise UserError(f"--set: expected name=value, found {quoted(pair)}")
    return name.strip(), typed(value)


def typed(text: str) -> Any:
    """A value as TOML would have it, or the text itself."""
    try:
        return tomllib.loads(f"x = {text.strip()}")["x"]
    except tomllib.TOMLDecodeError:
        return text.strip()
