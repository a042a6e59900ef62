"""The page of a history in a real browser."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from netprobe.history.outages import replay
from netprobe.model.outage import RouteMark
from netprobe.report.verbs.history_page import write_history_page
from tests.browsers import make_patient, open_browser, wait_until_painted
from tests.history.test_outages import OTHER, REJECT, TCP, bad, look

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.needs("chromium")]
EVIL = "</title><script>window.hacked=1</script>" + "x" * 5000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests."""
    with open_browser() as opened:
        yield opened


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens a page with an open outage, one that ended, a blind host, a route that changed, and
    hostile words. It asks for nothing but itself, and its policy complains of nothing."""
    path = tmp_path / "history.html"
    contexts: list[BrowserContext] = []
    asked: list[str] = []
    said: list[str] = []

    def open_it(**settings: object) -> Page:
        write_page(path)
        contexts.append(browser.new_context(**settings))  # type: ignore[arg-type]
        page = make_patient(contexts[-1].new_page())
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.goto(path.as_uri())
        wait_until_painted(page)
        return page

    yield open_it
    for context in contexts:
        context.close()
    assert set(asked) == {path.as_uri()}
    assert said == []


def write_page(path: Path) -> None:
    drop = bad({TCP: ((5, 9),)}, title=EVIL)
    mark = RouteMark("next-hop", "a", ("b", EVIL), 86000, 89900, EVIL, "10.0.0.2")
    looks = [
        look(86400, blind={TCP: ((1, 4),)}), replace(look(90000, drop), marks=(mark,)), look(99000),
        look(110000, bad({OTHER: ((1, 20),)}, REJECT), blind={TCP: ((1, 4),)}),
    ]  # fmt: skip
    stream = io.StringIO()
    write_history_page(replay(looks), stream)
    path.write_text(stream.getvalue(), encoding="ascii")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_history(open_page: Callable[..., Page], scheme: str) -> None:
    """Open lanes and closed ones can be read by everybody."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    page = open_page(color_scheme=scheme)
    assert Axe().run(page).response["violations"] == []
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert Axe().run(page).response["violations"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_sure_is_strong(open_page: Callable[..., Page], scheme: str) -> None:
    """On light and on dark, as the page says; an open outage has one strong bar, to the end."""
    page = open_page(color_scheme=scheme)

    bad, ground, share = page.evaluate("""() => {
        const style = (words) => getComputedStyle(document.querySelector(words));
        const bars = [style(".lane .bad").fill, style(".lane svg").backgroundColor];
        const colours = bars.map((one) => one.match(/\\d+/g).slice(0, 3).map(Number));
        return [...colours, Number(style(".lane .unsure").opacity)];
    }""")
    assert max(abs(one - other) for one, other in zip(bad, ground, strict=True)) > 100
    assert 0.2 < share < 0.5
    assert page.locator("main > .quiet").inner_text().startswith("Faint: it began or ended ")
    assert page.locator("details.open rect.bad").count() == 1


def test_a_narrow_page_with_hostile_words(open_page: Callable[..., Page]) -> None:
    """Nothing runs, the page is as wide as the window, and a lane opens with a key."""
    page = open_page(viewport={"width": 360, "height": 700})

    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("details[open]")
    assert page.locator("details[open] table").is_visible()
    assert page.locator("details[open] .mark").inner_text().startswith("the way changed within ")
    assert page.locator("rect.tick").count() == 1


def test_a_printed_history_has_every_flow(open_page: Callable[..., Page]) -> None:
    """On paper nothing can be opened."""
    page = open_page()
    page.emulate_media(media="print")

    assert page.locator("details table").count() == 2
    for table in page.locator("details table").all():
        assert table.is_visible()
