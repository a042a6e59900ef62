"""From the agents' words to outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import ProbeOutcomes
from netprobe.agent.wire.parts import OutcomeKind, OutcomeRun
from netprobe.model.evidence import Icmp, Outcome
from netprobe.probe.agents.decode import PortOutcome, ProbeReply, Reader, read_outcomes
from netprobe.protocols import protocol_for
from tests.probe.fakes import icmp, kind

NAMES = ("a", "b")


def read(found: OutcomeKind, rtt_us: int | None = None, looks: int = 1, **more: Any) -> Outcome:
    """The outcome of one port."""
    facts: dict[str, Any] = {"protocol": protocol_for(None), "transport": "tcp", **more}
    reader = Reader(
        facts.pop("protocol"),
        facts.pop("transport"),
        "10.0.0.2",
        facts.pop("own", frozenset({"10.0.0.1"})),
        lambda index: NAMES[index] if index < len(NAMES) else None,
        **facts,
    )
    row = PortOutcome(5, 9, found, rtt_us, looks)
    ((same, outcome),) = reader.read([row])
    assert same is row
    return outcome


def test_every_fact_has_its_place() -> None:
    """Round trips are milliseconds, looks are attempts."""
    found = kind(op="answer", answer="nonce", by=1, ttl=60, left=True, packets=3, elapsed_ms=100)

    assert read(found, rtt_us=1234, looks=2) == Outcome(
        "answer", None, left_host=True, answer="nonce", answered_by="b", ttl=60, attempts=2,
        packets=3, rtt_ms=1.234,
    )  # fmt: skip
    assert read(kind(failure="no-answer", packets=3)).packets == 3
    assert read(kind(failure="host-unreachable", elapsed_ms=100)).elapsed_ms == 100


def test_what_was_not_said_stays_open() -> None:
    """None is no zero."""
    assert read(kind(failure="no-answer")) == Outcome("connect", "no-answer")


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("nonce", "nonce"),
        ("foreign", "foreign"),
        ("reflected", "reflected"),
        ("garbled", "other"),
        ("silent", "silent"),
        ("closed", "closed"),
        ("reset", "reset"),
        ("echo", "echo"),
        ("unasked", "unasked"),
    ],
)
def test_every_answer_word_of_the_wire(word: str, answer: str) -> None:
    """Bytes apart they need no reading."""
    found = read(kind(answer=word))

    assert (found.answer, found.said) == (answer, None)


def test_an_unknown_word_is_an_error() -> None:
    """The wire has a version: nobody may guess, and the rules keep such words out."""
    with pytest.raises(KeyError):
        read(kind(answer="new-word"))


@pytest.mark.parametrize(("by", "name"), [(0, "a"), (1, "b"), (9, None), (None, None)])
def test_who_answered_is_named(by: int | None, name: str | None) -> None:
    """The index is that of the run's hosts; 0 is a host."""
    assert read(kind(answer="nonce", by=by)).answered_by == name


@pytest.mark.parametrize(
    ("data", "unasked", "answer", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", False, "other", 'said "SSH-2.0-OpenSSH_9.2"'),
        (b"SSH-2.0-OpenSSH_9.2\r\n", True, "unasked", 'said "SSH-2.0-OpenSSH_9.2"'),
        (None, False, "other", "not a netprobe answer: no bytes"),
    ],
)
def test_bytes_that_no_service_was_asked_for(
    data: bytes | None, unasked: bool, answer: str, said: str
) -> None:
    """Where nothing particular was expected no answer is a wrong one."""
    found = read(kind(answer="bytes", data=data), unasked=unasked)

    assert (found.answer, found.said) == (answer, said)


@pytest.mark.parametrize("unasked", [True, False])
def test_bytes_of_the_service_that_was_asked_for(unasked: bool) -> None:
    """The protocol reads them, by its transport."""
    ntp = protocol_for("ntp")
    request = ntp.service_request("udp", 4)
    assert request is not None
    header = bytes((0x24, 2)) + bytes(22) + request[40:48] + bytes(8) + b"\x01" * 8
    found = read(kind(answer="bytes", data=header), protocol=ntp, transport="udp", unasked=unasked)

    assert (found.answer, found.said) == ("service", "NTP stratum 2")


@pytest.mark.parametrize(
    ("elapsed_ms", "looks", "error_ms"), [(None, 1, 23.5), (1247, 1, 623.5), (1247, 2, None)]
)
def test_a_clock_is_no_surer_than_the_first_packet_allows(
    elapsed_ms: int | None, looks: int, error_ms: float | None
) -> None:
    """A right clock whose server answers 1.2 s late; the last packet went 47 ms before that."""
    ntp = protocol_for("ntp")
    request = ntp.service_request("udp", 4) or b""
    now_s = 1_795_000_000
    stamp = (now_s + 2_208_988_800 - 2**32 * (now_s + 2_208_988_800 >= 2**32)).to_bytes(4, "big")
    data = bytes((0x24, 2)) + bytes(22) + request[40:48] + (stamp + bytes(4)) * 2
    came = kind(answer="bytes", data=data, elapsed_ms=elapsed_ms)._replace(
        clock_us=(now_s * 1000 + 1247) * 1000
    )
    found = read(came, 47_000, looks, protocol=ntp, transport="udp")

    assert found.clock is not None
    assert found.elapsed_ms is None, "only errors keep anybody waiting"
    assert found.clock.error_ms == (error_ms or 0.0)
    assert (found.clock.offset_ms is None) is (error_ms is None)
    if elapsed_ms is not None and error_ms is not None:
        assert found.clock.offset_ms == pytest.approx(623.5)


@pytest.mark.parametrize(
    ("offender", "own", "origin"),
    [
        ("10.0.0.1", {"10.0.0.1"}, "source"),
        ("10.0.0.2", {"10.0.0.1"}, "destination"),
        ("10.0.9.1", {"10.0.0.1"}, "router"),
        # A host that probes its own address is both ends.
        ("10.0.0.2", {"10.0.0.2"}, "destination"),
        ("10.0.0.1", {"10.0.0.2", "10.0.0.1"}, "source"),
    ],
)
def test_who_sent_an_icmp_error(offender: str, own: set[str], origin: Any) -> None:
    """One end of the flow, or somebody between."""
    found = read(kind(failure="host-unreachable", icmp=icmp(3, 13, offender, 63)),
                 own=frozenset(own))  # fmt: skip

    assert found.icmp == Icmp(3, 13, offender, origin, 63)


@pytest.mark.parametrize(
    ("blind", "found", "expected"),
    [
        (True, kind(failure="refused"), True),
        (True, kind(failure="refused", icmp=icmp(3, 3, "10.0.0.2")), False),
        (True, kind(answer="unasked"), False),
        (False, kind(failure="refused"), False),
    ],
)
def test_a_blind_kernel_is_blind_to_errors_only(
    blind: bool, found: OutcomeKind, expected: bool
) -> None:
    """What it does say is what it saw."""
    assert read(found, blind=blind).blind is expected


def test_runs_of_an_answer_have_their_kinds() -> None:
    """Kinds are said once, runs name them by their places."""
    refused, opened = kind(failure="refused"), kind(answer="unasked")
    runs = [
        OutcomeRun(1, 4, 1, [1000, 9], 1),
        OutcomeRun(5, 5, 0, [None, None], 2),
        OutcomeRun(6, 9, 1, [2, None], 1),
    ]

    first, second = read_outcomes(
        ProbeOutcomes(7, [(3, 3), (8, 8)], [refused, opened], runs, [40000, 40001])
    )

    assert first == (
        3,
        [
            PortOutcome(1, 4, opened, 1000, 1),
            PortOutcome(5, 5, refused, None, 2),
            PortOutcome(6, 9, opened, 2, 1),
        ],
        40000,
    )
    assert (second[0], [row.rtt_us for row in second[1]], second[2]) == (8, [9, None, None], 40001)


def test_a_protocol_without_ports_has_none() -> None:
    """The wire says 0 to 0."""
    assert PortOutcome(0, 0, kind(), None, 1).ports == ()
    assert PortOutcome(5, 9, kind(), None, 1).ports == ((5, 9),)


def test_the_senders_of_icmp_errors_are_known() -> None:
    """Of addresses that nobody knows the source's kernel is asked."""
    rows = [
        PortOutcome(1, 1, kind(), None, 1),
        PortOutcome(2, 2, kind(icmp=icmp(3, 1, "10.0.9.1")), None, 1),
    ]

    assert list(ProbeReply(rows).offenders()) == ["10.0.9.1"]
