"""A measured line and how it is printed: ratios in one run, never bare seconds as a claim."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of a benchmark: what was measured, the figure, and the bar it should pass, if there is one."""

    what: str
    value: float
    unit: str
    bar: float | None = None  # the least a ratio may be; for "s", "ms" and "MB" the most
    note: str = ""

    @property
    def passes(self) -> bool:
        if self.bar is None:
            return True
        return self.value <= self.bar if self.unit in ("s", "ms", "MB", "%") else self.value >= self.bar


def seconds(call: Callable[[], object], at_least: float = 0.3, repeats: int = 3) -> float:
    """Best of `repeats` of the mean time of a call, each repeat running for at least `at_least` seconds."""
    best = float("inf")
    for _ in range(repeats):
        started, calls = time.perf_counter(), 0
        while calls == 0 or time.perf_counter() - started < at_least:
            call()
            calls += 1
        best = min(best, (time.perf_counter() - started) / calls)
    return best


def show(title: str, lines: list[Measured]) -> bool:
    """Print the lines; returns whether all bars are passed."""
    print(f"\n{title}")
    for line in lines:
        bar = "" if line.bar is None else f"   bar {line.bar:g}: {'passed' if line.passes else 'MISSED'}"
        note = f"   ({line.note})" if line.note else ""
        print(f"  {line.what:<62} {line.value:>12,.4g} {line.unit:<3}{bar}{note}", flush=True)
    return all(line.passes for line in lines)
