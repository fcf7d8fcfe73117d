"""How many threads work on a compiled step: all that there are, unless other processes have the cores.

Where they do, threads that spin at a barrier wait for one that has no core, and two can take ten times as long as
one. Sums do not depend on who works: every thread has a range of its own, and a hand takes one range or several.
So their number may follow the machine, and the same seed comes to the same bits. A shortened epoch of FB15k-237
beside two busy processes, two threads on two cores: 5 to 25 s before, .8 s now, as with one thread.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

WINDOW = 8  # steps that are judged together
OURS = 0.75  # share of the cores' time that we have where nobody else wants it
# Seconds before all hands are tried again: twice as long after each vain attempt.
SHORTEST, LONGEST = 1.0, 32.0


class Hands:
    """Times every step. Where the cores are not ours half of the hands are tried, and kept if that is faster."""

    def __init__(
        self,
        limit: Callable[[int], object],
        wall: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        self._limit, self._wall, self._processor = limit, wall, processor
        self._threads = self.count = 0
        self._seconds: list[float] = []
        self._began = 0.0, 0.0  # the window, by both clocks
        # Seconds of a step with twice as many, while half of them are tried.
        self._with_more: float | None = None
        self._until, self._rest = 0.0, SHORTEST

    def work(self, threads: int, step: Callable[[], bool]) -> bool:
        """The step's own answer, with as many hands as are best of so many threads."""
        if threads == 1:
            return step()
        if threads != self._threads:
            self._threads, self._with_more = threads, None
            self._take(threads)
        began = self._wall()
        if not self._seconds:
            self._began = began, self._processor()
        done = step()
        now = self._wall()
        self._seconds.append(now - began)
        if len(self._seconds) == WINDOW:
            self._judge(now)
            self._seconds = []
        return done

    def _judge(self, now: float) -> None:
        typical, elapsed = median(self._seconds), now - self._began[0]
        ours = self._processor() - self._began[1] >= OURS * self.count * elapsed
        if self._with_more is not None:
            if typical >= self._with_more:
                self._take(2 * self.count)
            self._with_more = None
            self._until, self._rest = now + self._rest, min(2 * self._rest, LONGEST)
        elif not ours and self.count > 1 and (now >= self._until or self.count < self._threads):
            self._with_more = typical
            self._take(self.count // 2)
        elif self.count < self._threads and now >= self._until:
            self._take(self._threads)
        elif ours and self.count == self._threads:
            self._rest = SHORTEST

    def _take(self, count: int) -> None:
        self.count = min(count, self._threads)
        self._limit(self.count)
