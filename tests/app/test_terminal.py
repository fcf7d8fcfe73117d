"""What a terminal sees, and what a pipe does: colours, live lines, and lines that fit after a resize."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

EPOCHS = """
import time
from autosf.app.commands.training import EpochBar
from autosf.embedding.state import Epoch, State
import torch
none, curve = torch.zeros(1, 4), ()
with EpochBar(40) as bar:
    for number in range(1, 41):
        curve = (*curve, Epoch(number, 1 / number, 0.1, number / 100))
        bar.report(State(none, none, curve=curve))
        time.sleep(0.05)
        if number == 20:
            print("half", flush=True)
            input()
"""
TRIALS = """
from autosf.app.commands.tune import TrialLines
from autosf.embedding.settings import TrainingSettings
from autosf.runs.tuning import Attempt, Progress
import time
settings = TrainingSettings()
best = Attempt(3, settings, 0.5, 10, 5)
with TrialLines(30, None, ("learning_rate", "regularisation", "decay", "batch_size")) as lines:
    for number in range(1, 21):
        lines.report(Progress(number, best, settings, number, 0.4))
        time.sleep(0.05)
        if number == 10:
            print("half", flush=True)
            input()
"""
STYLE, MOVE = re.compile(r"\x1b\[[0-9;]*m"), re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def resized(file: int, columns: int) -> None:
    fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def on_a_terminal(command: list[str], columns: int, then: int | None = None, **environment: str) -> list[str]:
    """What a terminal of so many columns is sent, before and after it says "half" and is resized."""
    ours, theirs = pty.openpty()
    resized(theirs, columns)
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")
    }
    settings = {**kept, "TERM": "xterm-256color", "PYTHONPATH": ":".join(sys.path), **environment}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    parts, deadline = [b""], time.monotonic() + 120
    while time.monotonic() < deadline:
        if not select.select([ours], [], [], 0.2)[0]:
            if process.poll() is not None:
                break
            continue
        try:
            parts[-1] += os.read(ours, 1 << 16)
        except OSError:  # the other side is closed
            break
        if len(parts) == 1 and b"half" in parts[0]:
            resized(ours, then or columns)
            forget_what_comes(ours, 1.0)  # a frame that was begun before the resize
            parts.append(b"")
            os.write(ours, b"\n")
    os.close(ours)
    assert process.wait(30) == 0, b"".join(parts).decode()
    return [part.decode() for part in parts]


def forget_what_comes(file: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if select.select([file], [], [], left)[0]:
            os.read(file, 1 << 16)


def longest(text: str) -> int:
    return max(len(line) for line in MOVE.sub("\n", STYLE.sub("", text)).splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("program", [EPOCHS, TRIALS], ids=["training", "tuning"])
def test_progress_fits_the_terminal_after_it_is_made_narrower(program):
    before, after = on_a_terminal([sys.executable, "-c", program], 120, then=44)
    assert 44 < longest(before) <= 120
    assert longest(after) <= 44


@pytest.mark.slow
def test_a_pipe_sees_no_progress():
    command = [sys.executable, "-c", EPOCHS.replace("0.05", "0")]
    done = subprocess.run(command, input="\n", capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("half\n", "")


COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-9]|38;)[0-9;]*m")


def test_colours_are_for_terminals_that_want_them():
    command = [sys.executable, "-m", "autosf", "show", "complex"]
    assert COLOUR.search(on_a_terminal(command, 100)[0])
    assert not COLOUR.search(on_a_terminal(command, 100, NO_COLOR="1")[0])
    assert "\x1b" not in on_a_terminal(command, 100, TERM="dumb")[0]
