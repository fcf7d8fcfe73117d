"""Ctrl-C, or an orderly kill, while a model is trained: at once where that loses nothing, else after the epoch."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITING = b"autosf: stopping after this epoch; once more stops at once, at the last checkpoint\n"


class Stop:
    """An end that was asked for; `between` tells whether the state is whole, being between two epochs."""

    def __init__(self, waits: bool) -> None:
        self._waits, self._asked = waits, False
        self.between = True

    def signalled(self, *_: object) -> None:
        """Raise a KeyboardInterrupt, unless there is an epoch to wait for and this is the first time."""
        if self._asked or not self._waits:
            self.between = not self._waits
            raise KeyboardInterrupt
        self._asked = True
        with suppress(
            OSError, ValueError
        ):  # as a handler must: past all buffers, and whoever is writing to them
            os.write(sys.stderr.fileno(), WAITING)

    def epoch_ended(self) -> None:
        """To be called when the state is whole."""
        if self._asked:
            raise KeyboardInterrupt


@contextmanager
def stopping(*, waits: bool) -> Iterator[Stop]:
    """Ctrl-C and SIGTERM, which batch systems and containers send, are heard by what is yielded."""
    stop = Stop(waits)
    if threading.current_thread() is not threading.main_thread():  # no signal comes here
        yield stop
        return
    before = {one: signal.signal(one, stop.signalled) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
