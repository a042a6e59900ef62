"""What a live service said, as outcomes and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.model.evidence import Outcome
from netprobe.probe.flows.service_findings import service_warnings, with_finding
from netprobe.protocols.services import ServiceFinding
from tests.probe.builders import make_task

OTHER = "etcd is expected there, and something else answered"
ASKED = "etcd is expected there; when it was asked who it is, "


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
def test_what_a_reader_should_know(told: Any, note: str | None, words: tuple[str, ...]) -> None:
    """Only what may be the service's own answer needs no explanation."""
    assert service_warnings(make_task(probe="etcd"), ServiceFinding(told, "x", note=note)) == words


def test_an_outcome_keeps_how_the_connection_opened() -> None:
    """The finding says what is behind it."""
    opened = Outcome("connect", None, answer="unasked", rtt_ms=1.5, attempts=2)

    found = with_finding(opened, ServiceFinding("tls", "TLS 1.3"))

    assert found == Outcome("connect", None, answer="tls", said="TLS 1.3", rtt_ms=1.5, attempts=2)
