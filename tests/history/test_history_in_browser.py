"""The page of a history in a real browser."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from netprobe.history.outages import replay
from netprobe.model.outage import RouteMark
from netprobe.report.verbs.history_page import write_history_page
from tests.history.test_outages import OTHER, REJECT, TCP, bad, look

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.needs("chromium")]
EVIL = "</title><script>window.hacked=1</script>" + "x" * 5000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; root has no sandbox for it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 # slow, and only this needs it

    with sync_playwright() as player:
        yield player.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def open_page(browser: Browser, folder: Path, **settings: object) -> Page:
    """A page with an open outage, one that ended, a blind host, a route that changed, and hostile
    words."""
    drop = bad({TCP: ((5, 9),)}, title=EVIL)
    mark = RouteMark("next-hop", "a", ("b", EVIL), 86000, 89900, EVIL, "10.0.0.2")
    looks = [
        look(86400, blind={TCP: ((1, 4),)}), replace(look(90000, drop), marks=(mark,)), look(99000),
        look(110000, bad({OTHER: ((1, 20),)}, REJECT), blind={TCP: ((1, 4),)}),
    ]  # fmt: skip
    stream = io.StringIO()
    write_history_page(replay(looks), stream)
    path = folder / "history.html"
    path.write_text(stream.getvalue(), encoding="ascii")
    page = browser.new_context(**settings).new_page()  # type: ignore[arg-type]
    page.goto(path.as_uri())
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_a_history(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """Open lanes and closed ones can be read by everybody."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    page = open_page(browser, tmp_path, color_scheme=scheme)
    assert Axe().run(page).response["violations"] == []
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert Axe().run(page).response["violations"] == []


def test_a_narrow_page_with_hostile_words(browser: Browser, tmp_path: Path) -> None:
    """Nothing runs, the page is as wide as the window, and a lane opens with a key."""
    page = open_page(browser, tmp_path, viewport={"width": 360, "height": 700})

    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("details[open]")
    assert page.locator("details[open] table").is_visible()
    assert page.locator("details[open] .mark").inner_text().startswith("the way changed within ")
    assert page.locator("rect.tick").count() == 1


def test_a_printed_history_has_every_flow(browser: Browser, tmp_path: Path) -> None:
    """On paper nothing can be opened."""
    page = open_page(browser, tmp_path)
    page.emulate_media(media="print")

    assert page.locator("details table").count() == 2
    for table in page.locator("details table").all():
        assert table.is_visible()
