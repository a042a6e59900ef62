"""Agents for the dry run: they answer as if all were well, and note every order that they get.

What they note is what their hosts have to do when nobody talks to them. The order of notes is that
in which the probe stage asks, and the same plan gives the same notes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, get_origin, get_type_hints

from msgspec import Struct

from netprobe.agent.wire import answers, host_messages, orders, parts
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.questions import CONTROL_PORTS
from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.model.konnectivity import OpenedPipe
from netprobe.model.ports import MAX_PORT
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.decode import Heard, PortOutcome, ProbeReply
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.rules import ANSWERS_TO
from netprobe.probe.agents.templates import Templates
from netprobe.probe.settings import Timing
from netprobe.vantage.accepting import PortPlace, Serve
from netprobe.vantage.stream import Target

Answer = TypeVar("Answer")

NO_COUNTS = AgentError("not-asked", "in batch mode nobody sends while another one counts")
NO_STREAM = AgentError("not-asked", "in batch mode nobody speaks with the service that answered")
NO_AGENT = AgentError("no-vantage", "the host is declared vantage: none")

# All of a destination's listeners are open at once, so that rounds must be as large as they get.
MANY_FILES = 1 << 20
USUAL_MTU, LOOPBACK_MTU = 1500, 65536
DEVICE = "eth0"
_TTL = 64
_RTT_US = 1000
_ONE = parts.SeenPackets(1, 1, 0, _TTL, DEVICE)
_KIND = parts.OutcomeKind(
    "answer", None, None, None, None, None, None, None, None, None, None, None
)
_REFUSED = _KIND._replace(op="connect", failure="refused")
_OPEN = _KIND._replace(op="connect", answer="unasked")
_SENT = _KIND._replace(op="send", left=True)


class Note(Struct, frozen=True):
    """An order as a host gets it, with an id of its own."""

    host: str
    order: Any


class ScriptedAgent(AgentMethods):
    """An agent that carries out what is written: nobody can speak with whom it meets."""

    def open_stream(self, target: Target) -> AbstractAsyncContextManager[OpenedPipe]:
        """Raise AgentError: a stream needs somebody who speaks over it."""
        raise NO_STREAM

    def open_port(self, place: PortPlace, serve: Serve) -> AbstractAsyncContextManager[str | None]:
        """Raise AgentError: what comes in needs somebody who speaks over it."""
        raise NO_STREAM

    async def packet_counts(self, dst: str) -> host_messages.PacketCounts:
        """Raise AgentError: counters tell something only while somebody sends."""
        raise NO_COUNTS

    async def ask_service(
        self, protocol: str, dst: str, port: int, request: bytes, timing: Timing,
        src: str | None = None,
    ) -> list[parts.OutcomeKind]:  # fmt: skip
        """Raise AgentError: what to ask next depends on what was answered."""
        raise NO_STREAM


class IdealAgent(ScriptedAgent):
    """An agent that answers as a healthy host in a network without firewalls."""

    def __init__(
        self, host: Host, templates: Templates, number: Callable[[], int], notes: list[Note]
    ) -> None:
        super().__init__(host, 0, templates)
        self._number = number
        self._notes = notes
        self._hello = make_ideal_hello(host) if host.may_start else None
        self.settled.set()

    @property
    def hello(self) -> answers.HelloLine | None:
        """What a healthy host with all rights says; None where no agent is to be."""
        return self._hello

    @property
    def alive(self) -> bool:
        """Whether the host is to have an agent."""
        return self._hello is not None

    async def wait_ready(self) -> object:
        """Raise AgentError where no agent is to be."""
        if self._hello is None:
            raise NO_AGENT
        return None

    async def request(self, order: Any, answer: type[Answer]) -> Answer:
        """Note the order, and answer that all is well. Raises AgentError where no agent is."""
        await self.wait_ready()
        order = order if order.id else order._replace(id=self._number())
        self._notes.append(Note(self.host.name, order))
        found = (
            _ANSWERS[type(order)](self, order) if type(order) in _ANSWERS else give_nothing(order)
        )
        assert isinstance(found, answer)
        return found

    async def probe(
        self, order: orders.ProbeOrder | orders.EchoOrder, heard: Heard | None = None
    ) -> ProbeReply:
        """Note the order, and give an answer of every port. Raises AgentError."""
        await self.wait_ready()
        self._notes.append(Note(self.host.name, order))
        reply = ProbeReply(list(_answer_probe(order)))
        if heard is not None:
            heard(reply.rows)
        # Others have their turn, as where packets take time.
        await asyncio.sleep(_RTT_US / 1e6)
        return reply

    def lose(self, error: Exception) -> AgentError:
        """Raise what was wrong: the dry run has no excuse."""
        raise error

    async def quiet(self) -> None:
        """Nothing is ever out."""


class IdealFleet(Fleet):
    """The fleet of a dry run; ``notes`` are the orders, ``record`` is what recorders look for."""

    def __init__(self, hosts: Sequence[Host], key: bytes) -> None:
        self.notes: list[Note] = []
        self.record: orders.RecordOrder | None = None
        self.rate: int | None = None
        templates = Templates()
        agents = [
            IdealAgent(host, templates, lambda: next(self.order_ids), self.notes) for host in hosts
        ]
        super().__init__(agents, templates, key, lambda _: None)

    def begin_run(self, rate: int | None = None, record: orders.RecordOrder | None = None) -> None:
        """Keep the orders that a live fleet would send to its agents, for the scripts."""
        super().begin_run(rate, record)
        self.record, self.rate = record, rate


def make_ideal_hello(host: Host) -> answers.HelloLine:
    """Give the hello of a host with all rights, which has the addresses of the inventory."""
    return answers.HelloLine(
        wire=WIRE_VERSION, python="", pid=1, uid=0, user="root", hostname=host.name,
        kernel="6.1.0", net_raw=True, low_ports=True, sees_owners=True, nofile=MANY_FILES, cores=1,
        echo="raw", kubelet=False, node_ports=None, machine=f"of {host.name}",
        addresses=sorted(host.listed_addresses), links=[f"of {host.name}"],
        wall_s=0.0,
    )  # fmt: skip


def _answer_probe(order: orders.ProbeOrder | orders.EchoOrder) -> Iterator[PortOutcome]:
    if isinstance(order, orders.EchoOrder):
        yield PortOutcome(0, 0, _KIND._replace(answer="echo", ttl=_TTL), _RTT_US, 1)
        return
    for block in order.blocks:
        kind = _choose_kind(order, block.mode)
        for first, last in block.ports or [(0, 0)]:
            is_control = order.proto != "ipproto" and first == last and first in CONTROL_PORTS
            refused = is_control and block.mode != "nonce"
            yield PortOutcome(first, last, _REFUSED if refused else kind, _RTT_US, 1)


def _choose_kind(order: orders.ProbeOrder, mode: str) -> parts.OutcomeKind:
    if mode == "nonce":
        return _KIND._replace(answer="nonce", by=order.host, ttl=_TTL)
    if mode == "connect":
        return _OPEN
    return _KIND._replace(answer="bytes", data=b"") if mode == "bytes" else _SENT


def _open_all(_: IdealAgent, order: orders.ListenOrder | orders.HeldOrder) -> answers.Listening:
    bound = isinstance(order, orders.ListenOrder)
    return answers.Listening(order.id, [_open_block(block, bound) for block in order.blocks])


def _open_block(block: parts.ListenBlock, bound: bool) -> parts.ListeningBlock:
    up = (block.ports or [(0, 0)]) if bound else []
    return parts.ListeningBlock(up, [], [], [], [], [], nat=False)


def _see_all(_: IdealAgent, order: orders.SeenOrder) -> answers.Seen:
    every = [(0, MAX_PORT)]
    arrivals = [parts.OrderArrivals(number, every, [], None) for number in order.orders]
    return answers.Seen(order.id, arrivals, [], [], [])


def _tell_all(_: IdealAgent, order: orders.StoryOrder) -> answers.StoryTold:
    runs = [parts.SeenRun(order.ports, _ONE, _ONE, None, [1])]
    return answers.StoryTold(
        order.id, running=True, failure=None, runs=runs, errors=[], translated=[], heard=True,
        awake=True, lost=0, full=False,
    )  # fmt: skip


def _give_route(agent: IdealAgent, order: host_messages.RouteOrder) -> host_messages.Routed:
    family = 6 if ":" in order.dst else 4
    own = [one.text for one in agent.host.addresses if one.family == family]
    here = order.dst in own
    source = order.src or (order.dst if here else next(iter(own), order.dst))
    device, mtu = ("lo", LOOPBACK_MTU) if here else (DEVICE, USUAL_MTU)
    return host_messages.Routed(order.id, source, device, mtu, mtu, None, None)


def _give_egress(agent: IdealAgent, order: host_messages.EgressOrder) -> host_messages.Egress:
    links = [f"of {agent.host.name}"]
    return host_messages.Egress(order.id, DEVICE, order.dst, "known", links[0], True, None)


def give_nothing(order: Any) -> Any:
    """Answer that this host has nothing to say of itself: no value, no words, empty lists."""
    (kind,) = ANSWERS_TO[type(order)]
    nothing = {str: "", bool: False, int: 0}
    types = get_type_hints(kind)
    values = (
        [] if get_origin(types[name]) is list else nothing.get(types[name])
        for name in kind._fields[1:]
    )
    return kind(order.id, *values)


_ANSWERS: dict[type[Any], Callable[[IdealAgent, Any], Any]] = {
    orders.ListenOrder: _open_all,
    orders.HeldOrder: _open_all,
    orders.CloseOrder: lambda _, order: answers.Closed(order.id),
    orders.SeenOrder: _see_all,
    orders.StoryOrder: _tell_all,
    orders.KeptOrder: lambda _, order: answers.PacketsKept(order.id, [], [], 0, [], sure=False),
    orders.WalkOrder: lambda _, order: answers.Walked(
        order.id, [parts.WalkHop(1, order.dst)], reached=True, failure=None, refusal=None
    ),
    host_messages.RouteOrder: _give_route,
    host_messages.ReturnPathOrder: lambda _, order: host_messages.ReturnPath(
        order.id, DEVICE, order.dst, "known", DEVICE, [], None
    ),
    host_messages.EgressOrder: _give_egress,
}
