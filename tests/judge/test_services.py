"""Live services and proxies, judged: what each answer means for the requirement."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.judge.findings import fold
from netprobe.model.evidence import Evidence, Listener, Outcome, ServiceFinding
from netprobe.model.plan import Block
from netprobe.model.result import Result
from tests.plan.conftest import requirement

from .test_verdict import A, B, evidence, one

LIVE = Listener("live", "haproxy (pid 7) on 0.0.0.0", processes=("haproxy",))
PROXY = "10.0.0.9"
ETCD = requirement("etcd", "node", "node", probe="etcd")
BLOCK = Block(0, "m", ETCD, "tcp", ((6443, 6443),), 4, (A,), ((B, B.addresses[0]),))
OTHER = "etcd is expected there, and something else answered"
ASKED = "etcd is expected there; when it was asked who it is, "


def opened(
    told: Any, said: str = "nginx", note: str | None = None, answer: Any = "unasked"
) -> Evidence:
    """A connection that opened on a running platform, and what was found out behind it."""
    outcome = Outcome("connect", None, answer=answer)
    found = ServiceFinding(told, said, note=note)
    return evidence(outcome, listener=LIVE, service=found, block=BLOCK, platform_runs=True)


def refused(refusal: int | str, by: str | None = None) -> Evidence:
    """What a proxy did."""
    outcome = Outcome("proxy", None, said="CONNECT b:6443", answered_by=by, refusal=refusal)
    return evidence(outcome)


def brief(result: Result) -> tuple[str, str, str, tuple[str, ...]]:
    """What the cases compare."""
    return result.verdict, result.reason, result.proof, result.where


@pytest.mark.parametrize(
    ("some", "expected"),
    [
        (opened("service"), ("pass", "syn-ack", "service", ())),
        (opened("other"), ("inconclusive", "syn-ack", "handshake", ("service",))),
        (opened("tls"), ("inconclusive", "tls-not-expected", "handshake", ("service",))),
        (opened("plaintext"), ("inconclusive", "plaintext-not-tls", "handshake", ("service",))),
        (opened("closed"), ("inconclusive", "syn-ack", "handshake", ("path", "service"))),
        (opened("closed", answer="tunnel"), ("pass", "proxy-tunnel", "handshake", ())),
        (refused(407, PROXY), ("blocked", "proxy-407", "none", ("path",))),
        (refused(403, PROXY), ("blocked", "proxy-403", "none", ("path",))),
        (refused(302, PROXY), ("blocked", "proxy-302", "none", ("path",))),
        (
            refused(503, PROXY),
            ("inconclusive", "proxy-503", "none", ("destination", "host", "path", "service")),
        ),
        (refused("not-http"), ("inconclusive", "proxy-not-http", "none", ("path",))),
        (refused("silent"), ("inconclusive", "proxy-silent", "none", ("path",))),
        (refused("refused"), ("blocked", "proxy-refused", "none", ("path", "source"))),
        (refused("no-response"), ("blocked", "proxy-no-response", "none", ("path", "source"))),
    ],
)
def test_verdicts(some: Evidence, expected: tuple[str, str, str, tuple[str, ...]]) -> None:
    """Verdict, reason, proof and places of every kind of answer."""
    assert brief(one(some)) == expected


def test_who_answered_stands_in_the_sentence() -> None:
    """The words of the service and the owner of its port are the evidence."""
    because = one(opened("tls", "TLS with a certificate of CN=x")).because

    assert "speaks TLS where plaintext is expected: TLS with a certificate of CN=x" in because
    assert "haproxy (pid 7)" in because


@pytest.mark.parametrize(
    ("told", "note", "words"),
    [
        ("service", None, ()),
        ("service", "its certificate expired", ("etcd answers, but its certificate expired",)),
        ("other", None, (OTHER,)),
        ("tls", None, (OTHER,)),
        ("plaintext", None, (OTHER,)),
        ("closed", None, (f"{ASKED}it closed the connection",)),
        ("reset", None, (f"{ASKED}the connection was reset",)),
        ("silent", None, (f"{ASKED}it said nothing",)),
    ],
)
@pytest.mark.parametrize("answer", ["unasked", "tunnel"])
def test_what_a_reader_should_know(
    told: Any, note: str | None, words: tuple[str, ...], answer: str
) -> None:
    """Only what may be the service's own answer needs no explanation."""
    assert one(opened(told, note=note, answer=answer)).warnings == words


def test_a_proxy_that_answers_is_who_rejects() -> None:
    """Its address is named where it spoke, and only there."""
    assert one(refused(403, PROXY)).rejected_by == PROXY
    assert one(refused("refused")).rejected_by is None


def test_mismatches_are_findings_and_other_services_are_not() -> None:
    """TLS where plaintext is expected, and the reverse; each on its own."""
    results = [one(opened(told)) for told in ("other", "tls", "plaintext")]
    found = fold(results)

    assert [finding.members[0].reason for finding in found] == [
        "tls-not-expected",
        "plaintext-not-tls",
    ]
    assert {finding.verdict for finding in found} == {"inconclusive"}
