"""One host's agent as an object: a typed method for everything that it can be asked."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from netprobe.agent.wire import answers, host_messages, orders
from netprobe.agent.wire.parts import ListenBlock, OutcomeKind, ProbeBlock
from netprobe.errors import AgentError, bug_words
from netprobe.model.inventory import Host
from netprobe.model.konnectivity import OpenedPipe
from netprobe.probe.agents.decode import Heard, OrderBatches, ProbeReply
from netprobe.probe.agents.name_questions import NameQuestions
from netprobe.probe.agents.outcome_rules import OutcomeRules
from netprobe.probe.agents.phases import Phases
from netprobe.probe.agents.rules import check_answer, refusing
from netprobe.probe.agents.templates import Templates
from netprobe.probe.settings import COUNTED, LATE, QUIET_S, WALKS, Timing
from netprobe.vantage.accepting import PortPlace, Serve, open_port
from netprobe.vantage.link import AgentLink
from netprobe.vantage.pauses import wait_awake
from netprobe.vantage.stream import Target, open_stream

Answer = TypeVar("Answer")

# Orders of ``ask_service``; the other orders of a run count from 1 and never get there.
_SERVICE_ORDERS = itertools.count(1 << 30)


class AgentMethods(ABC):
    """What an agent can be asked. Every method raises AgentError where the agent is gone.

    A subclass says how an order is carried out; tests have one that answers from a script.
    """

    def __init__(self, host: Host, index: int, templates: Templates) -> None:
        self.host = host
        self.templates = templates
        # How the agent's answers name it.
        self.index = index
        self.begin_run(Phases(), records=False)
        # One check at a time asks routers that answer seldom.
        self.unhurried = asyncio.Lock()
        # One flow at a time is held against the host's counters.
        self.counting = asyncio.Lock()
        # Whether its start has succeeded or failed.
        self.settled = asyncio.Event()
        self._settling: asyncio.Task[Any] | None = None
        # Its host's addresses, and the hello that they were made of.
        self._addresses: tuple[answers.HelloLine | None, frozenset[str]] | None = None

    def begin_run(self, phases: Phases, *, records: bool) -> None:
        """Forget what is of an earlier run. ``phases``: where the time of this one goes, which all
        agents share; ``records``: whether it wants the recorder."""
        self.phases = phases
        self.recorder = records
        self.walks_left = WALKS
        self.late_left = LATE
        self.counted_left = COUNTED
        self.names = NameQuestions(self.host.name, self.ask_service)
        self._routes: dict[tuple[str, str | None], host_messages.Routed] = {}
        self._alike_routes: dict[tuple[object, ...], host_messages.Routed] = {}

    @property
    def own_addresses(self) -> frozenset[str]:
        """The addresses of its host: those of the inventory, and what it said itself."""
        hello = self.hello
        if self._addresses is None or self._addresses[0] is not hello:
            told = hello.addresses if hello is not None else ()
            self._addresses = hello, frozenset((*self.host.listed_addresses, *told))
        return self._addresses[1]

    async def settle(self, limit_s: float) -> None:
        """Wait until its start has ended; the limit hardly counts a standstill of this process."""
        if not self.settled.is_set():
            await wait_awake(self.settling(), limit_s)

    def settling(self) -> asyncio.Task[Any]:
        """Give what waits until its start has succeeded or failed: one for all who wait."""
        if self._settling is None:
            self._settling = asyncio.create_task(self.settled.wait())
        return self._settling

    @abstractmethod
    async def wait_ready(self) -> object:
        """Wait until the agent has started. Raises AgentError where it did not or was lost."""

    @abstractmethod
    async def request(self, order: Any, answer: type[Answer]) -> Answer:
        """Send an order that has one answer, and give that."""

    async def count_lost(self, start: float, look_s: float, least_s: float = 0.0) -> float:
        """Tell for how many seconds of a look since then (of the loop's clock; infinite: in all)
        the agent, or the way to it, stood still at most: known pauses of at least ``least_s``."""
        del start, look_s, least_s
        return 0.0

    @abstractmethod
    async def probe(
        self, order: orders.ProbeOrder | orders.EchoOrder, heard: Heard | None = None
    ) -> ProbeReply:
        """Run an order for one destination to its end; ``heard`` gets each outcome as it comes."""

    @abstractmethod
    def open_stream(self, target: Target) -> AbstractAsyncContextManager[OpenedPipe]:
        """Open a TCP connection from this host; it is closed at the end."""

    @abstractmethod
    def open_port(self, place: PortPlace, serve: Serve) -> AbstractAsyncContextManager[str | None]:
        """Serve a TCP port of this host; gives why it is not open, or None."""

    @abstractmethod
    def lose(self, error: Exception) -> AgentError:
        """Give up the agent, because work on its answer failed; gives the error of its flows."""

    @property
    @abstractmethod
    def hello(self) -> answers.HelloLine | None:
        """What the agent said of itself; None where there is none."""

    @property
    def skew_s(self) -> float:
        """How far its clock is ahead of ours, at least; below zero: behind."""
        return 0.0

    @property
    def tells_skew(self) -> bool:
        """Whether it was seen how far its clock is from ours."""
        return False

    @property
    def refused(self) -> AgentError | None:
        """Why nothing that the agent said is believed; None where there is no reason."""
        return None

    @property
    def sudo_failed(self) -> bool:
        """Whether it runs without the rights that sudo was to give it."""
        return False

    @property
    def lost_link(self) -> asyncio.Future[None] | None:
        """What fails once the agent is lost; None where nothing tells."""
        return None

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether there is an agent now."""

    @abstractmethod
    async def quiet(self) -> None:
        """Wait until no probe of this host is out, or for QUIET_S: what is sent earlier takes
        the routers' answers from what is still being asked."""

    @property
    def records(self) -> bool:
        """Whether the agent has a packet recorder: it needs the right to open packet sockets."""
        return self.recorder and self.alive and self.hello is not None and self.hello.net_raw

    @property
    def hears_tcp_errors(self) -> bool:
        """Whether the kernel queues ICMP errors of TCP sockets: Linux 5.8 and later."""
        kernel = self.hello.kernel if self.hello is not None else ""
        numbers = re.match(r"(\d{1,4})\.(\d{1,4})", kernel)
        return numbers is not None and (int(numbers[1]), int(numbers[2])) >= (5, 8)

    async def walk(
        self, protocol: str, dst: str, port: int, src: str | None, max_ttl: int, template: int = 0
    ) -> answers.Walked:
        """Send a flow's probes with TTL 1, 2, 3 ... and see which hops answer."""
        order = orders.WalkOrder(0, protocol, dst, port, src, max_ttl, template)
        with self.phases.during("walks", f"from {self.host.name} to {dst}"):
            return await self.request(order, answers.Walked)

    async def route(self, dst: str, src: str | None) -> host_messages.Routed:
        """Look up the route to an address in the host's kernel; asked once."""
        key = (dst, src)
        if key not in self._routes:
            told = await self.request(host_messages.RouteOrder(0, dst, src), host_messages.Routed)
            self._routes[key] = self._alike_routes.setdefault(told[1:], told)
        return self._routes[key]

    async def return_path(self, dst: str, src: str) -> host_messages.ReturnPath:
        """Ask whether the host can answer from ``src`` to ``dst``."""
        return await self.request(
            host_messages.ReturnPathOrder(0, dst, src), host_messages.ReturnPath
        )

    async def egress(self, dst: str, src: str | None, port: int) -> host_messages.Egress:
        """Ask whether the host's kernel has room for a packet."""
        return await self.request(
            host_messages.EgressOrder(0, dst, src, port), host_messages.Egress
        )

    async def packet_counts(self, dst: str) -> host_messages.PacketCounts:
        """Ask what the host's kernel has counted of the packets of an address's family."""
        return await self.request(
            host_messages.PacketCountsOrder(0, dst), host_messages.PacketCounts
        )

    async def tell_story(self, order: orders.StoryOrder) -> answers.StoryTold:
        """Ask what the recorder saw of a flow's packets."""
        return await self.request(order, answers.StoryTold)

    async def learn_templates(self) -> None:  # noqa: B027
        """Wait until the agent knows all packets of the run: its recorder keeps no others."""

    async def ask_service(
        self, protocol: str, dst: str, port: int, request: bytes, timing: Timing,
        src: str | None = None,
    ) -> list[OutcomeKind]:  # fmt: skip
        """Send a request to a real service at a port, and give what came back."""
        block = ProbeBlock([(port, port)], "bytes", self.templates.request(request))
        number = next(_SERVICE_ORDERS)
        order = orders.ProbeOrder(
            number, protocol, None, dst, src, [block], *timing,
            pace=None, min_ttl=None, ttl=None, size=None, host=None, sport=None, more=[],
        )  # fmt: skip
        return [row.kind for row in (await self.probe(order)).rows]

    async def resolve(self, name: str) -> host_messages.Resolved:
        """Resolve a name as programs on the host do."""
        return await self.request(host_messages.ResolveOrder(0, name), host_messages.Resolved)

    async def nameservers(self) -> host_messages.Nameservers:
        """Read the host's own name servers."""
        return await self.request(host_messages.NameserversOrder(0), host_messages.Nameservers)

    async def listen(self, round_id: int, blocks: list[ListenBlock]) -> answers.Listening:
        """Open a round of listeners."""
        with self.phases.during("listeners", f"at {self.host.name}"):
            return await self.request(orders.ListenOrder(round_id, blocks), answers.Listening)

    async def held(self, round_id: int, blocks: list[ListenBlock]) -> answers.Listening:
        """Ask who holds these ports; nothing is bound."""
        return await self.request(orders.HeldOrder(round_id, blocks), answers.Listening)

    async def seen(self, round_id: int, numbers: list[int], *, rest: bool) -> answers.Seen:
        """Ask what a round's listeners have seen of these orders; ``rest``: why others failed."""
        return await self.request(orders.SeenOrder(0, round_id, numbers, rest), answers.Seen)

    async def close_round(self, round_id: int) -> answers.Closed:
        """Close a round's listeners."""
        with self.phases.during("listeners", f"at {self.host.name}"):
            return await self.request(orders.CloseOrder(round_id), answers.Closed)


class Agent(AgentMethods):
    """A real agent: starting, ready, or lost."""

    def __init__(self, host: Host, index: int, templates: Templates, hosts: int = 1) -> None:
        super().__init__(host, index, templates)
        self.link: AgentLink | None = None
        self.error: AgentError | None = None
        self._known_templates = 0
        self._batches = OrderBatches(self._stream_answers, hosts)
        self._probing = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    @contextlib.asynccontextmanager
    async def open_stream(self, target: Target) -> AsyncIterator[OpenedPipe]:
        """Open a TCP connection from this host; it is closed at the end. Raises AgentError."""
        async with open_stream(await self.wait_ready(), target) as stream:
            yield stream

    @contextlib.asynccontextmanager
    async def open_port(self, place: PortPlace, serve: Serve) -> AsyncIterator[str | None]:
        """Serve a TCP port of this host; gives why it is not open, or None. Raises AgentError."""
        async with open_port(await self.wait_ready(), place, serve) as failure:
            yield failure

    async def wait_ready(self) -> AgentLink:
        """Wait until the agent has started. Raises AgentError where it did not or was lost."""
        if not self.settled.is_set():
            await self.settled.wait()
        if self.error is not None or self.link is None:
            raise self.error or AgentError("no-vantage", "no agent was started")
        if self.link.lost.done():
            self.link.lost.result()
        return self.link

    @property
    def hello(self) -> answers.HelloLine | None:
        """What the agent said of itself; None where there is none."""
        return self.link.hello if self.link is not None else None

    @property
    def skew_s(self) -> float:
        """How far its clock is ahead of ours, at least; below zero: behind."""
        return self.link.skew_s if self.link is not None else 0.0

    @property
    def tells_skew(self) -> bool:
        """Whether it was seen how far its clock is from ours."""
        return self.link is not None

    @property
    def lost_link(self) -> asyncio.Future[None] | None:
        """What fails once the agent is lost; None where there is none."""
        return self.link.lost if self.link is not None else None

    @property
    def alive(self) -> bool:
        """Whether there is an agent now."""
        return self.link is not None and not self.link.lost.done()

    @property
    def sudo_failed(self) -> bool:
        """Whether it runs without the rights that sudo was to give it."""
        return self.link is not None and self.link.cost is not None

    @property
    def refused(self) -> AgentError | None:
        """Why nothing that the agent said is believed: it broke the rules of the wire."""
        error = self.link.lost.exception() if self.link is not None and not self.alive else None
        is_refused = self.link is not None and self.link.is_refused
        return error if is_refused and isinstance(error, AgentError) else None

    async def request(self, order: Any, answer: type[Answer]) -> Answer:
        """Send an order that has one answer, and give that. Raises AgentError."""
        link = await self.wait_ready()
        self._send_templates(link)
        found = await link.request(order, answer)
        with refusing(link, answer):
            check_answer(order, found)
        return found

    async def count_lost(self, start: float, look_s: float, least_s: float = 0.0) -> float:
        """Tell for how many seconds of a look the agent, or the way to it, stood still at most."""
        return await (await self.wait_ready()).count_lost(start, look_s, least_s)

    async def probe(
        self, order: orders.ProbeOrder | orders.EchoOrder, heard: Heard | None = None
    ) -> ProbeReply:
        """Run an order to its end; ``heard`` gets each outcome as it comes. Raises AgentError."""
        await self.wait_ready()
        with self._count_probing():
            return await self._batches.probe(order, heard)

    def lose(self, error: Exception) -> AgentError:
        """Give up the agent, because work on its answer failed; gives the error of its flows."""
        if self.link is None or self.link.lost.done():
            return AgentError("agent-lost", f"{self.host.name}: {bug_words(error)}")
        return self.link.refuse(f"what netprobe cannot work with ({bug_words(error)})")

    async def quiet(self) -> None:
        """Wait until no probe of this host is out, or for QUIET_S."""
        waiting = self.phases.during("waiting", f"until {self.host.name} is quiet")
        with waiting, contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), QUIET_S)

    @contextlib.contextmanager
    def _count_probing(self) -> Iterator[None]:
        """A probe is out meanwhile."""
        self._probing += 1
        self._quiet.clear()
        try:
            yield
        finally:
            self._probing -= 1
            if not self._probing:
                self._quiet.set()

    async def _stream_answers(
        self, order: orders.ProbeOrder | orders.EchoOrder
    ) -> AsyncIterator[tuple[answers.ProbeOutcomes | answers.EchoOutcomes, list[int]]]:
        """Send an order and give its answers until it is done, each with the places of the
        destinations that it completes. Raises AgentError."""
        link = await self.wait_ready()
        self._send_templates(link)
        rules = OutcomeRules(order)
        answer: type[answers.ProbeOutcomes | answers.EchoOutcomes] = answers.ProbeOutcomes
        if isinstance(order, orders.EchoOrder):
            answer = answers.EchoOutcomes
        async for found in link.stream(order, answer):
            with refusing(link, answer):
                complete = rules.take(found)
            yield found, complete
        with refusing(link, answers.Done):
            rules.finish()

    async def learn_templates(self) -> None:
        """Wait until the agent knows all packets of the run so far. Raises AgentError."""
        if self.templates.after(self._known_templates):
            await self.request(host_messages.RouteOrder(0, "127.0.0.1", None), host_messages.Routed)

    def _send_templates(self, link: AgentLink) -> None:
        """Send the templates that this agent does not know yet."""
        if items := self.templates.after(self._known_templates):
            link.send(orders.TemplatesOrder(items))
            self._known_templates += len(items)
