"""A run as a page for people: `content` gathers what there is to tell, `figures` draws, `page` sets it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from autosf.app.report.content import content_of
from autosf.app.report.figures import figures
from autosf.app.report.page import page
from autosf.app.run_results import near
from autosf.whole import make_folder, place_of, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from autosf.runs.run import Run

NAME = "report.html"


def write_report(run: Run, out: Path, rivals: Sequence[Run] = (), *, test: bool = False) -> dict[str, Any]:
    """Write the page, and beside it every figure as SVG and CSV; the content comes back as JSON would have it."""
    place_of(out)  # refuses what is no file before anything is done
    report = content_of(run, rivals, test)
    drawn = figures(report)
    html = page(report, drawn)
    folder = out.with_name(f"{out.stem}-figures")
    make_folder(folder)
    for figure in drawn.values():
        write_whole(folder / f"{figure.name}.svg", figure.file())
        write_whole(folder / f"{figure.name}.csv", figure.csv())
    write_whole(out, html)
    files = {
        name: {"title": figure.title, **{form: near(folder / f"{name}.{form}") for form in ("svg", "csv")}}
        for name, figure in drawn.items()
    }
    return {"path": near(out), "figures": files, **asdict(report)}
