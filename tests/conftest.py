"""What tests share: the folder of the benchmark graphs, a browser."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# Where tests run side by side, each has a core: threads of several wait for each other six times as long as they
# work. Set before torch is imported, and for the commands that tests start.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell's background jobs ignore Ctrl-C, and so would the commands that tests start and end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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


@pytest.fixture(scope="module")
def chromium():
    """A headless browser; one a module, as no other event loop can run beside it. Its tests carry `browser`."""
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("no chromium on this machine")
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
