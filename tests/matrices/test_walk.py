"""The page docs/matrices.md shows the matrices as they are."""

from __future__ import annotations

import re

from tests.matrices.source import NAMES, requirements
from tests.matrices.walk import PAGE, fresh

WALKED = re.compile(r"\| `[a-z0-9-]+` \| .* → ")


def test_page_is_fresh() -> None:
    """The tables of the page are those that ``python -m tests.matrices.walk`` writes now."""
    page = PAGE.read_text(encoding="utf-8")
    assert fresh(page) == page


def test_page_shows_every_requirement() -> None:
    """Every requirement of every matrix has one line of its own."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    shown = [line.split("|")[1].strip(" `") for line in lines if WALKED.match(line)]
    assert shown == [key for name in NAMES for key in requirements(name)]
