"""What is shipped: a wheel with every file of the package, and an image made of files that are there."""

import re
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

import autosf

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(tmp_path):
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    shipped = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("autosf/")}
    package = Path(autosf.__file__).parent
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert shipped == {str(path.relative_to(package.parent)) for path in files}
    assert wheel.name == f"autosf-{autosf.__version__}-py3-none-any.whl"


def test_every_extra_is_in_the_lock_and_in_the_doctors_list():
    """An extra that is not locked is one that no test has seen."""
    from autosf.app.doctor import EXTRAS

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name for name in project["optional-dependencies"] if name != "dev"}
    assert set(EXTRAS) == extras
    locked = re.search(r'pip install -qq "\.\[(.*)\]"', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert set(locked[1].split(",")) == {*extras, "dev"}


def test_the_image_is_made_of_files_that_are_sent_to_its_builder():
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    docker = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        name for line in re.findall(r"^COPY (?!--)(.*) \S+$", docker, re.MULTILINE) for name in line.split()
    ]
    assert {"src", "requirements.lock"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists()
        assert any(fnmatch(name, pattern) for pattern in allowed)
    assert re.search(r"^USER (?!root)", docker, re.MULTILINE)


def test_the_workflow_runs_what_is_there():
    import yaml

    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert ".ci/run" in runs
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(command.split()[1] in targets for command in runs if command.startswith("make "))
