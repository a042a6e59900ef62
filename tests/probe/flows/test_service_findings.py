"""What a live service said, as outcomes and warnings."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.probe.flows.service_findings import service_warnings
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
