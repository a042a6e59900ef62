"""netprobe/model/combinations.txt holds what this version's tables write, and what 0.1.0 wrote."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from netprobe.model.combinations import PRINTED
from netprobe.report.record.contradictions import check_alone
from pages.combinations import list_combinations, page

OF_0_1_0 = Path(__file__).parents[1] / "golden" / "0.1.0" / "combinations.txt"


def read_pairs(text: str) -> set[tuple[str, str]]:
    """Each combination of words and places."""
    lines = (line.partition(": ") for line in text.splitlines())
    return {(words, place) for words, _, places in lines for place in places.split(" | ")}


@pytest.mark.slow
def test_the_list_is_fresh() -> None:
    """Whoever changes a table prints the list again (``make docs``)."""
    before = PRINTED.read_text("ascii")
    if os.environ.get("NETPROBE_REWRITE") == "docs":
        PRINTED.write_text(page(before), "ascii")

    assert page(before) == PRINTED.read_text("ascii")
    assert set(list_combinations()) <= read_pairs(page(before))


@pytest.mark.slow
def test_a_file_may_hold_what_the_tables_write() -> None:
    """Every row of every table, narrowed in every way, with all later steps."""
    for result in list_combinations().values():
        check_alone(result)


def test_the_list_only_grows() -> None:
    """Files of 0.1.0 are read by every later version."""
    old = read_pairs(OF_0_1_0.read_text("ascii"))
    assert len(old) > 200
    assert old <= read_pairs(PRINTED.read_text("ascii"))
