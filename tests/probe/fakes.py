"""An agent and a fleet that answer from a script, with the methods of the real ones.

A ``FakeAgent`` differs from an ``Agent`` only in how an order is carried out: every class of order
has a function that makes its answer. It can be lost at any order, and notes what it was asked.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, TypeVar

from netprobe.agent.wire.answers import (
    HelloLine,
)
from netprobe.agent.wire.frames import WIRE_VERSION
from netprobe.agent.wire.host_messages import (
    OwnResets,
    OwnResetsOrder,
    PacketCounts,
    PacketCountsOrder,
    Routed,
    RouteOrder,
)
from netprobe.agent.wire.orders import EchoOrder, ProbeOrder
from netprobe.agent.wire.parts import AddressAnswer, IcmpFact, ListeningBlock, OutcomeKind
from netprobe.agent.wire.segment_messages import SegmentAnswers, SegmentAskOrder
from netprobe.errors import AgentError
from netprobe.model.inventory import Address, Host, Vantage
from netprobe.model.konnectivity import Event, Opened, OpenedPipe
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.decode import Heard, PortOutcome, ProbeReply
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.templates import Templates
from netprobe.vantage.accepting import PortPlace, Serve
from netprobe.vantage.stream import Target

Answer = TypeVar("Answer")
# What a pipe hears when these bytes have been sent on it.
Respond = Callable[[bytes], bytes | Event]
# Makes the answer of an order; for probe and echo orders a ``ProbeReply``.
Script = Callable[[Any], Any]

HELLO = HelloLine(
    wire=WIRE_VERSION, python="3.11.2", pid=1, uid=0, user="root", hostname="fake", kernel="6.1.0",
    net_raw=True, low_ports=True, sees_owners=True, nofile=65536, cores=2, echo="datagram",
    kubelet=False, node_ports=None, machine="", addresses=[], links=[], wall_s=0.0,
)  # fmt: skip
KIND = OutcomeKind("connect", None, None, None, None, None, None, None, None, None, None, None)


def kind(**facts: Any) -> OutcomeKind:
    """A kind of outcome with these facts: ``kind(failure="refused", op="connect")``."""
    return KIND._replace(**facts)


def icmp(type_: int, code: int, offender: str, ttl: int | None = 64) -> IcmpFact:
    """An ICMP error's fact."""
    return IcmpFact(type_, code, offender, ttl)


def reply(
    order: ProbeOrder | EchoOrder, what: OutcomeKind | Callable[[int], OutcomeKind]
) -> ProbeReply:
    """The same outcome for every port of an order, or one that depends on the port.

    Neighbouring ports with one outcome are a run, as an agent tells them.
    """
    if isinstance(order, EchoOrder):
        ranges = [(0, 0)]
    else:
        ranges = [entry for block in order.blocks for entry in block.ports] or [(0, 0)]
    rows: list[PortOutcome] = []
    for port in (port for first, last in ranges for port in range(first, last + 1)):
        found = what(port) if callable(what) else what
        if rows and (rows[-1].last + 1, rows[-1].kind) == (port, found):
            rows[-1] = rows[-1]._replace(last=port)
        else:
            rows.append(PortOutcome(port, port, found, 1000, 1))
    return ProbeReply(rows)


def routed(**facts: Any) -> Script:
    """The script of a route that has these facts."""
    route = Routed(1, "10.0.0.1", "eth0", 1500, 1500, gateway=None, failure=None)
    return lambda order: route._replace(id=order.id, **facts)


def listening_block(**facts: Any) -> ListeningBlock:
    """What became of a listen block; nothing but these facts."""
    empty = ListeningBlock([], [], [], [], [], [], nat=False)
    return empty._replace(**facts)


def host(name: str, *addresses: str, kind: str = "local") -> Host:
    """A host of an inventory."""
    found = tuple(Address(text, 6 if ":" in text else 4) for text in addresses)
    return Host(name, found, ("node",), Vantage(kind))  # type: ignore[arg-type]


class FakePipe:
    """A stream that ``respond`` answers once something was sent; then the peer closes it."""

    def __init__(self, respond: Respond | None = None, failure: str | None = None) -> None:
        self.opened = Opened(failure, rtt_ms=1.5)
        self.sent = b""
        self._respond = respond
        self._events: list[Event] = []

    async def send(self, data: bytes) -> None:
        """Note the bytes, and make what they are answered with."""
        self.sent += data
        if self._respond is not None:
            found = self._respond(data)
            self._events.append(Event("data", found) if isinstance(found, bytes) else found)

    async def receive(self, limit_s: float) -> Event:
        """The next event of the script."""
        await asyncio.sleep(0)
        return self._events.pop(0) if self._events else Event("fin")


def answering(*links: str) -> Script:
    """Who has an address: these link-layer addresses."""
    return lambda order: SegmentAnswers(
        order.id, [AddressAnswer(order.dsts[0], link) for link in links], None
    )


# What hosts that do nothing unusual say, unless a script says otherwise.
USUAL: dict[type[Any], Script] = {
    SegmentAskOrder: answering(),
    RouteOrder: routed(gateway="10.0.0.254"),
    OwnResetsOrder: lambda order: OwnResets(order.id, []),
    PacketCountsOrder: lambda order: PacketCounts(order.id, None, None, None),
}


class FakeAgent(AgentMethods):
    """Answers every order by the function that ``scripts`` has for its class."""

    def __init__(
        self,
        host: Host,
        scripts: dict[type[Any], Script] | None = None,
        *,
        index: int = 0,
        hello: HelloLine | None = HELLO,
        lost: bool = False,
    ) -> None:
        super().__init__(host, index, Templates())
        self.scripts = scripts or {}
        self.asked: list[Any] = []
        self.lost = lost
        self.refusal: AgentError | None = None
        self.pipes: Callable[[Target], OpenedPipe] | None = None
        self._hello = hello
        self.settled.set()

    @property
    def hello(self) -> HelloLine | None:
        return self._hello

    @property
    def alive(self) -> bool:
        return self._hello is not None and not self.lost

    async def wait_ready(self) -> None:
        if not self.alive:
            raise AgentError("agent-lost", f"the agent of {self.host.name} was lost")

    async def request(self, order: Any, answer: type[Answer]) -> Answer:
        found = await self._carry_out(order)
        assert isinstance(found, answer), f"the script of {type(order).__name__} gave {found!r}"
        return found

    async def probe(self, order: ProbeOrder | EchoOrder, heard: Heard | None = None) -> ProbeReply:
        found = await self._carry_out(order)
        assert isinstance(found, ProbeReply)
        if heard is not None:
            heard(found.rows)
        return found

    @contextlib.asynccontextmanager
    async def open_stream(self, target: Target) -> AsyncIterator[OpenedPipe]:
        await self.wait_ready()
        self.asked.append(target)
        assert self.pipes is not None, "the script has no streams"
        yield self.pipes(target)

    def open_port(
        self, place: PortPlace, serve: Serve
    ) -> contextlib.AbstractAsyncContextManager[str | None]:
        raise AssertionError("the script has no ports")

    def lose(self, error: Exception) -> AgentError:
        """Be lost, as an agent whose answer nobody can work on."""
        self.lost = True
        self.refusal = AgentError("agent-lost", f"{self.host.name}: {error!r}")
        return self.refusal

    @property
    def refused(self) -> AgentError | None:
        return self.refusal

    async def quiet(self) -> None:
        """Nothing else is ever out."""

    def orders(self, kind: type[Answer]) -> list[Answer]:
        """What it was asked of one class of order."""
        return [order for order in self.asked if isinstance(order, kind)]

    async def _carry_out(self, order: Any) -> Any:
        await self.wait_ready()
        self.asked.append(order)
        await asyncio.sleep(0)
        script = self.scripts.get(type(order), USUAL.get(type(order)))
        assert script is not None, f"the script has no {type(order).__name__}"
        return script(order)


class FakeFleet(Fleet):
    """A fleet of fake agents; nothing is started."""

    def __init__(self, agents: Iterable[FakeAgent]) -> None:
        self.fakes = {agent.host.name: agent for agent in agents}
        super().__init__(self.fakes.values(), Templates(), bytes(32), lambda report: None)
        for agent in self.fakes.values():
            agent.templates = self.templates

    def agent(self, host: Host) -> FakeAgent:
        return self.fakes[host.name]
