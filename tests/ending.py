"""A command that is ended by a signal as it puts a file in its place: at the same moment on any machine."""

import signal
import subprocess
import sys
from pathlib import Path

CHILD = """
import os, sys
before, path, times, end = sys.argv.pop(1), sys.argv.pop(1), int(sys.argv.pop(1)), int(sys.argv.pop(1))

def watch(event, arguments):
    global times
    if event == "os.rename" and os.path.abspath(arguments[1]) == path:
        times -= 1
        if times == 0:
            os.kill(os.getpid(), end)

sys.addaudithook(watch)
exec(before)
from autosf.app.cli import main
main()
"""


def ended(*arguments, at: Path, times: int = 1, end: signal.Signals, before: str = "") -> tuple[int, str]:
    """Exit code and last words of a command that is ended when it has written the file so many times less one,
    and is about to do so again."""
    words = [sys.executable, "-c", CHILD, before, str(at.absolute()), str(times), str(int(end))]
    done = subprocess.run(
        [*words, *map(str, arguments)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr
