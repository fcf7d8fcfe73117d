"""Typing finds labels: beginnings first, then the rest, the busiest first; slips are forgiven."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.app.web.completion import completed, completion, nearest_labels
from autosf.graph.vocabulary import Vocabulary

LABELS = ["Virus", "virus_disease", "antivirus", "a virus", "Bacterium", "VIRUS", "disease", "ß", "e\u0301té"]


def known_of(labels: list[str], uses: list[int] | None = None):
    vocabulary = Vocabulary.of([pl.Series(labels, dtype=pl.String)])
    counts = np.array(uses if uses is not None else [1] * len(vocabulary), np.int64)
    return completion(vocabulary, counts), vocabulary


def found(text: str, limit: int = 10) -> list[str]:
    known, vocabulary = known_of(LABELS)
    return [vocabulary.label(place) for place in completed(known, text, limit)]


def test_beginnings_come_first_then_beginnings_of_words_then_the_rest():
    assert found("virus") == ["VIRUS", "Virus", "virus_disease", "a virus", "antivirus"]
    assert found("disease") == ["disease", "virus_disease"]
    assert found("  ViRuS_") == ["virus_disease"]
    assert found("no such") == []
    assert found("virus", 2) == ["VIRUS", "Virus"]


def test_a_label_that_is_the_text_comes_before_all_others():
    busy = [f"paris {number}" for number in range(20)]
    known, vocabulary = known_of(sorted([" paris", "Paris", "paris", *busy]), [1, 1, 1, *[9] * 20])
    for text, first in (
        ("paris", ["paris", "Paris"]),
        ("Paris", ["Paris", "paris"]),
        (" paris", [" paris", "Paris", "paris"]),
        ("PARIS", ["Paris", "paris"]),
    ):
        places = completed(known, text, 12)
        assert [vocabulary.label(place) for place in places][: len(first)] == first
        assert len(places) == 12


def test_a_label_of_any_length_is_found_by_all_of_it():
    long = ["x" * 5000 + end for end in ("a", "B", "c")]
    known, vocabulary = known_of(long, [3, 1, 2])
    assert vocabulary.label(completed(known, long[1], 12)[0]) == long[1]
    assert vocabulary.label(completed(known, long[2].upper(), 1)[0]) == long[2]


def test_the_busiest_come_first_and_without_a_text_the_busiest_of_all():
    known, vocabulary = known_of(["a1", "a2", "a3", "ba"], [1, 5, 3, 9])
    assert [vocabulary.label(place) for place in completed(known, "a", 3)] == ["a2", "a3", "a1"]
    assert [vocabulary.label(place) for place in completed(known, "", 2)] == ["ba", "a2"]
    assert [vocabulary.label(place) for place in completed(known, "a1", 3)] == ["a1"]


@given(st.lists(st.text("abC_ ", max_size=6), unique=True, min_size=1), st.text("aBc_ ", max_size=3))
def test_all_labels_that_hold_the_text_are_found_and_no_others(labels, text):
    known, vocabulary = known_of(labels)
    wanted = text.strip().lower()
    places = completed(known, text, 1000)
    assert len(places) == len(set(places))
    assert {vocabulary.label(place) for place in places} == {
        name for name in labels if wanted in name.lower()
    }
    names = [vocabulary.label(place) for place in places]
    begins = [name.lower().startswith(wanted) for name in names if name != text]
    assert begins == sorted(begins, reverse=True)
    assert text not in names or names[0] == text


@given(st.text(max_size=300))
def test_any_text_can_be_typed(text):
    known, _ = known_of(LABELS)
    assert len(completed(known, text, 3)) <= 3
    assert len(nearest_labels(known, text)) <= 3


@pytest.mark.parametrize(
    ("slip", "meant"),
    [("viruss_disease", "virus_disease"), ("bactreium", "Bacterium"), ("vrius_dsease", "virus_disease")],
)
def test_two_slips_are_forgiven(slip, meant):
    known, _ = known_of(LABELS)
    assert nearest_labels(known, slip)[0] == meant
