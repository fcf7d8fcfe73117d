"""As many threads work as have a core, on a machine whose clocks the tests turn."""

import pytest

from autosf.embedding.hands import LONGEST, WINDOW, Hands


class Machine:
    """Two cores, of which others want some: two hands take ten times as long where a core is missing."""

    def __init__(self, others: int = 0) -> None:
        self.others, self.now, self.spent, self.hands, self.taken = others, 0.0, 0.0, 0, []

    def limit(self, hands: int) -> None:
        self.hands = hands
        self.taken.append(hands)

    def step(self) -> bool:
        alone, free = 0.002, max(1, 2 - self.others)
        seconds = alone / self.hands if self.hands <= free else 10 * alone
        self.now += seconds
        self.spent += seconds * min(self.hands, free)
        return True

    def worked(self, hands: Hands, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            assert hands.work(2, self.step)


def on(machine: Machine) -> Hands:
    return Hands(machine.limit, wall=lambda: machine.now, processor=lambda: machine.spent)


def test_all_work_where_the_cores_are_ours():
    machine = Machine()
    machine.worked(on(machine), 10.0)
    assert machine.taken == [2]


def test_fewer_work_where_others_have_the_cores_and_all_again_when_they_are_gone():
    machine = Machine(others=1)
    hands = on(machine)
    machine.worked(hands, 1.0)
    assert hands.count == 1
    machine.others = 0
    machine.worked(hands, 2 * LONGEST)
    assert hands.count == 2


def test_trying_again_costs_little_where_others_stay():
    machine = Machine(others=1)
    hands, steps = on(machine), 0
    while machine.now < 300:
        hands.work(2, machine.step)
        steps += 1
    assert steps * 0.002 > 0.9 * 300


def test_threads_that_sleep_but_are_faster_are_kept():
    """Little of the cores' time is ours then, too: the clock on the wall decides."""
    machine = Machine()
    hands = Hands(machine.limit, wall=lambda: machine.now, processor=lambda: 0.0)
    machine.worked(hands, 20.0)
    assert machine.taken.count(1) >= 1
    assert hands.count == 2


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_has_a_hand(threads):
    taken: list[int] = []
    hands = Hands(taken.append, wall=iter(range(10_000)).__next__, processor=lambda: 0.0)
    for _ in range(20 * WINDOW):
        assert hands.work(threads, lambda: True)
    assert taken == [] if threads == 1 else set(taken) <= {1, 2, 3}
