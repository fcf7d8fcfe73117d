"""The served pages in a browser: a search is watched while it runs, its model explored; hostile labels stay text.

`AUTOSF_SCREENSHOTS=docs/images pytest -m browser tests/app/web/test_browser.py` also takes the docs' pictures.
"""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from autosf.embedding.model_folder import save_model
from autosf.graph.synthetic import patterned_graph
from autosf.graph.writing import write_graph
from autosf.search.record import OUT_OF_TIME
from random_models import random_graph, random_model
from searched_run import NASTY, add_trials, ended_run, finish, made_run, nasty_graph, tried

pytestmark = pytest.mark.browser
LOOKS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
PATIENCE = 60_000  # milliseconds: a busy machine is no failure
HEBREW = "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd"
FOXES, LONG = "\U0001f98a" * 200, "x" * 10_000
ODD = ["virus", "causes", HEBREW, "\u202eturned", "W" * 40, "\u6f22" * 40, FOXES, LONG]


def started(*arguments: object, **options) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-m", "autosf", *map(str, arguments)], text=True, **options)


@contextmanager
def serving(folder: Path):
    """The address of `autosf serve` on a folder."""
    process = started("serve", folder, "--port", 0, "--rate", 1000, "--json", stdout=subprocess.PIPE)
    try:
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A served run, with its model, on a graph whose labels are scripts, quotes and HTML."""
    folder = tmp_path_factory.mktemp("served") / "run"
    ended_run(folder, nasty_graph())
    with serving(folder) as url:
        yield url


@pytest.fixture(scope="module")
def explorer(tmp_path_factory):
    """The explorer of a model with long, wide and turned labels, entities and relations alike."""
    graph = random_graph(entities=20, relations=len(ODD), triples=200, labels=ODD)
    with serving(save_model(tmp_path_factory.mktemp("odd") / "model", random_model(graph))) as url:
        yield url + "explore"


@pytest.fixture
def opened(chromium):
    """Opens an address; `page.faults` lists console messages, errors, dialogs and requests to elsewhere."""
    contexts = []

    def show(url: str, width: int = 1280, scheme: str = "light"):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        own = url[: url.index("/", 8)]
        page.on("console", lambda message: page.faults.append(message.text))
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("dialog", lambda dialog: page.faults.append(dialog.message))
        page.on("request", lambda asked: None if asked.url.startswith(own) else page.faults.append(asked.url))
        page.goto(url)
        return page

    yield show
    for context in contexts:
        context.close()


def assert_sound(page, width: int) -> None:
    """No fault so far, nothing wider than the page, no serious fault for those who hear or type."""
    from axe_playwright_python.sync_playwright import Axe

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert "broken" not in page.title()
    assert page.faults == []
    found = Axe().run(page).response["violations"]
    told = [
        (one["id"], one["nodes"][0]["target"])
        for one in found
        if one["impact"] in ("serious", "critical") or one["id"] == "landmark-unique"
    ]
    assert told == []


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_live_view_of_an_ended_search_is_sound(opened, address, width, scheme):
    page = opened(address + "live", width, scheme)
    page.locator("#learning-curves svg").wait_for()
    assert page.locator("#state").text_content().startswith("ended: ")
    assert page.locator("#leaderboard tbody tr").count() == 20
    assert page.locator("#best svg.structure").is_visible()
    page.locator("#more").click()
    page.locator("#leaderboard tbody tr").nth(20).wait_for()
    assert_sound(page, width)


@pytest.mark.parametrize(
    ("strategy", "ending", "named"),
    [
        ("free", OUT_OF_TIME, "The best guess"),
        ("free", "all 24 structures are tried", "The winner"),
        ("random", OUT_OF_TIME, "The winner"),
    ],
)
def test_the_winner_is_the_best_guess_where_the_time_ended_before_the_finals(
    opened, tmp_path, strategy, ending, named
):
    run = made_run(tmp_path / "run", nasty_graph(), strategy)
    add_trials(run, tried())
    finish(run, ending)
    with serving(run.folder) as url:
        page = opened(url + "live")
        page.locator("#best svg.structure").wait_for()
        assert page.locator("#best-title").text_content() == named
        told = page.get_by_text("The time ended before the finals: it is the best guess from all trainings")
        assert told.count() == (named == "The best guess")
        assert_sound(page, 1280)


def test_a_leaderboard_too_long_to_show_says_so(opened, address):
    def long(route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json=answer.json() | {"structures": 820})

    page = opened(address + "api")
    page.route("**/api/leaderboard*", long)
    page.goto(address + "live")
    page.locator("#more").wait_for()
    assert page.locator("#more").text_content() == "Show the first 200 of 820"
    page.locator("#more").click()
    page.locator("#leaderboard tbody tr").nth(20).wait_for()
    page.get_by_text("These are the first 200 of 820.").wait_for()
    assert page.locator("#more").is_hidden()
    assert page.locator("#figures dt").first.text_content() == "Best structure\u2019s MRR"


def test_a_probability_is_never_said_to_be_certain(opened, address):
    page = opened(address + "api")
    shown = page.evaluate(
        "import('/assets/common.js').then(({ percent }) => [0, 0.004, 0.5, 0.994, 0.996, 1].map(percent))"
    )
    assert shown == ["0 %", "<1 %", "50 %", "99 %", ">99 %", ">99 %"]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_explorer_is_sound_with_the_worst_of_labels(opened, address, width, scheme):
    page = opened(address + "explore", width, scheme)
    page.locator("#entity").click()
    page.locator("#entity-list li").first.click()
    page.locator(".picture").wait_for()
    page.locator(".asked").first.click()
    page.locator("#answers tr").first.wait_for()
    page.locator("#check button").click()
    page.locator("#verdict strong").wait_for()
    assert_sound(page, width)
    page.locator("#relation").fill("script")
    page.locator("#relation-list li").first.wait_for()
    assert_sound(page, width)


@pytest.mark.parametrize(("width", "scheme"), LOOKS[:2])
def test_the_page_of_the_api_is_sound(opened, address, width, scheme):
    page = opened(address + "api", width, scheme)
    page.locator(".operation").first.wait_for()
    assert page.locator(".operation").count() >= 9
    assert_sound(page, width)


def test_hostile_labels_stay_text_wherever_they_show(opened, address):
    page = opened(address + "explore")
    headings = page.locator("h1").count()
    for number, label in enumerate(NASTY):
        asked = query(entity=f"{label} {number}", relation=f"{label} relation", side="head")
        page.goto(f"{address}explore?{asked}")
        page.locator("#answers tr").first.wait_for()
        assert page.locator("#question").text_content() == f"?  {label} relation  {label} {number}"
        assert page.locator("#entity").input_value() == f"{label} {number}"
        assert page.locator("img[src=x]").count() == 0
        assert page.locator("h1").count() == headings
        assert page.locator("main script").count() == 0
    assert "broken" not in page.title()
    assert page.faults == []


def query(**parameters: str) -> str:
    from urllib.parse import urlencode

    return urlencode(parameters)


def test_one_clicks_from_entity_to_entity_and_back(opened, address):
    page = opened(address + "explore")
    page.locator("#entity").press_sequentially("RIGHT to", delay=20)
    page.locator("#entity-list li").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("#similar a").first.wait_for()
    first = page.locator("#entity").input_value()
    assert "right to left" in first
    page.locator("#relation").press_sequentially("relat", delay=20)
    page.locator("#relation-list li").nth(1).click()
    page.locator("#answers tr").nth(9).wait_for()
    assert page.locator("#answers .share-text").first.text_content().endswith(" %")
    chosen = page.locator("#answers a").nth(1)
    label = chosen.text_content()
    chosen.click()
    page.wait_for_function("label => document.querySelector('#entity').value === label", arg=label)
    page.locator(".picture .centre").wait_for()
    assert page.locator("#answers-table").is_hidden()
    page.go_back()
    page.wait_for_function("label => document.querySelector('#entity').value === label", arg=first)
    page.locator("#answers tr").nth(9).wait_for()
    page.locator("#hide").check()
    page.wait_for_function("() => !document.querySelector('#answers .badge')")
    page.locator("input[value=head]").check()
    page.wait_for_function("() => document.querySelector('#question').textContent.startsWith('?')")
    page.locator(".picture a").first.click()
    page.wait_for_function("label => document.querySelector('#entity').value !== label", arg=first)
    assert page.faults == []


def test_a_misspelt_entity_is_offered_the_nearest(opened, address):
    page = opened(f"{address}explore?" + query(entity="</style></svg><h1>bgi</h1> 2"))
    page.locator("#trouble a").first.click()
    page.locator(".picture").wait_for()
    assert page.locator("#entity").input_value() == "</style></svg><h1>big</h1> 2"
    assert page.locator("#trouble").is_hidden()


def test_enter_takes_the_text_where_the_list_is_of_an_earlier_one(opened, explorer):
    page = opened(explorer)
    page.locator("#entity").click()
    page.locator("#entity-list li").first.wait_for()
    offered = page.locator(".option-label").all_text_contents()
    label = next(f"e{number}" for number in range(20) if f"e{number}" not in offered)
    page.locator("#entity").evaluate(
        """(input, label) => {
            input.value = label;
            input.dispatchEvent(new Event("input"));
            input.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }));
        }""",
        label,
    )
    page.locator(".picture").wait_for()
    assert page.locator("#entity").input_value() == label
    page.locator("#entity").fill("caus")
    page.locator("#entity-list li").get_by_text("causes").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/explore?entity=causes")
    assert page.faults == []


def test_a_typed_label_stays_when_one_goes_on_to_the_next_field(opened, explorer):
    page = opened(explorer)
    for leave in (lambda: page.keyboard.press("Tab"), lambda: page.locator("#relation").click()):
        page.goto(explorer)
        page.locator("#entity").fill("virus")
        leave()
        page.locator("#relation-list").get_by_text("causes").click()
        page.locator("#answers tr").first.wait_for()
        assert page.locator("#entity").input_value() == "virus"
        assert page.url.endswith("?entity=virus&relation=causes")
    assert page.faults == []


def test_a_refused_question_leaves_no_earlier_answers(opened, explorer):
    page = opened(f"{explorer}?entity=virus&relation=causes")
    page.locator("#answers tr").first.wait_for()
    page.locator("#entity").fill("viruz")
    page.locator("#entity-list").wait_for(state="hidden")
    page.keyboard.press("Enter")
    page.locator("#trouble").wait_for()
    page.locator("#answers-table").wait_for(state="hidden")
    assert page.locator("#question").text_content() == ""
    assert page.locator("#more").is_hidden()


def test_turned_labels_turn_nothing_but_themselves(opened, explorer):
    page = opened(explorer)
    for entity, relation in (("virus", "\u202eturned"), ("\u202eturned", HEBREW), (HEBREW, HEBREW)):
        page.goto(f"{explorer}?" + query(entity=entity, relation=relation))
        page.locator("#answers tr").first.wait_for()
        page.locator("#similar a").first.wait_for()
        lefts = page.locator("#question bdi").evaluate_all(
            "parts => parts.map(part => part.getBoundingClientRect().left)"
        )
        assert len(lefts) == 3
        assert lefts == sorted(lefts)
        links = page.locator("#answers a, #facts a, #similar a, .option-label")
        assert links.filter(has=page.locator("bdi")).count() == links.count() > 0
    assert page.faults == []


def test_long_labels_are_shown_in_part_with_all_of_them_under_the_pointer(opened, explorer):
    page = opened(explorer)
    for label in (FOXES, LONG):
        page.goto(f"{explorer}?" + query(entity=label, relation=label))
        page.locator("#answers tr").first.wait_for()
        page.locator("#similar a").first.wait_for()
        page.locator("#entity").focus()
        page.locator("#entity-list li").first.wait_for()
        asked = page.locator("#question bdi").first
        assert asked.text_content() == label[:159] + "\u2026"
        assert asked.get_attribute("title") == label
        texts = page.locator("bdi").all_text_contents()
        assert max(map(len, texts)) == 160
        assert page.locator("body").evaluate("body => body.textContent.isWellFormed()")
        assert len(page.title()) < 100
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.faults == []


def test_labels_fit_into_the_boxes_of_the_picture(opened, explorer):
    page = opened(explorer)
    for label in ("virus", "W" * 40, "\u6f22" * 40, FOXES, LONG):
        page.goto(f"{explorer}?" + query(entity=label))
        page.locator(".picture").wait_for()
        spare = page.locator(".picture text").evaluate_all(
            """texts => texts.map(text =>
                text.parentNode.querySelector("rect").width.baseVal.value - text.getComputedTextLength())"""
        )
        assert len(spare) > 2
        assert min(spare) > 8
        assert page.locator(".picture .centre text").text_content() != "\u2026"
    assert page.faults == []


@pytest.mark.slow
def test_the_live_view_follows_a_search_through_a_kill_and_its_resumption(opened, tmp_path):
    made = patterned_graph(symmetric=1, general=1, entities=24, triples=40, valid=0.1, test=0.1)
    graph, folder = write_graph(made, tmp_path / "rules"), tmp_path / "run"
    slow = [
        "--epochs",
        800,
        "--dimension",
        8,
        "--set",
        "validate_every=50",
        "--strategy",
        "paper",
        "--workers",
        1,
    ]
    search = started("search", graph, "--out", folder, *slow, stderr=subprocess.DEVNULL)
    try:
        waited(lambda: (folder / "run.json").exists())
        with serving(folder) as url:
            page = opened(url)
            page.locator("#state[data-state=running]").wait_for()
            page.locator(".card progress").first.wait_for()
            rows = page.locator("#leaderboard tbody tr")
            rows.nth(1).wait_for()
            page.locator("#search-curve svg").wait_for()
            seen = rows.count()
            rows.nth(seen).wait_for()  # it grows by itself
            assert_sound(page, 1280)
            search.kill()
            search.wait()
            page.locator("#state[data-state=stopped]").wait_for()
            page.get_by_text("autosf resume").wait_for()
            seen = rows.count()
            search = started("resume", folder, "--workers", 1, stderr=subprocess.DEVNULL)
            page.locator("#state[data-state=running]").wait_for()
            rows.nth(seen).wait_for()
            assert page.faults == []
    finally:
        search.kill()
        search.wait()


def waited(is_so) -> None:
    deadline = time.monotonic() + PATIENCE / 1000
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.skipif("AUTOSF_SCREENSHOTS" not in os.environ, reason="pictures are taken when asked for")
def test_pictures_for_the_docs(opened, tmp_path):
    """Of a real search, while it runs, and of its model."""
    target = Path(os.environ["AUTOSF_SCREENSHOTS"])
    target.mkdir(parents=True, exist_ok=True)
    folder = tmp_path / "umls-search"
    search = started("search", "umls", "--trials", 40, "--out", folder, stderr=subprocess.DEVNULL)
    waited(lambda: (folder / "run.json").exists())
    with serving(folder) as url:
        pages = {}
        for name, width, scheme in (
            ("light", 1100, "light"),
            ("dark", 1100, "dark"),
            ("phone", 390, "light"),
        ):
            pages[name] = opened(url + "live", width, scheme)
            pages[name].set_viewport_size({"width": width, "height": 1300})
        for name, page in pages.items():
            page.locator("#leaderboard tbody tr").nth(12).wait_for(timeout=10 * PATIENCE)
            page.locator(".card").first.wait_for()
            page.screenshot(path=target / f"live-{name}.png")
        assert search.wait() == 0
        for name, page in pages.items():
            page.goto(f"{url}explore?" + query(entity="virus", relation="causes"))
            page.locator("#answers tr").nth(5).wait_for()
            page.locator("#check button").click()
            page.locator("#verdict strong").wait_for()
            page.screenshot(path=target / f"explorer-{name}.png")
