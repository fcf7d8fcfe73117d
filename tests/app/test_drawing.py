"""Structures as people see them."""

from xml.etree import ElementTree

import pytest

from autosf.algebra.structure import Structure
from autosf.algebra.zoo import ZOO, named
from autosf.app.drawing import as_text, colour, formula
from autosf.app.drawing_svg import structure_svg


def test_text_shows_the_rows():
    lines = as_text(named("complex").structure).plain.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "r1 . r3 .",
        ". r2 . r4",
        "-r3 . r1 .",
        ". -r4 . r2",
    ]


def test_text_colours_parts_and_underlines_minus():
    spans = as_text(Structure(((1, -2), (0, 1)))).spans
    assert [str(span.style) for span in spans] == [
        f"bold {colour(1)}",
        f"bold {colour(2)} underline",
        "dim",
        f"bold {colour(1)}",
    ]


def test_formula_starts_without_a_plus():
    assert formula(Structure(((1, -2), (0, 1)))) == "<h1, r1, t1> - <h1, r2, t2> + <h2, r1, t2>"
    assert formula(Structure(((0, 0), (0, 0)))) == "0"


@pytest.mark.parametrize("known", ZOO, ids=lambda known: known.name)
def test_svg_has_a_square_per_cell_and_a_label_per_term(known):
    root = ElementTree.fromstring(structure_svg(known.structure, known.title))
    labels = [node.text for node in root.iter("text")]
    minus = "\N{MINUS SIGN}"
    assert labels == [f"{minus if t.sign < 0 else ''}r{t.relation}" for t in known.structure.terms()]
    assert sum(node.get("class") == "cell" for node in root.iter("rect")) == 16


def test_svg_escapes_its_title():
    root = ElementTree.fromstring(structure_svg(named("simple").structure, '<script>"&'))
    assert root.find("title").text == '<script>"&'
    assert root.get("aria-label") == '<script>"&'


def test_svg_tells_minus_from_plus_without_colour():
    def kinds(name):
        root = ElementTree.fromstring(structure_svg(named(name).structure))
        return [node.get("class").split()[-1] for node in root.iter("rect") if node.get("class") != "cell"]

    assert kinds("distmult") == ["plus"] * 4
    assert sorted(kinds("complex")) == ["minus"] * 2 + ["plus"] * 6
