"""What the driver hears of epochs."""

from autosf.embedding.state import Epoch
from autosf.runs.telling import now_and_then


def told_of(epochs, seconds, times):
    told, clock = [], iter(times)
    heard = now_and_then(lambda **message: told.append(message), seconds, lambda: next(clock))
    for place, epoch in epochs:
        heard(place, epoch)
    return told


def test_the_first_epoch_is_told_at_once_and_quick_ones_after_it_are_not():
    epochs = [(0, Epoch(number, 1.0, 0.002)) for number in range(1, 9)]
    assert [message["epoch"] for message in told_of(epochs, 60, range(8))] == [1]
    assert [message["epoch"] for message in told_of(epochs, 0, range(8))] == [*range(1, 9)]


def test_the_last_validation_before_it_is_told_with_an_epoch_of_the_same_trial():
    epochs = [
        (0, Epoch(1, 1.0, 0.002)),
        (0, Epoch(2, 1.0, 0.002, 0.3)),
        (1, Epoch(2, 1.0, 0.002, 0.9)),
        (0, Epoch(3, 1.0, 0.002)),
        (1, Epoch(3, 1.0, 0.002)),
    ]
    told = told_of(epochs, 60, [0, 1, 2, 70, 140])
    assert [(message["place"], message["epoch"], message["valid_mrr"]) for message in told] == [
        (0, 1, None),
        (0, 3, 0.3),
        (1, 3, 0.9),
    ]
