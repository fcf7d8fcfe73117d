"""Charts hold every point, stay text whatever they are named, and are files of their own when asked."""

import re
from itertools import pairwise
from math import inf, nan
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosf.algebra.zoo import named
from autosf.app.charts import (
    HEIGHT,
    WIDTH,
    Bar,
    Series,
    bar_chart,
    line_chart,
    number,
    scale,
    scatter_chart,
    standalone,
)
from autosf.app.drawing_svg import structure_svg
from autosf.app.pages import stylesheet

NASTY = '<script>alert("x")</script> & \x00\x0b\u202e'
AXES = {"title": NASTY, "x_label": "epochs", "y_label": "MRR"}
values = st.floats(-1e9, 1e9)


def lines(*series: Series, **more: bool) -> ElementTree.Element:
    return ElementTree.fromstring(line_chart(series, **AXES, **more))


def test_every_point_is_a_dot_that_tells_its_values():
    root = lines(Series("free", [(1, 0.25), (2, 0.5), (30_000, 0.75)]))
    assert [dot.find("title").text for dot in root.iter("circle")] == [
        "free: 1, 0.25",
        "free: 2, 0.5",
        "free: 30k, 0.75",
    ]


@given(st.lists(st.tuples(values, values), max_size=8))
def test_all_points_lie_within_the_drawing(points):
    for dot in lines(Series("any", points)).iter("circle"):
        assert 0 <= float(dot.get("cx")) <= WIDTH
        assert 0 <= float(dot.get("cy")) <= HEIGHT


@given(values, values)
def test_a_scale_ends_on_round_ticks_around_its_values(one, other):
    found = scale([one, other], 0, 100, whole=True, most=5)
    slack = 1e-6 * max(1.0, abs(one), abs(other))
    assert found.low <= min(one, other) + slack
    assert found.high >= max(one, other) - slack
    assert 2 <= len(found.ticks) <= 9


def test_points_without_a_place_are_left_out():
    root = lines(Series("free", [(1, 0.5), (2, nan), (3, inf)], labels=["a", "b", "c"]))
    assert [dot.find("title").text for dot in root.iter("circle")] == ["a: 1, 0.5"]


def test_a_higher_value_stands_higher():
    low, high = lines(Series("free", [(1, 0.1), (2, 0.2)])).iter("circle")
    assert float(high.get("cy")) < float(low.get("cy"))


def test_stairs_turn_at_right_angles_only():
    (path,) = (node for node in lines(Series("a", [(1, 1), (2, 3), (4, 4)]), steps=True).iter("path")
               if node.get("class") == "line")  # fmt: skip
    assert re.sub(r"[\d. ]+", "", path.get("d")) == "MHVHV"


def test_a_band_is_one_closed_surface():
    (band,) = (
        node
        for node in lines(Series("a", [(1, 2)], band=[(1, 1, 3), (2, 2, 4)])).iter("path")
        if "band" in node.get("class")
    )
    assert band.get("d").endswith("Z")


def test_series_are_told_apart_by_name_once_there_are_two():
    alone, both = lines(Series("free", [(1, 1)])), lines(Series("free", [(1, 1)]), Series("tpe", [(1, 2)]))
    assert "free" not in [node.text for node in alone.iter("text")]
    assert {"free", "tpe"} <= {node.text for node in both.iter("text")}


def test_a_cloud_without_points_is_not_in_the_legend():
    clouds = [Series("new", [(1, 1)]), Series("known", []), Series("brief", [(2, 2), (3, nan)])]
    root = ElementTree.fromstring(scatter_chart(clouds, **AXES))
    assert [text.text for text in root.iter("text") if text.get("class") == "strong"] == ["new", "brief"]


def test_bars_are_as_long_as_their_values():
    bars = [Bar("one", [1.0, 2.0]), Bar("two", [4.0, 0.0])]
    root = ElementTree.fromstring(bar_chart(bars, series=["x", "y"], title="t", x_label="s"))
    told = [node for node in root.iter("rect") if node.find("title") is not None]
    widths = [float(node.get("width")) for node in told]
    assert [width / widths[0] for width in widths] == pytest.approx([1, 2, 4, 0], abs=0.01)


NAMES = ["W" * 40, "\u6f22" * 40, "UPPER_CASE_RELATION", "m" * 40, "\U0001f98a" * 9, "x" * 500, "a relation"]


@pytest.mark.browser
def test_names_of_wide_letters_stay_on_the_drawing_and_apart(chromium):
    charts = [
        bar_chart([Bar(name, [1.0]) for name in NAMES], series=["s"], title="t", x_label="x"),
        line_chart([Series(name, [(1, 1)]) for name in NAMES], **AXES),
    ]
    page = chromium.new_page()
    for chart in charts:
        page.set_content(standalone(chart))
        texts = page.locator("text.strong").evaluate_all(
            "texts => texts.map(text => text.getBBox()).map(box => [box.x, box.y, box.x + box.width])"
        )
        assert all(start >= 0 and end <= 480 for start, _, end in texts)
        rows = sorted((y, start, end) for start, y, end in texts)
        assert all(y != below or end < start for (y, _, end), (below, start, _) in pairwise(rows))
    page.close()


def test_a_name_is_cut_where_its_room_ends_and_told_whole_under_the_pointer():
    drawn = bar_chart([Bar(name, [1.0]) for name in NAMES], series=["s"], title="t", x_label="x")
    texts = [node.text for node in ElementTree.fromstring(drawn).iter("text") if node.get("class")]
    cut = [text.removesuffix("\u2026") for text in texts]
    assert all(name.startswith(text) for name, text in zip(NAMES, cut, strict=True))
    assert all(len(text) >= 7 for text in cut)
    assert texts[-1] == "a relation"
    assert len(cut[NAMES.index("x" * 500)]) > len(cut[0])
    assert [name for name in NAMES if f"<title>{name}</title>" in drawn] == [
        name for name in NAMES if len(name) < 200
    ]


def test_a_bar_below_zero_goes_the_other_way():
    root = ElementTree.fromstring(
        bar_chart([Bar("up", [1.0]), Bar("down", [-1.0])], series=["d"], title="t", x_label="d")
    )
    up, down = root.iter("rect")
    assert float(down.get("x")) + float(down.get("width")) == pytest.approx(float(up.get("x")))


@pytest.mark.parametrize(
    "drawn",
    [
        line_chart([], **AXES),
        line_chart([Series(NASTY, [(0, 0)], labels=[NASTY]), Series(NASTY, [])], **AXES),
        scatter_chart([Series(NASTY, [(1, 1)], labels=[NASTY])], **AXES, diagonal=True),
        bar_chart([Bar(NASTY, [nan, 1.0])], series=[NASTY, NASTY], title=NASTY, x_label=NASTY),
        bar_chart([], series=[], title="none", x_label="nothing"),
        structure_svg(named("complex").structure, "ComplEx"),
    ],
)
def test_a_file_is_whole_and_draws_no_colour_from_outside(drawn):
    assert "<script" not in drawn
    text = standalone(drawn, heading=NASTY)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.get("width")
    assert "<script" not in text
    assert "var(" not in text
    assert "light-dark(" not in text
    assert "max-width" not in text, "how large a page shows it is no matter of the file"
    assert "style=" not in drawn  # which a strict Content-Security-Policy would not admit


def test_every_class_of_a_drawing_has_a_rule():
    drawn = line_chart([Series("a", [(i, i) for i in range(50)], band=[(1, 1, 2)])] * 6, **AXES)
    drawn += structure_svg(named("quate").structure)
    classes = {name for found in re.findall(r'class="([^"]+)"', drawn) for name in found.split()}
    missing = {name for name in classes if not re.search(rf"\.{name}\b", stylesheet())}
    assert missing == set()


def test_the_stylesheet_loads_nothing():
    assert "url(" not in stylesheet()
    assert "@import" not in stylesheet()


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.25, "0.25"), (1500, "1,500"), (20_000, "20k"), (3e6, "3M"), (-0.5, "\N{MINUS SIGN}0.5"), (0, "0")],
)
def test_numbers_are_short(value, told):
    assert number(value) == told


def test_whole_numbers_have_whole_ticks():
    drawn = line_chart(
        [Series("trials", [(n, n / 14) for n in range(15)])], title="t", x_label="x", y_label="y"
    )
    assert ">5<" in drawn
    assert ">2.5<" not in drawn
