"""Labels as one types them: those that begin with the text, then those that hold it, the busiest first.

All text is compared in lower case. A prefix is a range of the sorted labels, found by bisection; what else holds
the text is found by one search through all labels, written one after the other: for 40,000 labels in a quarter of
the time of a pass of polars over their column.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from autosf.graph.vocabulary import is_unicode

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    from autosf.graph.vocabulary import Vocabulary

MOST_HITS = 500  # labels with the text within them that are looked at
COMPARED = 300  # labels that a misspelt one is compared with, letter by letter
LONGEST = 100  # letters of a text that are looked at
AFTER_ALL = "\U0010ffff"
BETWEEN = b"\xff"  # labels: no UTF-8 has it


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """The labels of a vocabulary by place, `uses` of each in the graph, and their lower-case text."""

    vocabulary: Vocabulary
    uses: NDArray[np.int64]
    sorted_text: pl.Series
    places: NDArray[np.int64]  # of the sorted texts
    text: bytes  # all of them in the order of places, each after a BETWEEN
    starts: NDArray[np.int64]  # of each within it

    @property
    def labels(self) -> pl.Series:
        return self.vocabulary.labels

    def names(self, places: Sequence[int]) -> list[str]:
        """The labels at some places."""
        return [str(self.labels[place]) for place in places]

    def folded(self, place: int) -> str:
        """The lower-case text of a label."""
        return str(self.labels[place]).lower()


def completion(vocabulary: Vocabulary, uses: NDArray[np.int64]) -> Completion:
    """What completes labels; `uses` says how many triples have each. [n]"""
    folded = vocabulary.labels.str.to_lowercase()
    order = folded.arg_sort()
    lengths = folded.str.len_bytes().to_numpy().astype(np.int64) + len(BETWEEN)
    return Completion(
        vocabulary=vocabulary,
        uses=uses,
        sorted_text=folded.gather(order),
        places=order.to_numpy().astype(np.int64),
        text=BETWEEN + BETWEEN.join(label.encode() for label in folded),
        starts=np.cumsum(lengths) - lengths + len(BETWEEN),
    )


def completed(known: Completion, text: str, limit: int) -> list[int]:
    """Places of the labels that are the text, or that it may be the beginning or a part of, best first."""
    if not is_unicode(text):
        return []
    wanted = text.strip().lower()[:LONGEST]
    first, last = prefix_range(known, wanted)
    beginning = known.places[first:last]
    found = [*equal(known, text, limit), *busiest(known, beginning, limit)]
    if len(found) < limit and wanted:
        found += inside(known, wanted, beginning)
    return list(dict.fromkeys(found))[:limit]


def equal(known: Completion, text: str, limit: int) -> list[int]:
    """The label that is the text, then those that differ from it in capitals and outer spaces only."""
    same = known.vocabulary.find(text)
    wanted = text.strip().lower()
    first, last = (find(known.sorted_text, wanted) for find in (bisect_left, bisect_right))
    return [*([] if same is None else [same]), *busiest(known, known.places[first:last], limit)]


def inside(known: Completion, wanted: str, beginning: NDArray[np.int64]) -> list[int]:
    """Labels that hold the text elsewhere than at their beginning: first those in which it begins a word."""
    places, begins_word = holding(known, wanted)
    rest = ~np.isin(places, beginning)
    places, begins_word = places[rest], begins_word[rest]
    order = np.lexsort((places, -known.uses[places], ~begins_word))
    return list(places[order].tolist())


def nearest_labels(known: Completion, text: str, limit: int = 3) -> list[str]:
    """The labels that a misspelt one may be meant for.

    Two slips leave one third of a text whole: only labels that hold one of its thirds are compared.
    """
    wanted = text.strip().lower()[:LONGEST]
    if not wanted or not is_unicode(wanted):
        return []
    size = max(2, -(-len(wanted) // 3))
    thirds = [wanted[start : start + size] for start in range(0, len(wanted), size)]
    candidates: dict[str, int] = {}
    for third in sorted({third for third in thirds if len(third) > 1}):
        for place in busiest(known, holding(known, third)[0], COMPARED):
            candidates.setdefault(known.folded(place)[: 2 * LONGEST], place)
    near = get_close_matches(wanted, candidates, n=limit, cutoff=0.6)
    return known.names([candidates[match] for match in near])


def prefix_range(known: Completion, text: str) -> tuple[int, int]:
    """Where the sorted texts that begin with this one start and end."""
    return bisect_left(known.sorted_text, text), bisect_left(known.sorted_text, text + AFTER_ALL)


def holding(known: Completion, text: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Places of the labels that hold the text anywhere, and whether it begins a word there."""
    wanted, position = text.encode(), 0
    positions: list[int] = []
    while len(positions) < MOST_HITS and (position := known.text.find(wanted, position)) >= 0:
        positions.append(position)
        position = known.text.find(BETWEEN, position)  # one hit in a label is enough
        if position < 0:
            break
    before = [known.text[position - 1] for position in positions]
    begins_word = np.array([not chr(letter).isalnum() or letter == BETWEEN[0] for letter in before], bool)
    places = np.searchsorted(known.starts, np.array(positions, np.int64), side="right") - 1
    return places, begins_word


def busiest(known: Completion, places: NDArray[np.int64], limit: int) -> list[int]:
    """The places with the most uses, equal ones in label order."""
    if len(places) > limit:
        uses = known.uses[places]
        bar = np.partition(uses, len(uses) - limit)[len(uses) - limit]
        places = places[uses >= bar]
    order = np.lexsort((places, -known.uses[places]))
    return list(places[order][:limit].tolist())


def uses_of(parts: Sequence[NDArray[np.int32]], columns: Sequence[int], count: int) -> NDArray[np.int64]:
    """How often each id stands in some columns of some triples. [count]"""
    total = np.zeros(count, dtype=np.int64)
    for part in parts:
        for column in columns:
            total += np.bincount(part[:, column], minlength=count)
    return total
