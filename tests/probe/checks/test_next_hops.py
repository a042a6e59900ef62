"""What the source's neighbour table says of a whole pair, whatever each flow heard and when."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import Egress, EgressOrder, RouteOrder
from netprobe.agent.wire.orders import EchoOrder, WalkOrder
from netprobe.agent.wire.parts import WalkHop
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
from tests.probe.fakes import HELLO, FakeAgent, host, kind, reply, routed

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


def peer(
    name: str, address: str, gateway: str | None = None, *, dev: str = "eth0",
    hears: dict[str, str] | None = None, hops: tuple[str, ...] = (), **facts: Any,
) -> FakeAgent:  # fmt: skip
    """An agent whose neighbour table has these link-layer addresses (its own is its name's), and no
    answer of the target; ``hops``: its next hops, as its walks find them."""

    def ask(order: EgressOrder) -> Egress:
        if hears and order.dst in hears:
            return egress(dev="eth0", neighbour="known", link=hears[order.dst])
        return egress(dev=dev, **facts)

    def walk(order: WalkOrder) -> Walked:
        found = [WalkHop(1, order.dst)] if order.dst in hops else []
        return Walked(0, found, bool(found), None, None)

    scripts: dict[type[Any], Any] = {
        EgressOrder: ask, WalkOrder: walk,
        RouteOrder: lambda order: routed(
            gateway=gateway if order.dst == ADDRESS else None, source=address,
            dev=dev if order.dst == ADDRESS else "eth0",
        )(order),
    }  # fmt: skip
    return FakeAgent(host(name, address), scripts, hello=HELLO._replace(links=[f"{name}0"]))


async def ask(
    *agents: FakeAgent, echo: bool = True, answered: str | None = None, elapsed_ms: int = 0
) -> str | None:
    """Ask the network for a silent flow, or one of which a router said "host unreachable"."""
    found = kind(op="answer", answer="echo") if echo else kind(failure="no-answer")
    source = FakeAgent(SOURCE, {EchoOrder: lambda order: reply(order, found)})
    scene = make_scene(source, None, *agents)
    outcome = Outcome("connect", "no-answer")
    if elapsed_ms:
        error = Icmp(3, 1, ROUTER, "router")
        outcome = Outcome("connect", "host-unreachable", error, elapsed_ms=elapsed_ms)
    if answered is not None:
        scene.prober.answered.note_answer("a", answered, Outcome("answer", None, answer="echo"))
    return await ask_network([make_observation(outcome)], scene)


C, D = ("c", "10.0.0.9"), ("d", "10.0.0.10")
HEARS_D = {"10.0.0.10": "d0"}


@pytest.mark.parametrize(
    ("agents", "asker"),
    [
        # It may be on another network with the same addresses, or alone at its switch's port.
        ([peer(*C)], None),
        ([peer(*C), peer(*D)], None),
        ([peer(*C, hears=HEARS_D), peer(*D)], "c"),
        # Somebody else has that address there.
        ([peer(*C, hears={"10.0.0.10": "x0"}), peer(*D)], None),
        # At a container bridge there are others than at the cable.
        ([peer(*C, hears=HEARS_D, dev="docker0"), peer(*D)], None),
        # It answers one of them.
        ([peer(*C, hears=HEARS_D), peer(*D, neighbour="known")], None),
        # Nor is its network asked by ARP.
        ([peer(*C, hears=HEARS_D, neighbour=None), peer(*D)], None),
        ([peer(*C, hears=HEARS_D), peer(*D, gateway=ROUTER)], None),
        # Which is the address itself.
        ([peer("c", ADDRESS), peer(*D)], None),
        ([], None),
    ],
)
async def test_agents_that_hear_each_other_know_who_is_on_their_network(
    agents: list[FakeAgent], asker: str | None
) -> None:
    """One that hears nobody may be anywhere."""
    assert await ask(*agents) == asker


async def test_agents_where_the_sources_packets_do_not_lead_know_nothing() -> None:
    """Another site may have the same addresses."""
    agents = [peer(*C, hears=HEARS_D), peer(*D)]

    assert await ask(*agents, echo=False) is None
    assert await ask(*agents, echo=False, answered="10.0.0.10") == "c"


@pytest.mark.parametrize(
    ("facts", "elapsed_ms", "asker"),
    [
        ({"hops": (ROUTER,)}, 3100, "c"),
        ({"hops": ()}, 3100, None),
        # The router is there at the cable, and not at the container bridge.
        ({"hops": (ROUTER,), "dev": "docker0"}, 3100, None),
        # A firewall says so early, to whomever it keeps apart.
        ({"hops": (ROUTER,)}, 2, None),
        ({"hops": (ROUTER,)}, 0, None),
    ],
)
async def test_who_is_beside_the_router_that_gave_up_knows_why(
    facts: dict[str, Any], elapsed_ms: int, asker: str | None
) -> None:
    """Both ask the same network."""
    assert await ask(peer(*C, **facts), elapsed_ms=elapsed_ms) == asker


def test_distance_is_the_size_of_the_common_network() -> None:
    """Addresses of the other family are far."""
    assert distance("10.0.0.2", {"10.0.0.3", "192.0.2.1"}) == 1
    assert distance("10.0.0.2", {"10.0.1.2"}) == 9
    assert distance("10.0.0.2", {"fd00::1"}) > 32
    # What an agent says of itself may be no address.
    assert distance("10.0.0.2", {"", "10.0.0.3"}) == 1
