"""The README's picture, `make picture`: ``python -m pages.picture REPORT.html PICTURE.png``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1200, 886


def take_picture(report: Path, picture: Path) -> None:
    """Open a report's page in Chromium, as a reader does, and keep what the first screen shows."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(report.absolute().as_uri())
        page.locator("html[data-ready]").wait_for()
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    take_picture(Path(sys.argv[1]), Path(sys.argv[2]))
