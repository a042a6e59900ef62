"""What listens at a destination in one round, by its agent's word."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from netprobe.agent.wire.answers import Closed, Listening, Seen
from netprobe.agent.wire.orders import CloseOrder, HeldOrder, ListenOrder, SeenOrder
from netprobe.agent.wire.parts import FailedPorts, HeldPorts, ListenBlock, ListeningBlock
from netprobe.errors import AgentError
from netprobe.model.evidence import Listener
from netprobe.model.ports import Ports
from netprobe.probe.agents.templates import Templates
from netprobe.probe.flows.listeners import (
    CLOSED,
    UNKNOWN,
    Listeners,
    Origins,
    Round,
    Spot,
    spots,
    states,
)
from netprobe.protocols import protocol_for
from tests.probe.builders import TARGET, make_task
from tests.probe.fakes import FakeAgent, listening_block

PLAIN = protocol_for(None)
OURS = Listener("ours")
ETCD = ("etcd",)
BESIDE = "the port is held on another address: etcd (pid 8) on 10.0.0.3"
ELSEWHERE = Listener("ours", note=BESIDE, processes=ETCD, beside="etcd (pid 8) on 10.0.0.3")
ON_LOOPBACK = Listener(
    "ours", processes=ETCD, beside="etcd (pid 8) on 127.0.0.1", beside_loopback=True
)


def held(first: int, last: int, **change: Any) -> HeldPorts:
    """Ports that etcd holds on the probed address."""
    return HeldPorts(first, last, "etcd", "etcd", 8, "10.0.0.2", loopback=False)._replace(**change)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({}, []),
        ({"up": [(7, 9), (5, 5)]}, [(((5, 5), (7, 9)), OURS)]),
        ({"up": [(7, 9)], "nat": True}, [(((7, 9),), Listener("ours", nat=True))]),
        # An IP protocol has no ports.
        ({"up": [(0, 0)]}, [(((0, 0),), OURS)]),
        (
            {"held": [held(0, 0)]},
            [((), Listener("live", "etcd (pid 8) on 10.0.0.2", processes=ETCD))],
        ),
        (
            {"held": [held(7, 9)]},
            [(((7, 9),), Listener("live", "etcd (pid 8) on 10.0.0.2", processes=ETCD))],
        ),
        (
            {"held": [held(7, 9, bind="127.0.0.1", loopback=True)]},
            [(((7, 9),), Listener("loopback", "etcd (pid 8) on 127.0.0.1", processes=ETCD))],
        ),
        (
            {"held": [held(7, 9, process=None, program=None, pid=None)]},
            [(((7, 9),), Listener("live", "a process that the agent may not see on 10.0.0.2"))],
        ),
        # Free on the probed address, and held on another: a firewall may know only the other.
        (
            {"up": [(5, 9)], "beside": [held(8, 12, bind="10.0.0.3")]},
            [(((8, 9),), ELSEWHERE), (((5, 7),), OURS)],
        ),
        (
            {"beside": [held(8, 12, bind="10.0.0.3")]},
            [(((8, 12),), replace(ELSEWHERE, state="closed"))],
        ),
        # A server of the other family alone is in nobody's way.
        (
            {"up": [(8, 8)], "beside": [held(8, 8, bind="::")]},
            [(((8, 8),), replace(ELSEWHERE, note=BESIDE.replace("10.0.0.3", "::"), beside=None))],
        ),
        (
            {"up": [(5, 9)], "beside": [held(8, 8, bind="127.0.0.1", loopback=True)]},
            [(((8, 8),), ON_LOOPBACK), (((5, 7), (9, 9)), OURS)],
        ),
        (
            {"up": [(8, 9)], "beside": [held(8, 9, bind="127.0.0.1", loopback=True)]},
            [(((8, 9),), ON_LOOPBACK)],
        ),
        (
            {"skipped": [(30000, 30001)]},
            [
                (
                    ((30000, 30001),),
                    Listener("closed", note="a kubelet runs there: NodePorts are NAT rules"),
                )
            ],
        ),
        (
            {"denied": [(22, 23)]},
            [
                (
                    ((22, 23),),
                    Listener("closed", note="the agent may not bind ports below 1024 there"),
                )
            ],
        ),
        (
            {"failed": [FailedPorts(5, 6, "no-buffers")]},
            [(((5, 6),), Listener("closed", note="no listener could be opened: no-buffers"))],
        ),
    ],
)
def test_the_states_of_a_block(
    block: dict[str, Any], expected: list[tuple[Ports, Listener]]
) -> None:
    """Every port of the block has one state, and the words say why it is not simply ours."""
    assert list(states(listening_block(**block))) == expected


def spot(protocol: str = "tcp", *ports: tuple[int, int], address: str = "10.0.0.2") -> Spot:
    return Spot(protocol, address, PLAIN, ports)


def listeners(*states_there: tuple[Ports, Listener]) -> Listeners:
    """What is known of TCP at 10.0.0.2."""
    found = Listeners(CLOSED)
    for ports, listener in states_there:
        found.add(spot(), ports, listener)
    return found


def test_a_task_is_split_by_what_listens() -> None:
    """A listener of ours knows a packet; what nobody spoke of has the default."""
    live = Listener("live", "etcd")
    found = listeners((((20, 30),), CLOSED), (((1, 5),), OURS), (((4, 9),), live))

    assert list(found.split(make_task("tcp", ((3, 12),)))) == [
        (((3, 5),), OURS, PLAIN),
        (((6, 9),), live, None),
        (((10, 12),), CLOSED, None),
    ]


@pytest.mark.parametrize(
    "task", [make_task("udp", ((3, 4),)), make_task("tcp", ((3, 4),), target=TARGET)]
)
def test_other_protocols_have_other_listeners(task: Any) -> None:
    """A state belongs to a protocol and an address."""
    states_there = {("udp", "10.0.0.2"): CLOSED, ("tcp", "10.0.0.2"): OURS}
    ((ports, listener, _),) = listeners((((1, 9),), OURS)).split(task)

    assert (ports, listener) == (((3, 4),), states_there[task.protocol, task.address])


def test_a_protocol_without_ports_has_one_state() -> None:
    """The first that the agent tells, else the default."""
    found = Listeners(UNKNOWN)
    task = make_task("ipproto/4", ())
    assert list(found.split(task)) == [((), UNKNOWN, None)]

    for state in (OURS, CLOSED):
        found.add(spot("ipproto/4"), ((0, 0),), state)
    assert list(found.split(task)) == [((), OURS, PLAIN)]


def test_everything_that_is_known_can_be_listed() -> None:
    """``check --hosts`` prints who holds what."""
    found = listeners((((1, 5),), OURS), (((6, 6),), CLOSED))

    assert list(found.known()) == [
        (("tcp", "10.0.0.2"), ((1, 5),), OURS),
        (("tcp", "10.0.0.2"), ((6, 6),), CLOSED),
    ]


def test_echo_denied_ports_and_names_need_no_listener() -> None:
    """The kernel answers echo; nothing of ours may listen where nothing may answer."""
    tasks = [make_task("icmp", ()), make_task("tcp", ((5, 5),), expect="denied")]

    assert spots(tasks) == []
    assert [
        one.size for one in spots([make_task("ipproto/4", ()), make_task("tcp", ((5, 9),))])
    ] == [
        1,
        5,
    ]


def round_of(agent: FakeAgent) -> tuple[Round, Templates]:
    return Round(agent, 9), agent.templates


def listen_script(**blocks: Any) -> Any:
    """Every block of the order has come to this."""
    block: ListeningBlock = listening_block(**blocks)
    return lambda order: Listening(order.id, [block] * len(order.blocks))


async def test_a_round_opens_what_was_wanted() -> None:
    """Each block has the template of its packet and family, an IP protocol its number."""
    agent = FakeAgent(TARGET, {ListenOrder: listen_script(up=[(5, 6)])})
    round_, templates = round_of(agent)
    ipip = Spot("ipproto/4", "10.0.0.2", protocol_for(None, None, 4), ())
    wanted = [spot("tcp", (5, 6)), spot("tcp", (5, 6), address="fd00::2"), ipip]

    found = await round_.open(wanted)

    numbers = [templates.listener(one.packet, name, family) for one, name, family in
               zip(wanted, ("tcp", "tcp", "ipproto"), (4, 6, 4), strict=True)]  # fmt: skip
    assert len(set(numbers)) == 3
    assert agent.asked == [
        ListenOrder(
            9,
            [
                ListenBlock("tcp", "10.0.0.2", [(5, 6)], None, numbers[0]),
                ListenBlock("tcp", "fd00::2", [(5, 6)], None, numbers[1]),
                ListenBlock("ipproto", "10.0.0.2", [], 4, numbers[2]),
            ],
        )
    ]
    assert list(found.split(make_task("tcp", ((5, 7),)))) == [
        (((5, 6),), OURS, PLAIN),
        (((7, 7),), CLOSED, None),
    ]


async def test_a_round_may_only_look() -> None:
    """Without --listen nothing is bound, and ports that nobody holds are closed."""
    agent = FakeAgent(TARGET, {HeldOrder: listen_script(held=[held(5, 5)])})
    round_, _ = round_of(agent)

    found = await round_.held([spot("tcp", (5, 6))])

    assert [listener.state for _, listener, _ in found.split(make_task("tcp", ((5, 6),)))] == [
        "live",
        "closed",
    ]


def test_a_round_knows_where_packets_come_from() -> None:
    """What nonces tell of one round holds for the next."""
    origins = Origins([TARGET])

    assert Round(FakeAgent(TARGET), 9, origins).origins is origins


async def test_what_was_seen_is_asked_of_the_same_round() -> None:
    """Orders of several rounds may be under way at one host."""
    answer = Seen(1, [], [], [], [])
    agent = FakeAgent(TARGET, {SeenOrder: lambda order: answer})
    round_, _ = round_of(agent)

    assert await round_.seen([4, 5]) is answer
    assert agent.asked == [SeenOrder(0, 9, [4, 5], rest=False)]


async def test_a_round_of_a_lost_agent_is_closed_already() -> None:
    """Its sockets are gone with it; everything else says so."""
    agent = FakeAgent(TARGET, {CloseOrder: lambda order: Closed(order.id)})
    round_, _ = round_of(agent)
    assert await round_.close()
    assert agent.asked == [CloseOrder(9)]

    agent.lost = True
    assert not await round_.close()
    with pytest.raises(AgentError):
        await round_.open([spot("tcp", (5, 6))])


def test_what_exists_keeps_its_ports_whoever_else_wants_them() -> None:
    """A listener of ours for another row would stand in for a dead service."""
    mine = make_task("tcp", ((400, 500),))
    theirs = replace(make_task("tcp", ((443, 443),)), existing=True)

    assert [(one.existing, one.ports) for one in spots([mine, theirs])] == [
        (True, ((443, 443),)),
        (False, ((400, 442), (444, 500))),
    ]


def test_a_holder_has_the_names_of_its_program_and_of_the_kernel() -> None:
    """Each once; the kernel itself has no process id."""
    (script,) = states(listening_block(held=[held(7, 7, process="patroni", program="python3.11")]))
    (kernel,) = states(listening_block(held=[held(7, 7, process="kernel", program=None, pid=None)]))

    assert script[1].processes == ("python3.11", "patroni")
    assert script[1].owner == "patroni (pid 8) on 10.0.0.2"
    assert kernel[1].owner == "kernel on 10.0.0.2"
