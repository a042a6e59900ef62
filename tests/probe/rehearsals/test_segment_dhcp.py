"""Which networks are asked for DHCP servers, and by whom."""

from __future__ import annotations

from typing import Any

from netprobe.agent.wire.parts import DhcpServer
from netprobe.agent.wire.segment_messages import DhcpHeard, DhcpOrder
from netprobe.errors import AgentError
from netprobe.probe.rehearsals.segment_dhcp import ask_networks, find_networks
from netprobe.probe.rehearsals.segment_seats import Seat
from tests.probe.builders import make_scene
from tests.probe.fakes import HELLO, FakeAgent, host

LINK, OWN = "02:00:00:00:00:09", "02:00:00:00:00:01"


def seat(asker: FakeAgent, *sources: str) -> Seat:
    """Where an address is asked for, by agents with these addresses."""
    return Seat(asker, "e0", ((asker, "e0"),), frozenset(sources))


def agent(name: str, answer: Any) -> FakeAgent:
    """An agent that answers so."""
    hello = HELLO._replace(links=[OWN] if name == "a" else [])
    return FakeAgent(host(name, "10.0.0.1"), {DhcpOrder: answer}, hello=hello)


def test_addresses_of_one_network_are_found() -> None:
    """Two hosts ask for each other; a third address joins networks that seemed to be two, and the
    families stay apart."""
    a, b = agent("a", None), agent("b", None)
    seats = [
        ("10.0.0.1", seat(b, "10.0.0.2")), ("10.0.0.2", seat(a, "10.0.0.1")),
        ("fd00::1", seat(b, "fd00::2")), ("10.1.0.1", seat(b, "10.1.0.2")),
        ("10.0.0.100", seat(a, "10.0.0.1", "10.0.0.2")), ("10.1.0.3", seat(a, "10.1.0.4")),
        ("10.1.0.9", seat(a, "10.1.0.4", "10.1.0.2")),
    ]  # fmt: skip
    found = [(one.places, one.family, one.seat.asker) for one in find_networks(seats)]
    assert found == [((2,), 6, b), ((0, 1, 4), 4, b), ((5, 3, 6), 4, a)]


async def test_each_network_is_asked_once() -> None:
    """Servers are named by the host that has the device; a failure is no silence."""
    server = DhcpServer("10.0.0.9", LINK, "10.0.0.50")
    own = DhcpServer("10.0.0.1", OWN, None)
    a = agent("a", lambda order: DhcpHeard(order.id, [server, own], None))
    deaf = agent("b", lambda order: DhcpHeard(order.id, [], "no-permission"))

    def lose(_order: DhcpOrder) -> DhcpHeard:
        raise AgentError("agent-lost", "gone")

    lost = agent("c", lose)
    seats = [(f"10.{n}.0.2", seat(one, f"10.{n}.0.1")) for n, one in enumerate((a, deaf, lost))]
    facts = await ask_networks(find_networks(seats), make_scene(a, deaf, lost).fleet)
    assert facts[0].words() == f"10.0.0.9 ({LINK}) offers 10.0.0.50; 10.0.0.1 (a) offers no address"
    assert [one.failure for one in facts] == [None, "no-permission", "gone"]
    assert [one.asker for one in facts] == ["a on e0", "b on e0", "c on e0"]
    assert len(a.orders(DhcpOrder)) == 1
