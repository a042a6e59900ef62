"""What a capture saw is of this flow, or it says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import Captured
from netprobe.agent.wire.parts import CapturedProbe
from netprobe.model.evidence import Listener, Outcome
from netprobe.model.inventory import Inventory
from netprobe.plan.expand import make_plan
from netprobe.probe.checks.captures import Capture
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.prober import Sighting
from netprobe.probe.flows.translated_sources import Origins
from netprobe.probe.flows.work import Work, join
from netprobe.protocols import protocol_for
from tests.plan.conftest import TODAY, chosen_matrix, host, requirement

PORT = 53
OWN_PORT = 40000


def silent(protocol: str = "udp", sport: int | None = OWN_PORT, state: Any = "live") -> Sighting:
    """A flow from 10.0.0.1 to a service that did not answer."""
    wanted = requirement("x", "node", "external", **{protocol: ((PORT, PORT),)})
    hosts = (
        host("a", "node", addresses=("10.0.0.1",)),
        host("b", "external", addresses=("10.0.0.2",)),
    )
    work = Work(make_plan([chosen_matrix([wanted])], Inventory(hosts), TODAY))
    (task,) = join(work.wants(work.destinations[0]), {})
    listener = Listener(state)
    packet = protocol_for(None)
    part = Part(task, task.ports, ((task.ports, listener),), packet, "bytes", 0, True)
    outcome = Outcome("answer", "no-answer")
    return Sighting(task, part, task.ports, 7, outcome, listener, sport=sport)


def item(asker: str, source_port: int = OWN_PORT, count: int = 1) -> CapturedProbe:
    """Packets between an asker and the service, with no nonce of ours."""
    return CapturedProbe(asker, source_port, PORT, count, None, [])


def capture(*items: CapturedProbe, truncated: bool = False, **options: Any) -> Capture:
    """A capture that has seen these."""
    origins = Origins([host("c", "node", addresses=("10.0.0.9",))])
    made = Capture(None, None, origins, **options)  # type: ignore[arg-type]  # not asked any more
    for protocol in ("udp", "tcp"):
        made._seen[protocol, "10.0.0.2"] = Captured(1, None, list(items), truncated)
    return made


@pytest.mark.parametrize(
    ("items", "seen"),
    [
        ([item("10.0.0.1")], True),
        # The resolver of the same host asks the same service.
        ([item("10.0.0.1", 33333, count=9)], None),
        ([item("10.0.0.1", 33333, count=9), item("10.0.0.1")], True),
        # An address that no host has may be the source's, translated.
        ([item("192.0.2.9")], None),
        ([item("10.0.0.9")], False),
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
    translated = item("10.0.0.1", 33333)

    assert capture(translated, answers=True, outgoing=True).saw(silent()).seen
    assert capture(translated).saw(silent()).seen
    assert capture(translated, answers=True).saw(silent("tcp", None)).seen


def test_an_answer_in_pieces_may_have_come_or_not() -> None:
    """A fragment that arrives does not make a datagram."""
    assert capture(truncated=True, answers=True).saw(silent()).seen is None
