"""Pages of results agree with their records."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs" / "results").glob("*.md")), ROOT / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_are_those_of_the_records(page, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.results import rebuilt

    text = page.read_text(encoding="utf-8")
    assert rebuilt(text) == text, f"run `make results`: {page.name} is not what its records say"
    sys.modules.pop("benchmarks", None)
