"""The report in a browser: no error, no request, no accessibility fault; wide and narrow, light and dark.

`AUTOSF_SCREENSHOTS=docs/images pytest -m browser tests/app/test_report_browser.py` also takes the docs' pictures.
"""

import os
from pathlib import Path

import pytest

from autosf.app.cli import run as autosf
from autosf.app.report import write_report
from autosf.app.report.opponent import opponent_of, train_opponent
from autosf.app.run_results import outcome_of
from searched_run import ended_run, nasty_graph

pytestmark = pytest.mark.browser
LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
DARK, LIGHT = "rgb(19, 23, 29)", "rgb(255, 255, 255)"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The report of a run on a graph whose labels are scripts, quotes and HTML."""
    place = tmp_path_factory.mktemp("report")
    run = ended_run(place / "run", nasty_graph())
    train_opponent(run, opponent_of(run, outcome_of(run)), "cpu", pytest.fail, lambda _: None)
    write_report(run, place / "report.html")
    return place / "report.html"


@pytest.fixture
def opened(chromium, written):
    """Opens the report at a width and in a colour scheme; `page.faults` lists what went wrong."""
    contexts = []

    def show(width: int, scheme: str):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        page.on("console", lambda message: page.faults.append(message.text))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("request", lambda request: page.faults.append(request.url))
        page.goto(written.as_uri())
        assert page.faults.pop(0) == written.as_uri()
        return page

    yield show
    for context in contexts:
        context.close()


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_page_is_quiet_fits_and_is_accessible(opened, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = opened(width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        DARK if scheme == "dark" else LIGHT
    )
    assert page.title() != "broken", "a label was run as a script"
    assert page.locator("svg.chart").count() >= 7
    assert page.faults == []
    found = Axe().run(page).response["violations"]
    grave = [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found if fault["impact"] in GRAVE]
    assert grave == []


GRAVE = ("serious", "critical")


def test_colours_can_be_chosen_without_any_script(opened):
    page = opened(1280, "light")
    page.get_by_label("dark").check()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == DARK
    page.get_by_label("light").check()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == LIGHT


def test_figures_are_saved_from_the_page(opened, tmp_path):
    page = opened(1280, "light")
    with page.expect_download() as download:
        page.get_by_label("Learning curves, data as CSV").click()
    download.value.save_as(tmp_path / "curves.csv")
    assert (tmp_path / "curves.csv").read_text(encoding="utf-8").startswith("structure,name,seeds,epoch")


def test_it_prints_on_light_ground(opened):
    page = opened(1280, "dark")
    page.get_by_label("dark").check()
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.figures dd')).color") == "rgb(26, 34, 48)"
    assert not page.get_by_label("dark").is_visible()
    assert page.pdf().startswith(b"%PDF")


def test_on_paper_nothing_is_cut_off_or_folded_away(opened):
    """The printed width of A4 is about 700 px."""
    page = opened(700, "light")
    page.emulate_media(media="print")
    ends = "[...document.querySelectorAll('table')].map(table => table.getBoundingClientRect().right)"
    assert max(page.evaluate(ends)) <= 700
    inside = "[...document.querySelectorAll('.grid > *')].map(part => [part.clientWidth, part.scrollWidth])"
    for width, needed in page.evaluate(inside):
        assert needed <= width
        assert width > 300
    is_seen = "table => table.checkVisibility({contentVisibilityAuto: true})"
    assert page.evaluate(f"[...document.querySelectorAll('table')].every({is_seen})")


@pytest.mark.slow
@pytest.mark.skipif("AUTOSF_SCREENSHOTS" not in os.environ, reason="pictures are taken when asked for")
def test_pictures_for_the_docs(chromium, tmp_path):
    """Of a real search: what the docs show is what a user sees."""
    folder = tmp_path / "kinships-search"
    assert autosf(["search", "kinships", "--trials", "40", "--out", str(folder)]) == 0
    assert autosf(["report", str(folder)]) == 0
    target = Path(os.environ["AUTOSF_SCREENSHOTS"])
    target.mkdir(parents=True, exist_ok=True)
    for name, width, height, scheme in (
        ("report-light", 1100, 1300, "light"),
        ("report-dark", 1100, 1300, "dark"),
        ("report-phone", 390, 1300, "light"),
    ):
        page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        page.goto((folder / "report.html").as_uri())
        page.screenshot(path=target / f"{name}.png")
        page.close()
