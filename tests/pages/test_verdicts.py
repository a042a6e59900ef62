"""docs/verdicts.md is what the tables say."""

from __future__ import annotations

import os
from pathlib import Path

from pages.verdicts import page


def test_the_page_is_fresh() -> None:
    """Whoever changes a table prints the page again (``make docs``)."""
    path = Path(__file__).parents[2] / "docs" / "verdicts.md"
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        path.write_text(page(), encoding="utf-8")

    assert path.read_text(encoding="utf-8") == page()
