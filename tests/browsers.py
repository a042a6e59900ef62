"""Debian's Chromium for tests that look at pages as people do, however busy the machine is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE_MS = PATIENCE_S * 1000
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start it, and end it; root has no sandbox for it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 # slow, and few tests need it

    with sync_playwright() as player:
        chromium = shutil.which("chromium")
        browser = player.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], timeout=PATIENCE_MS
        )
        yield browser
        browser.close()


def make_patient(page: Page) -> Page:
    """Let a page wait as long as the machine needs."""
    page.set_default_timeout(PATIENCE_MS)
    return page


def wait_until_painted(page: Page) -> None:
    """Wait for the first picture: Chromium drops keys and clicks that come before it."""
    page.evaluate(PAINTED)
