"""What a trial on another machine tells the driver, who cannot see it."""

import time
from queue import SimpleQueue
from threading import Thread, Timer

from autosf.runs.cluster_trial import with_signs_of_life


def test_a_trial_that_says_nothing_tells_whether_it_computes():
    messages = SimpleQueue()
    heard = with_signs_of_life(messages, 0.5)
    messages.put({"epoch": 1})
    assert next(heard) == {"epoch": 1}
    Thread(target=lambda: (busy(2.0), messages.put({"epoch": 2}))).start()
    assert next(heard) == {"computing": 0.5}
    assert next(message for message in heard if "epoch" in message) == {"epoch": 2}
    Timer(1.2, messages.put, [None]).start()
    assert list(heard) == []  # idle, then over


def busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))
