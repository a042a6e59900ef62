"""Parts of pages that are printed from code are fresh, and what people write stays short."""

from __future__ import annotations

import os

from pages.printed import PART, PARTS, list_pages, print_parts


def test_printed_parts_are_fresh() -> None:
    """Whoever changes what a part is printed from prints the page again (``make docs``)."""
    for path in list_pages():
        text = path.read_text(encoding="utf-8")
        if os.environ.get("NETPROBE_REWRITE") == "docs":
            path.write_text(print_parts(text), encoding="utf-8")
            text = print_parts(text)

        assert print_parts(text) == text, path


def test_every_part_stands_on_one_page() -> None:
    """A marker that somebody mistypes or forgets is found."""
    pages = [path.read_text(encoding="utf-8") for path in list_pages()]
    found = [match[2] for text in pages for match in PART.finditer(text)]

    assert sorted(found) == sorted(PARTS)
    assert sum(text.count("<!-- printed: ") for text in pages) == len(found)
