"""docs/wire.md is what the definitions of the messages say."""

from __future__ import annotations

import os
import re
from pathlib import Path

from netprobe.agent.wire.parts import Pace, StreamTimes
from pages.wire import ALL, page, parts

PATH = Path(__file__).parents[2] / "docs" / "wire.md"
RECORDS = [*ALL.values(), *parts(ALL)]


def test_the_page_of_the_wire_is_fresh() -> None:
    """Whoever changes a message prints the page again (``make docs``)."""
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        PATH.write_text(page(), encoding="utf-8")
    assert PATH.read_text(encoding="utf-8") == page()


def test_every_record_is_described() -> None:
    """Each message and each part has a docstring of its own; ``NamedTuple`` makes one up."""
    for record in RECORDS:
        assert record.__doc__, record
        assert not record.__doc__.startswith(f"{record.__name__}("), record


def test_every_link_of_the_page_leads_to_a_part() -> None:
    """Types of fields that are records have a heading."""
    headings = {line[4:].lower() for line in page().splitlines() if line.startswith("### ")}
    assert set(re.findall(r"\(#([^)]*)\)", page())) <= headings
    assert {Pace, StreamTimes} <= set(parts(ALL))
