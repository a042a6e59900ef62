"""The verdict tables are complete, and every row is reached."""

from __future__ import annotations

import functools
import itertools
from typing import get_args

import pytest

from netprobe.judge.rows import (
    ALLOWED,
    DENIED,
    DENIED_WITNESSES,
    LISTENERS,
    PROTOCOLS,
    WITNESSES,
    Symptom,
    VerdictRow,
)
from netprobe.model.decision import first_match

SYMPTOMS = get_args(Symptom)
TABLES = [(ALLOWED, WITNESSES), (DENIED, DENIED_WITNESSES)]
each_table = pytest.mark.parametrize(("rows", "witnesses"), TABLES, ids=["allowed", "denied"])


def first(rows: tuple[VerdictRow, ...], key: tuple[str, str, str, str]) -> int | None:
    """The number of the row that decides, if any does."""
    try:
        row = first_match(rows, key)
    except LookupError:
        return None
    return next(number for number, one in enumerate(rows) if one is row)


@functools.cache
def decided(
    rows: tuple[VerdictRow, ...], witnesses: tuple[str, ...]
) -> dict[tuple[str, str, str, str], int | None]:
    """The row of every combination that can be reported."""
    product = itertools.product(SYMPTOMS, PROTOCOLS, LISTENERS, witnesses)
    return {key: first(rows, key) for key in product}


@pytest.mark.slow
@each_table
def test_every_combination_has_a_row(
    rows: tuple[VerdictRow, ...], witnesses: tuple[str, ...]
) -> None:
    """No outcome that can be reported is without a verdict."""
    assert [key for key, number in decided(rows, witnesses).items() if number is None] == []


@pytest.mark.slow
@each_table
def test_every_row_is_reached(rows: tuple[VerdictRow, ...], witnesses: tuple[str, ...]) -> None:
    """A row that an earlier one hides is a mistake."""
    reached = set(decided(rows, witnesses).values())
    assert [row for number, row in enumerate(rows) if number not in reached] == []


def test_rows_name_only_known_words() -> None:
    """A misspelt word would never match."""
    for row in ALLOWED + DENIED:
        symptoms, protocols, listeners, witnesses = row.patterns
        assert set(symptoms) <= {*SYMPTOMS, "*"}, row
        assert set(protocols) <= {*PROTOCOLS, "*"}, row
        assert set(listeners) <= {*LISTENERS, "*"}, row
        assert set(witnesses) <= {*DENIED_WITNESSES, "*"}, row


def test_where_and_proof_fit_the_verdict() -> None:
    """A pass names no place, everything else does; only a pass has a proof, or an open port."""
    for row in ALLOWED + DENIED:
        assert bool(row.where) == (row.verdict != "pass"), row
        assert row.where == tuple(sorted(row.where)), row
        if row.verdict in ("blocked", "exposed", "not-tested"):
            assert row.proof == "none", row


def test_silence_never_passes_where_something_is_required() -> None:
    """Whatever is there and whoever looked: silence at both ends is no pass."""
    silent = ("silence", "silence-maybe-stuck", "sent")
    for key in itertools.product(silent, PROTOCOLS, LISTENERS, WITNESSES):
        index = first(ALLOWED, key)
        assert index is not None
        if ALLOWED[index].verdict == "pass":
            assert (key[0], *key[2:]) == ("sent", "ours", "socket")


def test_udp_silence_without_an_agent_is_never_blocked() -> None:
    """Without an endpoint of ours a silent service and a drop look the same."""
    for symptom in ("silence", "sent"):
        row = ALLOWED[first(ALLOWED, (symptom, "udp", "unknown", "none")) or 0]
        assert (row.verdict, row.state) == ("inconclusive", "open|filtered")


def test_a_recorder_alone_never_makes_a_pass_of_silence() -> None:
    """A recorder sees packets before the firewall: it only narrows the places."""
    silent = ("silence", "silence-maybe-stuck", "sent")
    for key in itertools.product(silent, PROTOCOLS, LISTENERS, ("captured", "not-captured")):
        index = first(ALLOWED, key)
        assert index is not None
        assert ALLOWED[index].verdict != "pass"
