"""The tables of the tunnel's diagnosis: no gap, no dead row, no word that nobody fills."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from netprobe.konnectivity.further import VERDICT_OF
from netprobe.konnectivity.guide import NOTES, STAGE_WORDS
from netprobe.konnectivity.symptoms import HelloSymptom, TcpSymptom
from netprobe.konnectivity.tables import (
    ALPN,
    CALLS,
    HELLO,
    IDENTITY,
    REPLY,
    REQUEST,
    TCP,
    WHO,
    TunnelRow,
    names_words,
)
from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.decision import first_match
from netprobe.model.konnectivity import STAGES, TunnelPlace
from netprobe.protocols.services.http2 import FRONT_END_SERVICE, CallFacts

TCP_SYMPTOMS: tuple[str, ...] = get_args(TcpSymptom)
HELLO_SYMPTOMS: tuple[str, ...] = get_args(HelloSymptom)
# Verdicts that no table gives: they are found by a status, a fraction, or a missing agent.
OUTSIDE = {
    "NAME_NOT_FOUND", "NAME_SERVER_FAILURE", "NAME_SERVERS_SILENT", "NAME_NOT_RESOLVED",
    "PROXY_NAME_NOT_RESOLVED", "PROXY_UNREACHABLE", "PROXY_407", "PROXY_403", "PROXY_5XX",
    "PROXY_REFUSED", "PROXY_NOT_HTTP", "PROXY_SILENT", "SNI_LOST_FRAGMENTED_HELLO",
    "CERT_WRONG_NAME", "CERT_EXPIRED", "CERT_UNTRUSTED", "FANOUT_SOME_FAIL",
    "FANOUT_ADDRESS_FAILS", "UNSTEADY", "NOT_TESTED", "NO_PROXY_TOO_WIDE", "PACKET_LOSS",
    "CERT_INVALID_BY_CLOCK",
}  # fmt: skip


def test_every_stage_says_what_it_does() -> None:
    """The page has each stage, in the order in which they are looked at."""
    assert tuple(STAGE_WORDS) == STAGES


def test_every_note_is_of_a_verdict() -> None:
    """A note that belongs to no code would never be printed."""
    assert set(NOTES) <= set(VERDICTS)


def test_every_connect_has_one_row() -> None:
    """Whatever connects look like, exactly one row says what it means."""
    assert set(TCP) == set(TCP_SYMPTOMS)
    assert set(TCP.values()) <= {*VERDICTS, None}


def test_every_hello_has_a_row_and_every_row_a_hello() -> None:
    """Every product of symptoms is decided, and no row is hidden by earlier ones."""
    used = {first_match(HELLO, key) for key in itertools.product(HELLO_SYMPTOMS, repeat=3)}
    assert used == set(HELLO)
    assert {row.verdict for row in HELLO} <= {*VERDICTS, None}


def test_every_identity_has_a_row_and_every_row_an_identity() -> None:
    """The full product of what may answer is decided, without a dead row."""
    used = {first_match(IDENTITY, key) for key in itertools.product(WHO, REQUEST, ALPN, REPLY)}
    assert used == set(IDENTITY)
    assert {row.verdict for row in IDENTITY} <= set(VERDICTS)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(HELLO, (HELLO_SYMPTOMS,) * 3), (IDENTITY, (WHO, REQUEST, ALPN, REPLY)), (CALLS, (REPLY,))],
)
def test_rows_name_only_known_words(
    rows: tuple[TunnelRow, ...], columns: tuple[tuple[str, ...], ...]
) -> None:
    """A misspelt word would never match."""
    for row in rows:
        for words_of_row, known in zip(row.patterns, columns, strict=True):
            assert set(words_of_row) <= {*known, "*"}


def test_nothing_is_judged_healthy_by_default() -> None:
    """The rows that pass name all that they rest on: who, request, ALPN and reply."""
    for row in IDENTITY:
        if row.verdict in ("KONN_REACHED_MTLS", "KONN_REACHED_TOKEN"):
            assert ("*",) not in row.patterns


@pytest.mark.parametrize(
    ("small", "large", "segmented", "code"),
    [
        ("reset", "none", "none", "RST_AFTER_CLIENTHELLO"),
        ("lost", "none", "lost", "CLIENTHELLO_DROPPED"),
        ("lost", "none", "answered", "PMTU_BLACKHOLE_OUT"),
        ("gap", "none", "answered", "PMTU_BLACKHOLE_IN"),
        ("mute", "none", "answered", "PMTU_BLACKHOLE_IN"),
        ("mute", "none", "mute", "SERVER_SILENT"),
        ("gap", "none", "gap", "ANSWER_LOST"),
        ("answered", "lost", "answered", "PMTU_BLACKHOLE_OUT"),
        ("answered", "lost", "lost", "LARGE_CLIENTHELLO_FAILS"),
        ("answered", "reset", "answered", "LARGE_CLIENTHELLO_FAILS"),
        ("answered", "answered", "none", None),
    ],
)
def test_the_hellos_that_look_alike_in_the_agent_s_log(
    small: str, large: str, segmented: str, code: str | None
) -> None:
    """``context deadline exceeded`` has many causes; the numbers of TCP tell them apart."""
    assert first_match(HELLO, (small, large, segmented)).verdict == code


@pytest.mark.parametrize("who", ["konnectivity", "trusted", "foreign", "stranger"])
def test_a_grpc_server_is_konnectivity_by_its_service_only(who: str) -> None:
    """Whoever does not know AgentService is another, whatever its certificate says."""
    for reply, code in (
        ("agent-service", "KONN_REACHED_TOKEN"),
        ("front-end", "KONN_WRONG_PORT_FRONTEND"),
        ("other-grpc", "NOT_KONNECTIVITY"),
    ):
        assert first_match(IDENTITY, (who, "none", "h2", reply)).verdict == code


@pytest.mark.parametrize(
    ("message", "agent", "front"),
    [
        ("unknown method NetprobeNoSuchMethod for service AgentService", True, False),
        ("unknown method NetprobeNoSuchMethod for service ProxyService", False, True),
        ("unknown service AgentService", False, False),
        ("unknown service ProxyService", False, False),
        (None, False, False),
    ],
)
def test_unknown_service_is_a_strangers_answer(
    message: str | None, agent: bool, front: bool
) -> None:
    """The words of grpc-go, with status 12: a server has the service whose method it misses."""
    call = CallFacts(grpc_status="12", grpc_message=message)
    assert (call.has_service(), call.has_service(FRONT_END_SERVICE)) == (agent, front)


def test_every_verdict_is_given_by_something() -> None:
    """No verdict is only text."""
    rows = set(TCP.values()) | {row.verdict for row in HELLO}
    given = rows | {row.verdict for row in IDENTITY} | {row.verdict for row in CALLS}
    assert set(VERDICTS) == (given - {None}) | OUTSIDE | set(VERDICT_OF.values())


def test_every_verdict_says_what_to_do() -> None:
    """A title and a remedy for people, and a stage of the list where it fails."""
    for code, verdict in VERDICTS.items():
        assert verdict.title, code
        assert verdict.remedy, code
        assert verdict.stage in {*STAGES, None}, code
        assert (verdict.stage is None) == (verdict.outcome in ("ok", "not-tested")), code


def test_every_fault_is_somewhere() -> None:
    """Path, destination, proxy, load balancer, server, the worker itself or the name service."""
    for code, verdict in VERDICTS.items():
        assert verdict.where in {*get_args(TunnelPlace), None}, code
        assert (verdict.where is None) == (verdict.outcome in ("ok", "not-tested")), code


def test_no_line_of_the_agent_is_made_up() -> None:
    """What no real agent was seen to say in the situation is not predicted."""
    unseen = {
        "PACKET_LOSS",
        "NAME_NOT_RESOLVED", "PROXY_NOT_HTTP", "PROXY_SILENT", "SNI_LOST_FRAGMENTED_HELLO",
        "ANSWER_LOST", "TLS_REFUSED", "FANOUT_SOME_FAIL", "FANOUT_ADDRESS_FAILS", "UNSTEADY",
        "HOLD_CUT_RESET", "HOLD_CUT_SILENTLY", "HOLD_GOAWAY", "INCONSISTENT", "UNEXPLAINED",
    }  # fmt: skip
    faults = {code for code, one in VERDICTS.items() if one.where is not None}
    assert {code for code in faults if not VERDICTS[code].logs} == unseen


def test_a_title_is_the_same_for_workers_with_one_cause() -> None:
    """Titles group workers, so no time or count of one worker's own is in them."""
    own = {"rtt", "first_ms", "tries", "held_s", "failed"}
    assert not [code for code, one in VERDICTS.items() if names_words(one.title) & own]
