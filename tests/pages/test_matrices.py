"""docs/matrices.md shows the matrices as they are."""

from __future__ import annotations

import re

import pytest

from pages.matrices import print_sections, read_notes
from tests.matrices.source import NAMES, requirements

WALKED = re.compile(r"\| `[a-z0-9-]+` \| .* → ")


@pytest.mark.slow
def test_page_shows_every_requirement() -> None:
    """Every requirement of every matrix has one line of its own."""
    lines = print_sections().splitlines()
    shown = [line.split("|")[1].strip(" `") for line in lines if WALKED.match(line)]
    assert sorted(shown) == sorted(key for name in NAMES for key in requirements(name))


def test_notes_are_the_comment_at_the_head() -> None:
    """Comments further down are about a row, and stay in the file."""
    assert read_notes("# A\n#\n# * b\nname: x\n# c\n") == ["A", "", "* b"]
