"""`free` without rounds: served by a fake trainer whose trials end in any order."""

from dataclasses import replace
from random import Random

import pytest

from autosf.algebra.invariance import canonical
from autosf.errors import UserError
from autosf.search.asynchronous import Arrivals, asynchronous_free, search_asynchronously
from autosf.search.record import OUT_OF_TIME, OutOfTime
from autosf.search.settings import SearchSettings
from autosf.search.strategies import asynchronous_strategy
from autosf.search.typical import known_good
from autosf.search.verdict import fresh_seeds, verdict
from fake_training import known_score, trained

SETTINGS = SearchSettings(epochs=8, grain=2, trials=30, candidates=32, asynchronous=True)


class Slots:
    """So many slots, of which a random one ends each time that somebody waits; it keeps what was seen."""

    def __init__(self, slots: int, past=(), most: float = float("inf")) -> None:
        self.slots, self.news, self.most = slots, list(past), most
        self.under_way, self.begun, self.idle = [], [], []
        self.rng = Random(slots)

    def exchange(self, trials) -> Arrivals:
        self.under_way += trials
        self.begun += trials
        assert len(set(self.begun)) == len(self.begun), "nothing is trained twice"
        if len(self.begun) > self.most:
            self.under_way, self.most = [], float("inf")
            raise OutOfTime(self.told())
        room = max(0, self.slots - len(self.under_way))
        if self.under_way and not self.news:
            self.idle.append(room)
            self.news += trained([self.under_way.pop(self.rng.randrange(len(self.under_way)))])
            room = max(0, self.slots - len(self.under_way))
        return Arrivals(self.told(), room)

    def told(self) -> list:
        records, self.news = self.news, []
        return records


@pytest.mark.parametrize("slots", [1, 5])
def test_after_a_short_opening_come_the_other_known_ones(slots):
    settings, served = replace(SETTINGS, opening=6), Slots(slots)
    search_asynchronously(asynchronous_free(settings), served.exchange)
    met = list(dict.fromkeys(trial.structure for trial in served.begun))
    assert met[:6] == list(known_good()[:6])
    assert set(met[: len(known_good())]) == set(known_good()), "before any new one"
    assert len(met) == settings.trials


@pytest.mark.parametrize("slots", [1, 5, 100])
def test_it_tries_as_many_structures_as_it_may_and_holds_its_finals(slots):
    served = Slots(slots)
    records, reason = search_asynchronously(asynchronous_free(SETTINGS), served.exchange)
    fresh = set(fresh_seeds(SETTINGS))
    tried = {record.trial.structure for record in records}
    assert reason == "all 30 structures are tried"
    assert len(tried) == 30
    assert set(known_good()) <= tried
    assert all(structure == canonical(structure, "extended") for structure in tried)
    assert len({record.trial for record in records if record.trial.seed in fresh}) >= 9
    winner = verdict(records, SETTINGS).winner.structure
    assert known_score(winner) == max(known_score(structure) for structure in tried)


def test_no_slot_is_idle_before_the_last_structures():
    served = Slots(5)
    search_asynchronously(asynchronous_free(SETTINGS), served.exchange)
    assert not any(served.idle[:25])


def test_it_goes_on_from_whatever_records_there_are():
    whole, _ = search_asynchronously(asynchronous_free(SETTINGS), Slots(3).exchange)
    for known in (20, len(whole) - 2):
        served = Slots(3, past=whole[:known])
        records, reason = search_asynchronously(asynchronous_free(SETTINGS), served.exchange)
        assert records[:known] == whole[:known]
        assert len({record.trial.structure for record in records}) == 30
        assert reason == "all 30 structures are tried"


def test_out_of_time_what_is_under_way_is_given_up_and_the_finals_are_held():
    served = Slots(4, most=18)
    records, reason = search_asynchronously(asynchronous_free(SETTINGS), served.exchange)
    assert reason == OUT_OF_TIME
    assert verdict(records, SETTINGS) is not None


def test_out_of_time_in_the_finals_what_is_left_of_them_is_held_but_only_once():
    whole, reason = search_asynchronously(asynchronous_free(SETTINGS), Slots(4).exchange)
    fresh = set(fresh_seeds(SETTINGS))
    finals = sum(record.trial.seed in fresh for record in whole)

    class CutInTheFinals(Slots):
        cuts = 0

        def exchange(self, trials):
            if any(trial.seed in fresh for trial in [*trials, *self.under_way]) and self.cuts:
                self.cuts -= 1
                records = trained([*self.under_way, *trials][:1])
                self.under_way = []
                self.begun = [trial for trial in self.begun if trial.seed not in fresh]
                raise OutOfTime([*self.told(), *records])
            return super().exchange(trials)

    for cuts, expected in ((1, (finals, reason)), (2, (2, OUT_OF_TIME))):
        served = CutInTheFinals(4)
        served.cuts = cuts
        records, ending = search_asynchronously(asynchronous_free(SETTINGS), served.exchange)
        held = [record.trial for record in records if record.trial.seed in fresh]
        assert (len(held), ending) == expected
        assert len(set(held)) == len(held), "nothing is trained twice"


def test_a_strategy_of_rounds_says_so():
    with pytest.raises(UserError, match='strategy "paper" works in rounds'):
        asynchronous_strategy(SearchSettings(strategy="paper"))
