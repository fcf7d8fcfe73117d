"""What tests share: the folder of the benchmark graphs."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure; in CI the same examples every time.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the benchmark graphs; a test that needs it carries the mark `data`."""
    named = os.environ.get("AUTOSF_DATA")
    if not named:
        pytest.skip("$AUTOSF_DATA is not set: no benchmark graphs")
    folder = Path(named)
    if not folder.is_dir():
        pytest.skip(f"$AUTOSF_DATA names no folder: {named}")
    return folder
