"""`autosf doctor`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autosf.app.answer import answer, json_option

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command(epilog="Example: autosf doctor")
@json_option
def doctor(as_json: bool) -> None:
    """Check the installation and this machine.

    Versions, extras, cores, memory, disk, device and threads, graphs at hand, the speed of matrix products, and
    a tiny training; about two seconds. Whatever is amiss comes with what to do about it.
    """
    from dataclasses import asdict

    from autosf.app.doctor import WARNING, findings

    found = [asdict(finding) for finding in findings()]
    healthy = all(finding["status"] != WARNING for finding in found)
    answer({"healthy": healthy, "checks": found}, as_json, lambda: told(found))


def told(found: list[dict[str, Any]]) -> list[RenderableType]:
    """A line for each check, and the sum of them."""
    from rich.table import Table
    from rich.text import Text

    from autosf.errors import quoted

    styles = {"ok": "green", "warning": "bold yellow", "optional": "dim"}
    table = Table.grid(padding=(0, 2))
    for finding in found:
        advice = f"\n→ {finding['advice']}" if finding["advice"] else ""
        what = Text(quoted(finding["found"], 400)[1:-1]).append(advice, styles[finding["status"]])
        table.add_row(Text(finding["status"], styles[finding["status"]]), finding["check"], what)
    warnings = sum(finding["status"] == "warning" for finding in found)
    return [table, "\nall is well" if not warnings else f"\n{warnings} to look at"]
