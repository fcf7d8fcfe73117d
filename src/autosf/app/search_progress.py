"""What stderr shows of a running search: live lines on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from autosf.app.answer import console, say
from autosf.app.duration import time_in_words
from autosf.app.run_results import called
from autosf.counting import counted
from autosf.runs.leaderboard import leaderboard

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.text import Text

    from autosf.runs.leaderboard import Standing
    from autosf.runs.workers import Progress
    from autosf.search.record import Record, Trial

LINE_SECONDS = 10.0  # between two lines where stderr is no terminal
TOP = 3


class SearchLines:
    """Owns the lines on a terminal. Its ears are `progress` and `finished`; the past counts from the start."""

    def __init__(
        self, past: Iterable[Record], structures: int | None, budget: float | None, spent: float
    ) -> None:
        from rich.live import Live

        self._records = list(past)
        self._structures, self._budget = structures, budget
        self._began = self._told = time.monotonic()
        self._spent = spent
        self._running: dict[int, tuple[Progress, float | None]] = {}
        self._standings: list[Standing] = leaderboard(self._records)
        out = console(stderr=True)
        self._live = (
            Live(console=out, transient=True, get_renderable=self._drawn) if out.is_terminal else None
        )

    def __enter__(self) -> SearchLines:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def progress(self, progress: Progress) -> None:
        """A trial has finished an epoch."""
        before, last = self._running.get(progress.slot, (progress, None))
        mrr = last if before.trial == progress.trial else None
        self._running[progress.slot] = (progress, mrr if progress.valid_mrr is None else progress.valid_mrr)
        self._tell_now_and_then()

    def finished(self, record: Record) -> None:
        """A trial has its record."""
        self._records.append(record)
        self._standings = leaderboard(self._records)
        self._running = {slot: kept for slot, kept in self._running.items() if kept[0].trial != record.trial}
        self._tell_now_and_then()

    def lines(self) -> list[str]:
        """Trials and time; the best; what runs, with its epoch and last MRR."""
        shown = [self._done()]
        shown += [f"{place}. {standing_in_words(row)}" for place, row in enumerate(self._standings[:TOP], 1)]
        return shown + [in_words(*kept) for _, kept in sorted(self._running.items())]

    def _done(self) -> str:
        tried = len({record.trial.structure for record in self._records})
        structures = (
            f"{tried} of {self._structures} structures" if self._structures else counted(tried, "structure")
        )
        failed = sum(record.failed for record in self._records)
        spent = self._spent + time.monotonic() - self._began
        return (
            f"{counted(len(self._records), 'trial')} done, {structures} tried"
            + (f", {failed} failed" if failed else "")
            + f"; {time_in_words(spent)} spent"
            + (f", {time_in_words(self._budget - spent)} left" if self._budget else "")
        )

    def _drawn(self) -> Text:
        from rich.text import Text

        return Text("\n".join(self.lines()), overflow="ellipsis", no_wrap=True)

    def _tell_now_and_then(self) -> None:
        if self._live or time.monotonic() - self._told < LINE_SECONDS:
            return
        self._told = time.monotonic()
        best = f"; best: {standing_in_words(self._standings[0])}" if self._standings else ""
        say(self._done() + best)


def standing_in_words(standing: Standing) -> str:
    """A structure with its MRR and how sure that is."""
    spread = "" if standing.spread is None else f" ± {standing.spread:.4f}"
    seeds = counted(standing.seeds, "seed")
    return f"{standing.valid_mrr:.4f}{spread} ({seeds}) {called(standing.structure)}"


def in_words(progress: Progress, mrr: float | None) -> str:
    """A running trial: its worker, how far it is, its last MRR."""
    trial: Trial = progress.trial
    reached = "-" if mrr is None else f"{mrr:.4f}"
    where = f"epoch {progress.epoch}/{trial.epochs}, MRR {reached}"
    beside = f" and {progress.beside} more beside it" if progress.beside else ""
    return f"worker {progress.slot}: {where}, {called(trial.structure)}{beside}"
