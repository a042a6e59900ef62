"""What the source's neighbour table says of a whole pair, whatever each flow heard and when."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.host_messages import Egress, EgressOrder, RouteOrder
from netprobe.model.evidence import CheckConclusion, Icmp, Outcome
from netprobe.probe.agents.neighbours import distance
from netprobe.probe.checks import next_hops
from netprobe.probe.checks.next_hops import NextHops, ask_network
from netprobe.probe.flows.prober import Observation
from tests.probe.builders import (
    ROUTER,
    SOURCE,
    TARGET,
    look,
    make_observation,
    make_scene,
    make_task,
)
from tests.probe.fakes import FakeAgent, FakeFleet, host, routed

ADDRESS = TARGET.addresses[0].text


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_hops, "RESOLVING_S", 0)


def egress(**facts: Any) -> Egress:
    """What a kernel says of its next hop: nobody answers for it, but for these facts."""
    found = Egress(0, "eth0", ADDRESS, "failed", None, True, None)
    return found._replace(**facts)


def agent(*answers: Egress, **facts: Any) -> FakeAgent:
    """A source whose kernel answers so; the last answer stands."""
    left = list(answers or [egress(**facts)])
    return FakeAgent(
        SOURCE,
        {EgressOrder: lambda order: left.pop(0) if len(left) > 1 else left[0]},
    )


def heard(elapsed_ms: int | None = None, port: int = 443) -> Observation:
    """A flow that heard "host unreachable" from its own kernel, or (None) nothing at all."""
    error = Icmp(3, 1, "10.0.0.1", "source")
    outcome = Outcome("connect", "host-unreachable", error, elapsed_ms=elapsed_ms)
    if elapsed_ms is None:
        outcome = Outcome("connect", "no-answer")
    return make_observation(outcome, make_task("tcp", ((port, port),)))


async def test_a_dead_neighbour_is_down_whenever_its_flows_heard_it() -> None:
    """A packet joins the kernel's queue at any time, or finds it full."""
    source = agent()
    flows = [heard(0, 1), heard(2, 2), heard(900, 3), heard(3100, 4), heard(None, 5)]

    found = await look(NextHops(), make_scene(source), *flows)

    assert {one.conclusion for one in found} == {CheckConclusion("host-down", "a")}
    assert [one.outcome for one in found] == [one.outcome for one in flows]
    assert len(source.orders(EgressOrder)) == 1
    assert found[0].trail[-1].name == "next-hop"


async def test_a_dead_gateway_is_not_the_destination() -> None:
    """The source asked for the gateway."""
    (found,) = await look(NextHops(), make_scene(agent(next_hop=ROUTER)), heard(3100))

    assert found.conclusion == CheckConclusion("next-hop-down", next_hop=ROUTER)


@pytest.mark.parametrize("facts", [{"neighbour": None}, {"next_hop": ROUTER}])
async def test_a_cut_cable_is_the_sources(facts: dict[str, Any]) -> None:
    """Whatever it asked for."""
    (found,) = await look(NextHops(), make_scene(agent(carrier=False, **facts)), heard(3100))

    assert found.conclusion == CheckConclusion("no-carrier", "eth0")


@pytest.mark.parametrize(
    ("elapsed_ms", "concluded"),
    [(0, "refusing-host"), (499, "refusing-host"), (500, None), (3100, None), (None, None)],
)
async def test_an_early_word_about_a_neighbour_that_answers_is_a_firewalls(
    elapsed_ms: int | None, concluded: str | None
) -> None:
    """The source's own; a late one may be older than the neighbour."""
    (found,) = await look(NextHops(), make_scene(agent(neighbour="known")), heard(elapsed_ms))

    assert found.concluded == concluded


async def test_the_kernel_is_asked_until_it_has_decided() -> None:
    """A packet of another flow makes it ask again."""
    source = agent(egress(neighbour="incomplete"), egress(neighbour="incomplete"), egress())

    (found,) = await look(NextHops(), make_scene(source), heard(2))

    assert found.concluded == "host-down"
    assert len(source.orders(EgressOrder)) == 3


async def test_a_neighbour_that_is_asked_for_all_the_time_does_not_answer() -> None:
    """One that answers does so in a moment."""
    (found,) = await look(NextHops(), make_scene(agent(neighbour="incomplete")), heard(2))

    assert found.concluded == "host-down"


@pytest.mark.parametrize("hop", [egress(dev=None, next_hop=None, neighbour=None),
                                 egress(neighbour=None)])  # fmt: skip
async def test_a_route_without_a_neighbour_says_nothing(hop: Egress) -> None:
    """No route; or a device without ARP."""
    seen = heard(None)

    assert await look(NextHops(), make_scene(agent(hop)), seen) == [seen]


@pytest.mark.parametrize(
    ("outcome", "concerned"),
    [
        (Outcome("connect", "no-answer"), True),
        (Outcome("send", None), True),
        (Outcome("connect", "host-unreachable"), True),
        (Outcome("connect", "host-unreachable", Icmp(3, 1, ROUTER, "router")), False),
        (Outcome("connect", "host-unreachable", Icmp(3, 13, "10.0.0.1", "source")), False),
        (Outcome("connect", "refused"), False),
        (Outcome("connect", "no-answer", left_host=False), True),
        (None, False),
    ],
)
def test_what_concerns_it(outcome: Outcome | None, concerned: bool) -> None:
    """The own kernel's word, and silence."""
    assert NextHops().concerns(make_observation(outcome)) is concerned


def network(*agents: FakeAgent) -> FakeFleet:
    """The source, the destination without an agent, and these."""
    return FakeFleet([FakeAgent(SOURCE), FakeAgent(TARGET, hello=None), *agents])


def peer(name: str, address: str, gateway: str | None = None, **facts: Any) -> FakeAgent:
    scripts: dict[type[Any], Any] = {
        EgressOrder: lambda order: egress(**facts),
        RouteOrder: routed(gateway=gateway, source=address),
    }
    return FakeAgent(host(name, address), scripts)


@pytest.mark.parametrize(
    ("agents", "asker"),
    [
        ([peer("c", "10.0.0.9")], "c"),
        ([peer("c", "10.0.0.9", neighbour="known")], None),
        ([peer("c", "10.0.0.9", gateway=ROUTER)], None),
        # Which is the address itself.
        ([peer("c", ADDRESS)], None),
        # The nearest that is there is asked.
        ([peer("far", "10.0.7.9"), peer("near", "10.0.0.3", neighbour="known")], None),
        ([peer("far", "10.0.7.9"), peer("near", "10.0.0.3", gateway=ROUTER)], "far"),
        ([], None),
    ],
)
async def test_an_agent_on_the_destinations_network_is_asked(
    agents: list[FakeAgent], asker: str | None
) -> None:
    """It says whether anybody answers for the address there."""
    assert await ask_network(make_task(), network(*agents)) == asker


def test_distance_is_the_size_of_the_common_network() -> None:
    """Addresses of the other family are far."""
    assert distance("10.0.0.2", {"10.0.0.3", "192.0.2.1"}) == 1
    assert distance("10.0.0.2", {"10.0.1.2"}) == 9
    assert distance("10.0.0.2", {"fd00::1"}) > 32
    # What an agent says of itself may be no address.
    assert distance("10.0.0.2", {"", "10.0.0.3"}) == 1
