"""Clocks: how far they are apart, and what they make of a certificate's dates."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from netprobe.konnectivity.clocks import (
    MOST_SKEW_S,
    clock_of,
    compare_clocks,
    judge_dates,
    look_at_clock,
    word_skew,
)
from netprobe.konnectivity.findings import Conclusion, Log, diagnosis
from netprobe.vantage.handshake import measure_skew_s

DAY_S = 86400.0


def certificate(first_day: float, last_day: float) -> bytes:
    """A certificate in DER that is valid between these days from now."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(x509.Name([]))
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + timedelta(days=first_day))
        .not_valid_after(now + timedelta(days=last_day))
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("theirs_s", "ahead_s"), [(100.5, 0.0), (100.0, 0.0), (105.0, 4.0), (90.0, -10.0)]
)
def test_a_clock_is_apart_by_what_the_round_trip_leaves(theirs_s: float, ahead_s: float) -> None:
    """Read between 100 s and 101 s of ours, it is apart by the least that this allows."""
    assert measure_skew_s(theirs_s, 100.0, 101.0) == ahead_s


@pytest.mark.parametrize(
    ("skew_s", "words"),
    [
        (400 * DAY_S, "400 days ahead of"),
        (-7200.0, "2 hours behind"),
        (130.0, "2 minutes ahead of"),
        (61.0, "61 s ahead of"),
    ],
)
def test_a_skew_is_worded_in_its_own_unit(skew_s: float, words: str) -> None:
    """People read days, not 34,560,000 s."""
    assert word_skew(skew_s) == words


def test_the_worker_s_clock_judges_the_certificate() -> None:
    """What is valid here may be expired there, or not yet valid; so may an intermediate one."""
    chain = (certificate(-1, 300), certificate(-30, 30))
    assert judge_dates(chain, 0.0) is None
    for skew_s, invalidity in ((40 * DAY_S, "expired"), (-2 * DAY_S, "not yet valid")):
        dated = judge_dates(chain, skew_s)
        assert dated is not None
        assert dated[0] == "CERT_INVALID_BY_CLOCK"
        assert dated[2]["invalidity"] == invalidity


def test_a_certificate_that_is_invalid_by_both_clocks_is_expired() -> None:
    """Then no clock is to blame."""
    dated = judge_dates((certificate(-3, -1),), 400 * DAY_S)
    assert dated is not None
    assert dated[0] == "CERT_EXPIRED"


def test_a_worker_s_right_clock_counts_where_ours_is_wrong() -> None:
    """Ours is two days ahead: what is expired here is valid there."""
    assert judge_dates((certificate(-3, -1),), -2 * DAY_S) is None


def test_a_clock_beyond_all_calendars_is_the_last_day() -> None:
    """An agent may say any number."""
    assert clock_of(1e19).year == 9999


async def test_a_skew_below_a_minute_is_none() -> None:
    """NTP leaves less; nobody is warned of what harms nothing."""
    for skew_s, many in ((MOST_SKEW_S, 0), (MOST_SKEW_S + 1, 1), (-MOST_SKEW_S - 1, 1)):
        log = Log()
        look_at_clock(skew_s, None, log)
        assert len(log.warnings) == many
        assert log.stages[0].status == ("doubt" if many else "ok")


@pytest.mark.parametrize(
    ("skews", "said"),
    [
        ((0.0,), ""),
        ((0.0, 30.0), ""),
        ((7200.0, 0.0), "the clock of w0 is 2 hours ahead of that of w1"),
        ((7200.0, 7210.0), "the workers' clocks agree with each other: look at this machine's"),
    ],
)
async def test_workers_are_compared_with_each_other(skews: tuple[float, ...], said: str) -> None:
    """Whose clock is the odd one: a worker's, or ours."""
    found = []
    for number, skew_s in enumerate(skews):
        log = Log()
        look_at_clock(skew_s, None, log)
        found.append(diagnosis(f"w{number}", "direct", log, Conclusion("KONN_H2_OK", "fine")))
    notes = compare_clocks(found)
    assert len(notes) == bool(said)
    assert said in "".join(notes)
