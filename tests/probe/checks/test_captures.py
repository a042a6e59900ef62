"""What a capture saw is of this flow, or it says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import Captured
from netprobe.agent.wire.parts import CapturedProbe
from netprobe.model.evidence import Outcome
from netprobe.probe.checks.captures import Capture
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.translated_sources import Origins
from tests.probe.builders import make_observation, make_task
from tests.probe.fakes import host

PORT = 53
OWN_PORT = 40000


def silent(protocol: str = "udp", sport: int | None = OWN_PORT, state: str = "live") -> Observation:
    """A flow from 10.0.0.1 to a service that did not answer."""
    task = make_task(protocol, ((PORT, PORT),))
    outcome = Outcome("answer", "no-answer")
    return make_observation(outcome, task, listener=state, mode="bytes", sport=sport)


def capture(*items: CapturedProbe, truncated: bool = False, **options: Any) -> Capture:
    """A capture that has seen these."""
    origins = Origins([host("c", "10.0.0.9")])
    made = Capture(None, None, origins, **options)  # type: ignore[arg-type]  # not asked any more
    for protocol in ("udp", "tcp"):
        made._seen[protocol, "10.0.0.2"] = Captured(1, None, list(items), truncated)
    return made


@pytest.mark.parametrize(
    ("items", "seen"),
    [
        ([CapturedProbe("10.0.0.1", OWN_PORT, PORT, 1, None, [])], True),
        # The resolver of the same host asks the same service.
        ([CapturedProbe("10.0.0.1", 33333, PORT, 9, None, [])], None),
        (
            [
                CapturedProbe("10.0.0.1", 33333, PORT, 9, None, []),
                CapturedProbe("10.0.0.1", OWN_PORT, PORT, 1, None, []),
            ],
            True,
        ),
        # An address that no host has may be the source's, translated.
        ([CapturedProbe("192.0.2.9", OWN_PORT, PORT, 1, None, [])], None),
        ([CapturedProbe("10.0.0.9", OWN_PORT, PORT, 1, None, [])], False),
        ([], False),
    ],
)
def test_only_a_datagram_to_the_own_port_is_the_answer(
    items: list[CapturedProbe], seen: bool | None
) -> None:
    """Other programs of the source get answers of the same service."""
    assert capture(*items, answers=True).saw(silent()).seen is seen


def test_ports_are_translated_on_the_way() -> None:
    """What the destination captures may have another source port than the one that was bound."""
    item = CapturedProbe("10.0.0.1", 33333, PORT, 1, None, [])

    assert capture(item, answers=True, outgoing=True).saw(silent()).seen
    assert capture(item).saw(silent()).seen
    assert capture(item, answers=True).saw(silent("tcp", None)).seen


def test_an_answer_in_pieces_may_have_come_or_not() -> None:
    """A fragment that arrives does not make a datagram."""
    assert capture(truncated=True, answers=True).saw(silent()).seen is None
