"""Agents that are answers: a link of the coordinator whose other end is in the same process.

Every frame crosses the wire's own codec both ways. Listeners open, probes of them are answered, and
every host answers echoes. ``deaf`` hosts answer nobody: what goes there stays silent.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from netprobe.agent.wire import answers, host_messages, orders
from netprobe.agent.wire.frames import WIRE_VERSION, FrameReader, encode_frame
from netprobe.agent.wire.messages import ORDERS
from netprobe.agent.wire.parts import (
    EchoRun,
    ListeningBlock,
    OrderArrivals,
    OutcomeKind,
    OutcomeRun,
    ProbeBlock,
    Ranges,
)
from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.vantage.handshake import Greeting
from netprobe.vantage.launch import Launcher
from netprobe.vantage.link import AgentLink

RTT_US = 400
SECRET = OutcomeKind("answer", None, None, None, None, None, None, None, None, None, None, None)
ECHO = SECRET._replace(answer="echo")
SILENT = SECRET._replace(op="connect", failure="no-answer", left=True, packets=3)
REFUSED = SECRET._replace(op="connect", failure="refused")


def _listening(order: orders.ListenOrder | orders.HeldOrder) -> answers.Listening:
    """Every port can be bound, and nobody else holds one."""
    ours = isinstance(order, orders.ListenOrder)
    ups = [(block.ports or [(0, 0)]) if ours else [] for block in order.blocks]
    blocks = [ListeningBlock(up, [], [], [], [], [], nat=False) for up in ups]
    return answers.Listening(order.id, blocks)


# What is answered alike whatever it asks for.
ANSWERS: dict[type[Any], Callable[[Any], Any]] = {
    orders.ListenOrder: _listening,
    orders.HeldOrder: _listening,
    orders.CloseOrder: lambda order: answers.Closed(order.id),
    orders.Beat: lambda _: answers.Alive([], 0),
    orders.StopOrder: lambda _: answers.Bye(),
    orders.StoryOrder: lambda order: answers.StoryTold(
        order.id, True, None, [], [], [], heard=True, awake=True, lost=0, full=False
    ),
    orders.WalkOrder: lambda order: answers.Walked(
        order.id, [], reached=False, failure=None, refusal=None
    ),
    host_messages.ResolveOrder: lambda order: host_messages.Resolved(
        order.id, ["10.255.255.1"], None, ""
    ),
    host_messages.ReturnPathOrder: lambda order: host_messages.ReturnPath(
        order.id, "eth0", None, None, "eth0", [], None
    ),
    host_messages.EgressOrder: lambda order: host_messages.Egress(
        order.id, "eth0", None, None, None, True, None
    ),
    host_messages.NameserversOrder: lambda order: host_messages.Nameservers(order.id, []),
}


class Estate:
    """The network between recorded agents: who is deaf, and what arrived where."""

    def __init__(self, deaf: frozenset[str] = frozenset()) -> None:
        self.deaf = deaf
        # By address, of the orders of probes: who sent them, and their ports. A host that closes
        # its listeners forgets them.
        self.arrived: defaultdict[str, dict[int, tuple[str, Ranges]]] = defaultdict(dict)
        self.listening: set[str] = set()
        self.orders = self.probe_orders = 0

    def outcome(self, order: orders.ProbeOrder, dst: str, host: int | None) -> OutcomeKind:
        """What a probe of a destination comes to."""
        if dst in self.deaf:
            return SILENT
        mode = order.blocks[0].mode
        if mode == "nonce":
            return SECRET._replace(answer="nonce", by=host)
        return SECRET._replace(op="send") if mode == "send" else REFUSED


class RecordedAgent:
    """One agent: orders in, frames out."""

    def __init__(self, estate: Estate, address: str, write: Callable[[bytes], None]) -> None:
        self._estate = estate
        self._address = address
        self._write = write
        self._reader = FrameReader(ORDERS)

    def feed(self, data: bytes) -> None:
        """Take orders, and write their answers."""
        for order in self._reader.feed(data):
            self._estate.orders += 1
            self._estate.probe_orders += isinstance(order, orders.ProbeOrder)
            for answer in self._answer(order):
                self._write(encode_frame(answer))

    def _answer(self, order: Any) -> Iterator[Any]:
        if isinstance(order, orders.ProbeOrder):
            yield from self._probe(order)
        elif isinstance(order, orders.EchoOrder):
            count = len(order.dsts)
            yield answers.EchoOutcomes(
                order.id, [ECHO], [EchoRun(1, count, 0, [RTT_US] * count, 1)]
            )
            yield answers.Done(order.id, cancelled=False)
        elif isinstance(order, orders.SeenOrder):
            known = self._estate.arrived[self._address]
            yield answers.Seen(
                order.id,
                [
                    OrderArrivals(one, known[one][1], [known[one][0]], None)
                    for one in order.orders
                    if one in known
                ],
                [],
                [],
                [],
            )
        elif isinstance(order, host_messages.RouteOrder):
            source = order.src or self._address
            yield host_messages.Routed(order.id, source, "eth0", 1500, 1500, None, None)
        elif type(order) in ANSWERS:
            if isinstance(order, orders.CloseOrder):
                self._estate.arrived.pop(self._address, None)
            yield ANSWERS[type(order)](order)

    def _probe(self, order: orders.ProbeOrder) -> Iterator[Any]:
        """Answer a probe order, destinations with the same fate together."""
        alike: dict[Any, list[int]] = {}
        all_of_it = [(order.id, order.dst, order.host, order.blocks)]
        all_of_it += [(one.number, one.dst, one.host, one.blocks) for one in order.more]
        for place, (number, dst, host, blocks) in enumerate(all_of_it, 1):
            ports = _list_ports(blocks or order.blocks)
            kind = self._estate.outcome(order, dst, host)
            if kind.failure is None:
                self._estate.arrived[dst][number] = (self._address, ports)
            alike.setdefault((kind, tuple(ports)), []).append(place)
        for (kind, ports), places in alike.items():
            count = len(places)
            rtt_us = None if kind.failure == "no-answer" or kind.op == "send" else RTT_US
            runs = [OutcomeRun(first, last, 0, [rtt_us] * count, 1) for first, last in ports]
            own_ports = [40000] * count if order.proto == "udp" else []
            yield answers.ProbeOutcomes(order.id, _fold(places), [kind], runs, own_ports)
        yield answers.Done(order.id, cancelled=False)


def _list_ports(blocks: list[ProbeBlock]) -> Ranges:
    return [entry for block in blocks for entry in block.ports] or [(0, 0)]


def _fold(places: list[int]) -> Ranges:
    found: Ranges = []
    for place in places:
        if found and found[-1][1] == place - 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found


class RecordedProcess:
    """What an ``AgentLink`` sees of an agent's process; a recorded agent is at its other end."""

    command = "recorded"
    pid = 0
    status = 0

    def __init__(self, estate: Estate, address: str) -> None:
        self.stdout = asyncio.StreamReader(limit=1024 * 1024)
        self.stdin = self
        self._loop = asyncio.get_running_loop()
        self._agent = RecordedAgent(estate, address, self._feed_back)
        self._pending = bytearray()
        self._ended = False

    def write(self, data: bytes) -> None:
        """Take a frame of the coordinator; it is answered in the loop's next turn."""
        if not self._pending:
            self._loop.call_soon(self._hand_over)
        self._pending += data

    async def drain(self) -> None:
        """There is always room."""

    def close(self) -> None:
        """Its input ends, and so does it."""
        if not self._ended:
            self._ended = True
            self.stdout.feed_eof()

    def abort_input(self) -> None:
        """As closing it."""
        self.close()

    async def end(self, _patience_s: float) -> None:
        """End it."""
        self.close()

    async def wait(self) -> int:
        """It ends at once."""
        return 0

    def last_words(self) -> list[str]:
        """It has none."""
        return []

    def kill(self) -> None:
        """As closing it."""
        self.close()

    def signal(self, _number: int) -> None:
        """As closing it."""
        self.close()

    def _hand_over(self) -> None:
        data, self._pending = bytes(self._pending), bytearray()
        if not self._ended:
            self._agent.feed(data)

    def _feed_back(self, data: bytes) -> None:
        if not self._ended:
            self.stdout.feed_data(data)


def starter(estate: Estate) -> Callable[..., Any]:
    """Give what starts agents in place of ``start_agent``."""
    pids = itertools.count(1)

    async def start_agent(host: Host, index: int, *, key: bytes, launcher: Launcher) -> AgentLink:
        await asyncio.sleep(0)
        if host.vantage.kind == "none":
            raise AgentError("no-vantage", host.name)
        address = next(iter(host.probing_addresses))
        hello = answers.HelloLine(
            wire=WIRE_VERSION, python="3.11.2", pid=next(pids), uid=0, user="root",
            hostname=host.name, kernel="6.1.0", net_raw=True, low_ports=True, sees_owners=True,
            nofile=65536, cores=2, echo="datagram", kubelet=False, node_ports=None,
            machine=host.name, addresses=sorted(host.listed_addresses), links=[], wall_s=0.0,
        )  # fmt: skip
        process: Any = RecordedProcess(estate, str(address))
        link = AgentLink(host.name, process, Greeting(hello, b""), launcher.beats, None)
        link.send(orders.StartOrder(key, index, launcher.beats.silence_s))
        return link

    return start_agent
