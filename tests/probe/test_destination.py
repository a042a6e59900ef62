"""One destination from the first packet to the evidence of every flow."""

from __future__ import annotations

from netprobe.agent.wire.host_messages import (
    Resolved,
    ResolveOrder,
    RouteOrder,
)
from netprobe.agent.wire.orders import (
    CloseOrder,
    EchoOrder,
    HeldOrder,
    ListenOrder,
    ProbeOrder,
    SeenOrder,
)
from netprobe.agent.wire.parts import HeldPorts
from netprobe.model.evidence import Outcome
from netprobe.model.plan import PATH_MTU
from netprobe.probe.flows.work import UNTOLD, join
from netprobe.probe.settings import ProbeSettings
from tests.probe.builders import (
    NAMED,
    ROUTER,
    TARGET,
    make_want,
)
from tests.probe.destination_world import (
    REFUSED,
    SILENCE,
    UNASKED,
    World,
    answers,
    assert_whole,
    verdicts,
)
from tests.probe.fakes import (
    HELLO,
    FakeAgent,
    FakeFleet,
    host,
    icmp,
    kind,
)


async def test_listeners_of_ours_answer_the_probes() -> None:
    """They are opened before the probes and closed after them."""
    world = World()

    (found,) = await world.run(make_want("tcp", ((5, 9),)))

    assert (found.address, found.ports, found.listener.state) == ("10.0.0.2", ((5, 9),), "ours")
    assert found.outcome is not None
    assert (found.outcome.answer, found.outcome.answered_by) == ("nonce", "b")
    assert (found.control_answered, found.host_up) == (True, True)
    assert found.witness is not None
    assert found.witness.socket
    kinds = [ListenOrder, ProbeOrder, SeenOrder, RouteOrder, ProbeOrder, CloseOrder]
    assert [type(order) for order in world.log] == kinds
    # The last one measures how wide the path is.
    assert [order.size for order in world.sent(ProbeOrder)] == [None, 1500]
    assert verdicts([found]) == {"pass"}
    assert [entry.name for entry in found.trail] == ["probe", "arrivals"]
    # Where all was answered nobody needs to ask whose the address is.
    assert world.target.orders(RouteOrder) == []


async def test_without_an_agent_the_ports_are_only_connected_to() -> None:
    """What listens there nobody knows."""
    world = World(lambda mode, port: UNASKED if port == 5 else REFUSED, with_agent=False)

    found = await world.run(make_want("tcp", ((5, 6),)))

    assert answers(found) == {((5, 5),): "unasked", ((6, 6),): "refused"}
    assert {one.listener.state for one in found} == {"unknown"}
    assert {block.mode for order in world.sent(ProbeOrder) for block in order.blocks} == {"connect"}
    assert_whole(world)


async def test_that_one_syn_got_lost_does_not_close_a_denied_port() -> None:
    """An open port that must not answer is asked again like any other silent one."""
    lost = iter((SILENCE,))
    world = World(lambda mode, port: next(lost, UNASKED), with_agent=False)

    found = await world.run(make_want("tcp", ((22, 22),), expect="denied"))

    assert answers(found) == {((22, 22),): "unasked"}


async def test_denied_ports_are_looked_at_before_any_listener_is_open() -> None:
    """Our own listeners would answer them."""
    world = World()
    denied = make_want("tcp", ((22, 22),), order=(1, 0, 0), expect="denied")

    await world.run(make_want("tcp", ((22, 23),)), denied)

    kinds = (ProbeOrder, ListenOrder, SeenOrder, CloseOrder)
    assert [type(order) for order in world.log if isinstance(order, kinds)] == [
        ProbeOrder, ListenOrder, ProbeOrder, SeenOrder, ProbeOrder, CloseOrder,
    ]  # fmt: skip
    (first, second, _) = world.sent(ProbeOrder)
    assert (first.blocks[0].mode, first.blocks[0].ports) == ("connect", [(22, 22)])
    assert second.blocks[0].ports == [(22, 23)]
    (_, by_denied) = world.emitted
    assert [one.listener.state for one in by_denied[1]] == ["unknown"]
    assert answers(by_denied[1]) == {((22, 22),): "refused"}


async def test_who_holds_a_denied_port_of_udp_is_asked_before_it_is_probed() -> None:
    """Its silence alone would say nothing; nothing is opened."""
    world = World(lambda mode, port: kind(op="send"))
    world.held = [HeldPorts(514, 514, "rsyslogd", "rsyslogd", 7, "0.0.0.0", loopback=False)]

    found = await world.run(make_want("udp", ((514, 515),), expect="denied"))

    states = {one.ports: (one.listener.state, one.listener.owner) for one in found}
    owner = "rsyslogd (pid 7) on 0.0.0.0"
    assert states == {((514, 514),): ("live", owner), ((515, 515),): ("closed", None)}
    assert isinstance(world.log[0], HeldOrder)
    assert world.sent(ListenOrder) == []
    assert_whole(world)


async def test_of_a_translated_address_nobody_knows_the_port_behind_it() -> None:
    """Nor is its agent asked."""
    world = World(lambda mode, port: kind(op="send"))
    elsewhere = HELLO._replace(addresses=["192.0.2.9"])
    world.target = FakeAgent(TARGET, world.target.scripts, hello=elsewhere)
    world.fleet = FakeFleet([world.source, world.target])

    (found,) = await world.run(make_want("udp", ((514, 514),), expect="denied"))

    assert found.listener.state == "unknown"
    assert world.sent(HeldOrder) == []


async def test_requirements_that_share_packets_get_their_own_ports() -> None:
    """One probe is evidence for all who want it, and for nobody else."""
    world = World()
    first, second = make_want("tcp", ((1, 5),)), make_want("tcp", ((4, 5), (8, 9)), order=(1, 0, 0))

    await world.run(first, second)

    assert [[one.ports for one in found] for _, found in world.emitted] == [
        [((1, 5),)],
        [((4, 5), (8, 9))],
    ]
    assert [order.size for order in world.sent(ProbeOrder)] == [None, 1500]


async def test_a_flow_without_evidence_is_not_tested() -> None:
    """All of it, or the ports that are missing; so no summary can be a pass."""
    world = World()
    for told, rest in (((), (5, 9)), (((5, 7),), (8, 9))):
        want = make_want("tcp", ((5, 9),), kept={"10.0.0.2": told} if told else None)
        world.make()._emit_all([want], [want], [])
        assert [(one.ports, one.untested) for one in world.evidence] == [((rest,), UNTOLD)]
        world.emitted = []


async def test_what_an_earlier_run_knows_is_not_emitted_again() -> None:
    """Its final results are kept."""
    world = World()

    found = await world.run(make_want("tcp", ((1, 9),), kept={"10.0.0.2": ((2, 8),)}))

    assert [one.ports for one in found] == [((1, 1), (9, 9))]


async def test_without_listening_only_the_holders_are_asked() -> None:
    """--no-listen opens nothing on anybody's host."""
    world = World()

    (found,) = await world.run(make_want(), settings=ProbeSettings(listen=False))

    assert world.sent(ListenOrder) == []
    assert len(world.sent(HeldOrder)) == 1
    assert found.listener.state == "closed"


async def test_many_ports_need_several_rounds() -> None:
    """One after the other; what has no ports goes with the first."""
    world = World()
    world.target._hello = world.target._hello and world.target._hello._replace(nofile=8)

    await world.run(
        make_want("tcp", ((1, 5),)),
        make_want("icmp", (), order=(1, 0, 0)),
    )

    assert [order.blocks[0].ports for order in world.sent(ListenOrder)] == [
        [(1, 2)], [(3, 4)], [(5, 5)],
    ]  # fmt: skip
    assert len(world.sent(CloseOrder)) == 3
    assert len(world.sent(EchoOrder)) == 1
    assert len({order.id for order in world.sent(ListenOrder)}) == 3
    assert_whole(world)


async def test_nothing_to_listen_on_needs_no_listen_order() -> None:
    """The kernel answers echo."""
    world = World()

    (found,) = await world.run(make_want("icmp", ()))

    assert world.sent(ListenOrder) == []
    assert found.listener.state == "closed"
    assert found.ports == ()


async def test_a_dead_host_explains_the_silence_of_its_other_ports() -> None:
    """A check concluded it of one flow; it is known of the pair."""
    word = kind(failure="host-unreachable", icmp=icmp(3, 1, ROUTER), elapsed_ms=3100)
    world = World(
        lambda mode, port: word if port == 5 else SILENCE,
        echo=kind(op="answer", failure="no-answer"),
        with_agent=False,
    )
    # It is asked again, and the router keeps everybody waiting again.
    found = await world.run(make_want("tcp", ((5, 6),)))

    by_ports = {one.ports: one for one in found}
    assert by_ports[(5, 5),].concluded == "router-gives-up"
    assert by_ports[(6, 6),].conclusion is None
    assert {one.given_up_by for one in found} == {ROUTER}
    assert_whole(world)


async def test_a_path_and_flows_of_one_pair_are_separate_results() -> None:
    """The flows tell which packets arrive."""
    world = World()
    path = make_want("icmp", (), order=(1, 0, 0), probe=PATH_MTU)

    await world.run(make_want("udp", ((5, 5),)), path)

    (_, (flow,)), (_, (measured,)) = world.emitted
    assert answers([flow]) == {((5, 5),): "nonce"}
    assert measured.outcome == Outcome(PATH_MTU, None)
    assert measured.mtu is not None
    assert (measured.mtu.path, measured.mtu.needed) == (1500, 1500)


async def test_every_address_of_a_name_is_a_result() -> None:
    """The trail says what the source's resolver answered."""
    world = World(with_agent=False)
    world.source.scripts[ResolveOrder] = lambda order: Resolved(
        order.id, ["10.0.0.2", "10.0.0.3"], None, ""
    )

    found = await world.run(make_want(target=NAMED))

    assert [one.address for one in found] == ["10.0.0.2", "10.0.0.3"]
    assert {one.trail[0].name for one in found} == {"name"}


async def test_a_name_that_the_source_cannot_resolve_is_a_result_of_its_own() -> None:
    """Nothing is sent."""
    world = World()
    world.source.scripts[ResolveOrder] = lambda order: Resolved(order.id, [], "no-name", "no such")

    (found,) = await world.run(make_want(target=NAMED))

    assert found.outcome == Outcome("resolve", "name-not-resolved", said="no such")
    assert world.sent(ProbeOrder) == []


async def test_whom_a_server_answers_later_is_evidence_about_its_silence() -> None:
    """What stays silent waits for the sources that come late; everything else does not."""
    world = World(lambda mode, port: SILENCE if port == 53 else UNASKED, with_agent=False)
    asked = [
        make_want("udp", ((53, 53),), probe="dns"),
        make_want("udp", ((54, 54),), order=(1, 0, 0)),
        make_want("udp", ((53, 53),), order=(2, 0, 0), probe="dns", source=host("c", "10.0.0.3")),
    ]
    destination = world.make()
    await destination.run(asked[:2], holds=True)
    assert [want for want, _ in world.emitted] == asked[1:2]

    (late,) = join(asked[2:], {})
    world.answered.note_served(late)
    destination.emit_held()
    destination.emit_held()
    assert [want for want, _ in world.emitted] == [asked[1], asked[0]]
    (found,) = world.emitted[1][1]
    assert found.served == ("c",)
