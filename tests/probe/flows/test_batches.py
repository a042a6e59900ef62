"""Which packets go to which ports, given what listens there."""

from __future__ import annotations

from typing import Any

import pytest

from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import Pace, ProbeBlock
from netprobe.model.evidence import Listener
from netprobe.model.ports import Ports
from netprobe.probe.agents.templates import EMPTY, Templates
from netprobe.probe.flows.batches import Part, parts, probe_order
from netprobe.probe.flows.listeners import CLOSED, UNKNOWN, Listeners, Spot
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import UDP_BURST, UDP_INTERVAL_MS, Timing
from netprobe.protocols import PROTOCOLS, protocol_for
from tests.probe.builders import make_task

OURS = Listener("ours")
LIVE = Listener("live", "etcd")
TIMING = Timing(400, 900, 2)


def known(task: Task, *states: tuple[Ports, Listener], packet: str | None = None) -> Listeners:
    """What listens at the ports of a task; our listeners know the task's packet, or this one."""
    found = Listeners(UNKNOWN)
    number = task.protocol.partition("/")[2]
    name = packet or task.probe
    protocol = protocol_for(name, None, int(number) if number else None)
    for ports, listener in states:
        found.add(Spot(task.protocol, task.address, protocol, ports), ports, listener)
    return found


def cut(task: Task, *states: tuple[Ports, Listener], **more: Any) -> list[Part]:
    return parts(task, known(task, *states, **more), Templates())


NO_PORTS: Ports = ()
SOME: Ports = ((53, 53),)


@pytest.mark.parametrize(
    ("protocol", "ports", "probe", "state", "expected"),
    [
        # Plain bytes prove little: nothing is sent to a service that nobody asked us to speak to.
        ("tcp", SOME, None, "unknown", ("connect", None)),
        ("tcp", SOME, None, "live", ("connect", None)),
        ("tcp", SOME, None, "ours", ("nonce", "listener")),
        ("udp", SOME, None, "closed", ("send", None)),
        ("udp", SOME, None, "ours", ("nonce", "listener")),
        # A live service is asked what it can answer.
        ("udp", SOME, "dns", "live", ("bytes", "service")),
        ("tcp", SOME, "dns", "unknown", ("bytes", "service")),
        ("udp", SOME, "dns", "ours", ("nonce", "listener")),
        # Services over TLS are asked later, over a stream.
        ("tcp", SOME, "kube-apiserver", "live", ("connect", None)),
        # Nothing ever answers VXLAN.
        ("udp", SOME, "vxlan", "ours", ("send", "listener")),
        ("udp", SOME, "vxlan", "unknown", ("send", "listener")),
        # Right behind an IP header nothing is answered either.
        ("ipproto/4", NO_PORTS, None, "ours", ("send", "listener")),
        ("ipproto/50", NO_PORTS, None, "unknown", ("send", "listener")),
        ("icmp", NO_PORTS, None, "unknown", ("echo", None)),
    ],
)  # fmt: skip
def test_mode_and_template_by_what_listens(
    protocol: str, ports: Ports, probe: str | None, state: Any, expected: tuple[str, str | None]
) -> None:
    """A nonce to a listener of ours, a request to a service that is named, else next to nothing."""
    task = make_task(protocol, ports, probe=probe)
    (part,) = cut(task, (ports or ((0, 0),), Listener(state)))
    name, _, number = protocol.partition("/")
    packet = protocol_for(probe, None, int(number) if number else None)
    templates = Templates()
    numbers = {
        None: EMPTY,
        "listener": templates.listener(packet, name, 4),
        "service": templates.service(packet, name, 4),
    }
    mode, template = expected

    assert part.mode == mode
    assert (part.template == EMPTY) is (numbers[template] == EMPTY)
    assert part.ports == ports
    assert part.ours is (state == "ours")
    assert part.one_way is (state == "ours" and mode == "send")
    assert part.paced is (name == "udp" and state != "ours")


def test_a_denied_port_is_asked_nothing() -> None:
    """Whether something answers at all is the question."""
    (part,) = cut(make_task("udp", SOME, probe="dns", expect="denied"))

    assert (part.mode, part.template) == ("send", EMPTY)


def test_the_request_of_a_service_is_not_the_listeners() -> None:
    """A live DNS server must understand it; our listener wants nonce and MAC."""
    task = make_task("udp", ((53, 54),), probe="dns")
    templates = Templates()
    ours, live = parts(task, known(task, (SOME, OURS), (((54, 54),), LIVE)), templates)

    requests = {item.number: item for item in templates.after(0)}
    assert requests[ours.template].nonce_at is not None
    assert requests[live.template].nonce_at is None


def test_ports_with_the_same_packets_are_one_order() -> None:
    """Live and closed ports get the same; each keeps its listener."""
    task = make_task("tcp", ((1, 9),))
    plain, nonce = cut(task, (((1, 2), (8, 8)), LIVE), (((3, 5),), CLOSED), (((6, 7),), OURS))

    assert (plain.ports, nonce.ports) == (((1, 5), (8, 9)), ((6, 7),))
    assert list(plain.listener(((2, 9),))) == [
        (((2, 2), (8, 8)), LIVE),
        (((3, 5),), CLOSED),
        (((9, 9),), UNKNOWN),
    ]
    assert list(plain.listener(((6, 7),))) == []


def test_a_part_without_ports_has_one_listener() -> None:
    """An IP protocol has one socket."""
    (part,) = cut(make_task("ipproto/4", ()), (((0, 0),), OURS))

    assert list(part.listener(())) == [((), OURS)]


def test_one_name_may_mean_another_packet_on_another_port() -> None:
    """IKE on port 4500 has four zero bytes in front."""
    found = cut(make_task("udp", ((500, 500), (4500, 4500)), probe="ike"))

    assert [(part.ports, part.protocol.name) for part in found] == [
        (((500, 500),), "ike"),
        (((4500, 4500),), "ike-nat"),
    ]


def test_a_listener_gets_the_packet_that_it_knows() -> None:
    """Two requirements may want different packets on one port; the listener knows one of them."""
    task = make_task("udp", SOME)
    (part,) = cut(task, (SOME, OURS), packet="dns")

    assert part.protocol is PROTOCOLS["dns"]


@pytest.mark.parametrize(
    ("state", "pace"), [("closed", Pace(UDP_BURST, UDP_INTERVAL_MS)), ("ours", None)]
)
def test_an_order_as_the_wire_carries_it(state: Any, pace: Pace | None) -> None:
    """Closed UDP ports are answered from a bucket; our listeners have none."""
    (part,) = cut(make_task("udp", ((53, 54),)), (((53, 54),), Listener(state)))

    assert part.make_order(7, "10.0.0.9", TIMING, host=3) == ProbeOrder(
        7, "udp", None, "10.0.0.2", "10.0.0.9",
        [ProbeBlock([(53, 54)], part.mode, part.template)],
        400, 900, 2, pace, min_ttl=None, ttl=None, size=None, host=3, sport=None, more=[],
    )  # fmt: skip


def test_echo_has_an_order_of_its_own() -> None:
    """It has neither ports nor a pace."""
    (part,) = cut(make_task("icmp", ()))

    assert part.make_order(7, None, TIMING, host=3) == EchoOrder(
        7, ["10.0.0.2"], None, 400, 900, 2, size=None, numbers=[7]
    )


def test_an_ip_protocol_has_its_number_in_the_order() -> None:
    """The block's protocol is ``ipproto/4``."""
    order = probe_order(7, "ipproto/4", "10.0.0.2", None, [], TIMING)

    assert isinstance(order, ProbeOrder)
    assert (order.proto, order.number) == ("ipproto", 4)
