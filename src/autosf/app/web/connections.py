"""Connections of strangers: each has little time for a request, and each address has its share of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from autosf.app.web.guard import is_loopback, source_of

if TYPE_CHECKING:
    import asyncio

MOST = 512  # at once, of all; who comes then is answered with 503
MOST_OF_ONE, MOST_OF_HERE = 64, 448  # of one address, of this machine
REQUEST_SECONDS = 10.0  # until a request must have come whole
UNFINISHED = (h11.IDLE, h11.SEND_BODY)


class Connection(H11Protocol):
    """Owns a connection and the time its next request has; uvicorn itself waits for a request's end for ever."""

    _source = ""
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        self._source = source_of(address)
        if self._of_its_source() > (MOST_OF_HERE if is_loopback(address) else MOST_OF_ONE):
            transport.close()
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_waiting()

    def _wait(self) -> None:
        """Let the time run while a request has not come whole; more of it does not set it back."""
        if self.conn.their_state not in UNFINISHED:
            self._stop_waiting()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _of_its_source(self) -> int:
        """How many connections there are from the same place."""
        return sum(isinstance(one, Connection) and one._source == self._source for one in self.connections)
