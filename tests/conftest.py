"""What tests share: the folder of the benchmark graphs."""

import os
from pathlib import Path

import pytest


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
