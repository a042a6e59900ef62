"""The verdict tables are complete, and every row is reached."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from netprobe.judge.rows import (
    ALLOWED,
    DENIED,
    LISTENERS,
    PROTOCOLS,
    WITNESSES,
    Symptom,
    VerdictRow,
)
from netprobe.model.decision import first_match

SYMPTOMS = get_args(Symptom)
DENIED_WITNESSES = ("answered", "none", "not-captured")


def first(rows: tuple[VerdictRow, ...], key: tuple[str, str, str, str]) -> int | None:
    try:
        return rows.index(first_match(rows, key))
    except LookupError:
        return None


@pytest.mark.parametrize(("rows", "witnesses"), [(ALLOWED, WITNESSES), (DENIED, DENIED_WITNESSES)])
def test_every_combination_has_a_row(
    rows: tuple[VerdictRow, ...], witnesses: tuple[str, ...]
) -> None:
    """No outcome that can be reported is without a verdict."""
    product = itertools.product(SYMPTOMS, PROTOCOLS, LISTENERS, witnesses)
    missing = [key for key in product if first(rows, key) is None]

    assert missing == []


@pytest.mark.parametrize(("rows", "witnesses"), [(ALLOWED, WITNESSES), (DENIED, DENIED_WITNESSES)])
def test_every_row_is_reached(rows: tuple[VerdictRow, ...], witnesses: tuple[str, ...]) -> None:
    """A row that an earlier one hides is a mistake."""
    product = itertools.product(SYMPTOMS, PROTOCOLS, LISTENERS, witnesses)
    reached = {first(rows, key) for key in product}

    assert [row for index, row in enumerate(rows) if index not in reached] == []


@pytest.mark.parametrize("row", ALLOWED + DENIED, ids=lambda row: " ".join(row.patterns[0])[:40])
def test_rows_name_only_known_words(row: VerdictRow) -> None:
    """A misspelt word would never match."""
    symptoms, protocols, listeners, witnesses = row.patterns
    assert set(symptoms) <= {*SYMPTOMS, "*"}
    assert set(protocols) <= {*PROTOCOLS, "*"}
    assert set(listeners) <= {*LISTENERS, "*"}
    assert set(witnesses) <= {*WITNESSES, "answered", "*"}


@pytest.mark.parametrize("row", ALLOWED + DENIED, ids=lambda row: " ".join(row.patterns[0])[:40])
def test_where_and_proof_fit_the_verdict(row: VerdictRow) -> None:
    """A pass names no place, everything else does; only a pass has a proof, or an open port."""
    assert bool(row.where) == (row.verdict != "pass")
    assert row.where == tuple(sorted(row.where))
    if row.verdict in ("blocked", "exposed", "not-tested"):
        assert row.proof == "none"


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
