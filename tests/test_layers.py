"""Each layer imports only from the layers on its left; proved by reading the imports, not by importing."""

import ast
import sys
from pathlib import Path

import pytest

import autosf

LAYERS = ["algebra", "graph", "embedding", "evaluation", "search", "runs", "app"]
COMMON = {"counting", "errors", "whole", "__version__"}  # at the package's root, open to all
ROOT = Path(autosf.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def imported_modules(path: Path, root: Path = ROOT) -> set[str]:
    """Absolute dotted names of everything the file imports, anywhere in it, type checking included."""
    package = ("autosf", *path.relative_to(root).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join([*base, *(node.module or "").split(".")]).rstrip(".")
            found |= {f"{stem}.{alias.name}" for alias in node.names}
    return found


def layers_used(path: Path, root: Path = ROOT) -> set[str]:
    parts = (name.split(".") for name in imported_modules(path, root))
    return {part[1] for part in parts if part[0] == "autosf" and len(part) > 1} - COMMON


def test_every_folder_is_a_known_layer():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(LAYERS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_come_from_the_left(path: Path):
    layer = path.relative_to(ROOT).parts[0]
    if layer in LAYERS:
        assert layers_used(path) <= set(LAYERS[: LAYERS.index(layer) + 1])
    elif layer not in ("__init__.py", "__main__.py"):  # the front doors may reach everything
        assert layers_used(path) == set()


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name == "algebra"], ids=lambda p: p.name)
def test_algebra_needs_the_standard_library_only(path: Path):
    outside = {name.split(".")[0] for name in imported_modules(path)} - {"autosf"}
    assert outside <= sys.stdlib_module_names


def test_search_never_imports_training():
    for path in (ROOT / "search").rglob("*.py"):
        assert not any("embedding.training" in name for name in imported_modules(path)), path


def test_the_reader_of_imports_sees_a_forbidden_one(tmp_path: Path):
    """The proof above is worth something only if it can fail."""
    (tmp_path / "algebra").mkdir()
    bad = tmp_path / "algebra" / "bad.py"
    bad.write_text("def f():\n    from ..search import greedy\n    from autosf.app import cli\n")
    assert layers_used(bad, tmp_path) == {"search", "app"}


def test_no_file_holds_more_than_one_idea():
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: n for name, n in lengths.items() if n > 420} == {}
