"""From tasks to orders: which packets go to which ports, given what listens there."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import Pace, ProbeBlock
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Listener
from netprobe.model.ports import Ports
from netprobe.probe.agents.templates import EMPTY, Templates
from netprobe.probe.flows.listeners import Listeners
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import UDP_BURST, UDP_INTERVAL_MS, Timing
from netprobe.protocols import Protocol, packets


class Part(Struct, frozen=True):
    """The ports of a task that get the same packets; one order each.

    ``mode`` is the wire's. ``paced``: nobody of ours answers, so answers may be rate-limited.
    """

    task: Task
    ports: Ports
    listeners: tuple[tuple[Ports, Listener], ...]
    protocol: Protocol
    mode: str
    template: int
    paced: bool

    @property
    def ours(self) -> bool:
        """Whether a listener of ours waits for these packets."""
        return any(listener.state == "ours" for _, listener in self.listeners)

    @property
    def one_way(self) -> bool:
        """Whether only a listener of ours can tell that these packets arrived."""
        return self.ours and self.mode == "send"

    def restrict(self, task: Task, ports: Ports, listener: Listener) -> Part:
        """Give the part that asks the same of these ports of the task, which met one listener."""
        task = replace(task, ports=ports)
        return replace(self, task=task, ports=ports, listeners=((ports, listener),))

    def listener(self, ports: Ports) -> Iterator[tuple[Ports, Listener]]:
        """These ports by listener."""
        if not self.ports:
            yield (), self.listeners[0][1]
            return
        for known, listener in self.listeners:
            common = port_sets.intersect(ports, known)
            if common:
                yield common, listener

    def make_order(
        self, number: int, source: str | None, timing: Timing, host: int | None = None
    ) -> ProbeOrder | EchoOrder:
        """The order as the wire carries it; ``host``: the index of the host that should answer."""
        blocks = [ProbeBlock(list(self.ports), self.mode, self.template)]
        pace = Pace(UDP_BURST, UDP_INTERVAL_MS) if self.paced else None
        order = probe_order(number, self.task.protocol, self.task.address, source, blocks, timing)
        if isinstance(order, EchoOrder):
            return order
        return order._replace(pace=pace, host=host)


def probe_order(
    number: int, protocol: str, dst: str, src: str | None, blocks: list[ProbeBlock], timing: Timing
) -> ProbeOrder | EchoOrder:
    """An order for one destination; ``protocol`` is the block's (``tcp``, ``ipproto/4`` ...)."""
    name, _, protocol_number = protocol.partition("/")
    if name == "icmp":
        return EchoOrder(number, [dst], src, *timing, size=None, numbers=[number])
    return ProbeOrder(
        number,
        name,
        int(protocol_number) if protocol_number else None,
        dst,
        src,
        blocks,
        *timing,
        pace=None,
        min_ttl=None,
        ttl=None,
        size=None,
        host=None,
        sport=None,
        more=[],
    )


def parts(task: Task, listeners: Listeners, templates: Templates) -> list[Part]:
    """Cut a task by what listens and so by what is sent."""
    groups: dict[tuple[str, int, bool], tuple[Protocol, list[tuple[Ports, Listener]]]] = {}
    for ports, listener, known in listeners.split(task):
        wanted = packets(task.protocol, task.probe, ports) if known is None else [(ports, known)]
        for some, protocol in wanted:
            mode, template = _choose_packet(task, listener, protocol, templates)
            paced = task.protocol == "udp" and listener.state != "ours"
            members = groups.setdefault((mode, template, paced), (protocol, []))[1]
            members.append((some, listener))
    return [
        Part(task, port_sets.union(some for some, _ in members), tuple(members), protocol, *key)
        for key, (protocol, members) in groups.items()
    ]


def _choose_packet(
    task: Task, listener: Listener, protocol: Protocol, templates: Templates
) -> tuple[str, int]:
    """Mode and template: a nonce to a listener of ours, else what ``probe:`` says, else nothing."""
    transport = task.protocol.partition("/")[0]
    if transport == "icmp":
        return "echo", EMPTY
    if listener.state == "ours" or protocol.one_way:
        mode = "send" if protocol.one_way or transport == "ipproto" else "nonce"
        return mode, templates.listener(protocol, transport, task.family)
    if transport == "ipproto":
        return "send", templates.listener(protocol, transport, task.family)
    service = EMPTY if task.denied else templates.service(protocol, transport, task.family)
    if service != EMPTY:
        return "bytes", service
    return ("connect" if transport == "tcp" else "send"), EMPTY
