"""The site has every page once, in an order, and works from a folder without a network."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from netprobe.cli.main import cli
from pages.site import DOCS, OUTER, ROOT, SECTIONS, site_pages, write_site
from tests.browsers import make_patient, open_browser
from tests.needs import skip

MKDOCS = ROOT / ".tox" / "site" / "bin" / "mkdocs"


def test_every_page_stands_in_one_section() -> None:
    """Whoever writes a page says where in the site people find it."""
    written = [path.name for path in DOCS.glob("*.md")] + [*OUTER, "commands.md"]

    assert Counter(page for pages in SECTIONS.values() for page in pages) == Counter(written)


@pytest.mark.slow
def test_links_of_the_site_lead_to_its_pages() -> None:
    """A link leads to a page of the site or out of the project; other files are words."""
    pages = site_pages()
    for name, text in pages.items():
        prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)", prose):
            place = (Path("/", name).parent / target).resolve().relative_to("/")
            known = "://" in target or str(place) in pages or (DOCS / place).suffix == ".png"
            assert known, f"{name}: {target}"


@pytest.mark.slow
def test_the_page_of_commands_has_all_of_them() -> None:
    """Each verb has a section with its options, the rare ones too."""
    page = site_pages()["commands.md"]

    assert {f"## netprobe {name}\n" in page for name in cli.commands} == {True}
    assert "--max-results" in page


def test_the_readme_is_short_and_fits_a_terminal() -> None:
    """At most 200 lines, and what it shows of a terminal, or to type there, is 100 columns wide."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    typed = re.findall(r"^ {4}(.*)", text, re.MULTILINE)

    assert len(text.splitlines()) <= 200
    assert shown
    assert typed
    lines = [*typed, *(line for block in shown for line in block.splitlines())]
    assert max(map(len, lines)) <= 100


@pytest.mark.full
@pytest.mark.needs("chromium")
def test_the_search_works_from_a_folder(tmp_path: Path) -> None:
    """A browser that opens the folder finds a word, and asks nothing of any network."""
    if not MKDOCS.exists():
        skip("mkdocs is not installed", "make site")
    write_site(tmp_path)
    subprocess.run([MKDOCS, "build", "--strict", "--quiet"], cwd=tmp_path, check=True)
    with open_browser() as browser:
        page = make_patient(browser.new_page(viewport={"width": 1300, "height": 900}))
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "site" / "index.html").as_uri())
        page.locator("input[data-md-component=search-query]").click()
        page.keyboard.type("memberlist")
        page.locator(".md-search-result__item").first.wait_for()
        found = page.locator(".md-search-result__item a").first.get_attribute("href") or ""

    assert ".html" in found
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
