"""How VRRP's multicast is played between hosts, and where it is not."""

from __future__ import annotations

from typing import Any

from netprobe.agent.wire.host_messages import RouteOrder
from netprobe.agent.wire.parts import RouterHeard
from netprobe.agent.wire.segment_messages import SegmentHeard, SegmentHearOrder
from netprobe.model.evidence import Evidence, Listener, Outcome, Witness
from netprobe.model.multicast import MulticastFacts
from netprobe.model.plan import MULTICAST
from netprobe.probe.rehearsals.multicast import MulticastRehearsal
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, RowArrivals, Stage
from tests.probe.builders import make_scene, make_want
from tests.probe.fakes import HELLO, FakeAgent, host, routed

HOSTS = {name: host(name, f"10.0.0.{place}") for place, name in enumerate("abc", 1)}
OURS = RouterHeard("VRRPv3", 0, 1, "10.0.0.1", "02:00:00:00:00:01", "eth0")


def make_agent(
    name: str, *heard: RouterHeard, failure: str | None = None, **said: Any
) -> FakeAgent:
    """An agent that hears these."""
    hello = HELLO._replace(**{"machine": name, "net_raw": True, **said})
    scripts: dict[type[Any], Any] = {
        SegmentHearOrder: lambda order: SegmentHeard(order.id, list(heard), failure),
        RouteOrder: routed(source=HOSTS[name].addresses[0].text),
    }
    return FakeAgent(HOSTS[name], scripts, hello=hello)


async def play(*agents: FakeAgent, arrivals: RowArrivals | None = None) -> list[Played]:
    """Play the way from a to each of the others."""
    fleet = make_scene(agents[0], *agents[1:]).fleet
    stages = []
    for one in agents[1:]:
        want = make_want("ipproto/112", (), source=HOSTS["a"], target=one.host, probe=MULTICAST)
        stages.append(
            Stage(want.flow, want.flow.address.text, 0, None, fleet, arrivals or RowArrivals())
        )
    return await MulticastRehearsal().play_together(stages)


async def test_who_hears_what_was_sent() -> None:
    """Only packets of the id 0 count, and others of this family alone; each host sends at the
    device of its way, once."""
    other = OURS._replace(sender="10.0.0.3")
    a, b = make_agent("a"), make_agent("b", OURS._replace(group=51), other)
    assert await play(a, b, make_agent("c", OURS)) == [
        MulticastFacts("10.0.0.1", "eth0", arrived=False, heard_by=("c",), hears=True),
        MulticastFacts("10.0.0.1", "eth0", arrived=True),
    ]
    (alone,) = await play(make_agent("a"), make_agent("b", OURS._replace(sender="fd00::1")))
    assert alone == MulticastFacts("10.0.0.1", "eth0", arrived=False)
    (order,) = a.orders(SegmentHearOrder)
    assert order.senders == [("eth0", "10.0.0.1")]
    (order,) = b.orders(SegmentHearOrder)
    assert order.senders == [("eth0", "10.0.0.2")]


async def test_where_it_is_not_played() -> None:
    """Behind a router and on one machine on purpose; without a right it is not tested."""
    routed_a = make_agent("a")
    routed_a.scripts[RouteOrder] = routed(gateway="10.0.0.254")
    cases = {
        (None, "no router forwards VRRP"): (routed_a, make_agent("b")),
        (None, "both ends are one machine"): (make_agent("a"), make_agent("b", machine="a")),
        ("no-permission", "b: its agent has no packet sockets"): (
            make_agent("a"), make_agent("b", net_raw=False)
        ),
        ("not-tested", "b could not: no-such-device"): (
            make_agent("a"), make_agent("b", failure="no-such-device")
        ),
    }  # fmt: skip
    for (reason, words), ends in cases.items():
        (error,) = await play(*ends)
        assert isinstance(error, NotPlayedError)
        assert error.reason == reason
        assert words in str(error)


async def test_a_row_that_is_stopped_comes_first() -> None:
    """Where packets from host to host do not arrive, the group is not asked."""
    flow = make_want("ipproto/112", (), source=HOSTS["a"], target=HOSTS["b"]).flow
    arrivals = RowArrivals(rows={("m", "x")})
    lost = Outcome("answer", "no-answer")
    address = flow.address.text
    seen = Evidence(flow, address, (), outcome=lost, listener=Listener("ours"), witness=Witness())
    arrivals.note([seen])
    a, b = make_agent("a"), make_agent("b")
    (error,) = await play(a, b, arrivals=arrivals)
    assert isinstance(error, NotPlayedError)
    assert error.reason == "row-stopped"
    assert not a.orders(SegmentHearOrder)
