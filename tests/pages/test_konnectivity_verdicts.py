"""The documents about tunnels are what the tables say, and know every verdict."""

from __future__ import annotations

import os
import re
from pathlib import Path

from netprobe.konnectivity.verdicts import VERDICTS
from pages.konnectivity_verdicts import page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_verdicts_is_fresh() -> None:
    """Whoever changes a table prints the page again (``make docs``)."""
    path = DOCS / "konnectivity-verdicts.md"
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        path.write_text(page(), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == page()


def test_the_guide_names_no_verdict_that_is_none() -> None:
    """Codes in docs/konnectivity.md exist."""
    text = (DOCS / "konnectivity.md").read_text(encoding="utf-8")
    words = set(
        re.findall(r"\b(?:KONN|TCP|ICMP|PMTU|EDGE|SNI|TLS|PROXY|HOLD|FANOUT)_[A-Z0-9_]+", text)
    )
    assert words - {"TCP_INFO", "TCP_MAXSEG"} <= set(VERDICTS)
