"""One worker process as the driver holds it: started, told, listened to, and ended with all that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autosf.errors import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from autosf.runs.task import Task

CHUNK = 1 << 16
TAIL = 2_000  # bytes of a log that are looked at


class WorkerProcess:
    """Owns a process, its pipes and its place in the log; `tasks` are what it is working on, by their places."""

    def __init__(self, slot: int, graph_folder: Path, threads: int, log: Path) -> None:
        """Start it in a session of its own, so that Ctrl-C reaches the driver alone.

        On Linux it ends with the thread that started it: this has to be one that lives as long as the run.
        """
        command = [
            sys.executable,
            "-P",  # the current folder is the user's: nothing in it is a module of ours
            "-m",
            "autosf.runs.worker",
            str(graph_folder),
            str(threads),
            str(os.getpid()),
        ]
        self.slot, self.log = slot, log
        self.tasks: dict[int, Task] = {}
        self.batch = 0  # the number of the last tasks it was given
        self.ready, self.silent = False, 0.0
        self.began = 0.0  # on the driver's clock, with its tasks
        self.computed: float | None = None  # CPU seconds when last asked
        self.spared = 0  # times in a row that its silence was that of a worker who computes
        with log.open("ab") as file:
            self._log_start = file.tell()
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, start_new_session=True
            )
        self._unread = b""

    def cpu_seconds(self) -> float | None:
        """What it has computed so far, where the system tells."""
        try:
            text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fileno(self) -> int:
        """The pipe its messages come through."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, message: Mapping[str, Any]) -> None:
        """Tell it something; one that is dead raises an OSError."""
        assert self._process.stdin is not None
        os.write(self._process.stdin.fileno(), json.dumps(message).encode() + b"\n")

    def messages(self) -> list[dict[str, Any]] | None:
        """What it has said since, or None after its last word."""
        arrived = os.read(self.fileno(), CHUNK)
        if not arrived:
            return None
        *lines, self._unread = (self._unread + arrived).split(b"\n")
        return [json.loads(line) for line in lines]

    def kill(self) -> int:
        """End it with its group at once; its exit code."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return self._ended(None)

    def leave(self, seconds: float) -> int:
        """Let it end by closing its pipe, and end it after so many seconds; its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._ended(seconds)
        except subprocess.TimeoutExpired:
            return self.kill()

    def last_words(self) -> str:
        """The last line it wrote to its log, for a message."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self._log_start, size - TAIL))
            lines = file.read().decode(errors="replace").strip().splitlines()
        return f": {quoted(lines[-1], 300)}" if lines else ""

    def _ended(self, seconds: float | None) -> int:
        code = self._process.wait(seconds)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        return code


def cause(code: int) -> str:
    """What an exit code says, in words."""
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"was killed ({name}{'; out of memory?' if -code == signal.SIGKILL else ''})"
