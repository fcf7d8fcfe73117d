"""How a search begins: with all known structures trained to the full, or with some of them where time is short."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from autosf.search.fidelity import ENOUGH
from autosf.search.free import most_finals
from autosf.search.typical import known_good

if TYPE_CHECKING:
    from autosf.search.settings import SearchSettings


def with_opening(search: SearchSettings, trainings: int) -> SearchSettings:
    """What a search that has time for that number of full trainings begins with.

    All known structures to the full, and the finals, would leave a short one no time for new structures. It takes
    as many as are needed before short trainings are trusted, and screens the others.
    """
    return replace(search, opening=ENOUGH) if trainings < first_and_last(search) else search


def trainings_within(budget: float, one: float, workers: int) -> int:
    """How many trainings that take `seconds` each a budget allows."""
    return int(budget * workers / max(one, 1e-9))


def first_and_last(search: SearchSettings) -> int:
    """The full trainings of all known structures and of the finals: with less there is little to choose from."""
    return len(known_good()) + most_finals(search)
