"""Labels as one types them: those that begin with the text, then those that hold it, the busiest first.

All text is compared in lower case. A prefix is a range of the sorted labels, found in microseconds; what else
holds the text is found by one pass of polars over the column.
"""

from __future__ import annotations

import re
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

LOOKED_AT = 200  # labels with the text within them, the busiest, that are put in order
COMPARED = 300  # labels that a misspelt one is compared with, letter by letter
LONGEST = 100  # letters of a text that are looked at
AFTER_ALL = "\U0010ffff"


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """The labels of a vocabulary by place, `uses` of each in the graph, and both by their lower-case text."""

    labels: pl.Series
    uses: NDArray[np.int64]
    folded: pl.Series  # by place
    sorted_text: pl.Series
    places: NDArray[np.int64]  # of the sorted texts


def completion(vocabulary: Vocabulary, uses: NDArray[np.int64]) -> Completion:
    """What completes labels; `uses` says how many triples have each. [n]"""
    folded = vocabulary.labels.str.to_lowercase()
    order = folded.arg_sort()
    return Completion(
        vocabulary.labels, uses, folded, folded.gather(order), order.to_numpy().astype(np.int64)
    )


def completed(known: Completion, text: str, limit: int) -> list[int]:
    """Places of the labels that the text may be the beginning of, or a part of, best first."""
    wanted = text.strip().lower()[:LONGEST]
    if not is_unicode(wanted):
        return []
    first, last = prefix_range(known, wanted)
    found = busiest(known, known.places[first:last], limit)
    exact = [place for place in known.places[first:last][:1].tolist() if known.folded[place] == wanted]
    found = [*exact, *(place for place in found if place not in exact)]
    if len(found) < limit and wanted:
        inside = busiest(known, holding(known, wanted), LOOKED_AT + len(found))
        begins_word = re.compile(rf"(?:\b|_){re.escape(wanted)}")
        rest = [place for place in inside if place not in set(found)]
        found += sorted(rest, key=lambda place: not begins_word.search(known.folded[place]))
    return found[:limit]


def nearest_labels(known: Completion, text: str, limit: int = 3) -> list[str]:
    """The labels that a misspelt one may be meant for.

    Two slips leave one third of a text whole: only labels that hold one of its thirds are compared.
    """
    wanted = text.strip().lower()[:LONGEST]
    if not wanted or not is_unicode(wanted):
        return []
    size = max(2, -(-len(wanted) // 3))
    thirds = {wanted[start : start + size] for start in range(0, len(wanted), size)}
    places = [busiest(known, holding(known, third), COMPARED) for third in thirds if len(third) > 1]
    candidates: dict[str, int] = {}
    for place in (place for some in places for place in some):
        if len(known.folded[place]) <= 2 * LONGEST:
            candidates.setdefault(known.folded[place], place)
    near = get_close_matches(wanted, candidates, n=limit, cutoff=0.6)
    return [str(known.labels[candidates[match]]) for match in near]


def prefix_range(known: Completion, text: str) -> tuple[int, int]:
    """Where the sorted texts that begin with this one start and end."""
    first = known.sorted_text.search_sorted(text, "left")
    last = known.sorted_text.search_sorted(text + AFTER_ALL, "right")
    return int(first), int(last)


def holding(known: Completion, text: str) -> NDArray[np.int64]:
    """Places of the labels that hold the text anywhere."""
    return known.folded.str.contains(text, literal=True).arg_true().to_numpy().astype(np.int64)


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
