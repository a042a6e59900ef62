"""All agents of one run: started at once, each ready or lost on its own."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

from netprobe.errors import AgentError
from netprobe.model.inventory import Host
from netprobe.model.result import HostReport
from netprobe.probe.agents.echo_batches import Echoes, joins
from netprobe.probe.agents.templates import Templates
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink

# Told of every order that an agent answered: the host's name, the order, the frames of the answer.
Observe = Callable[[str, dict[str, Any], list[dict[str, Any]]], None]


def nobody(host: str, order: dict[str, Any], frames: list[dict[str, Any]]) -> None:
    """Observe nothing."""


# TTL walks are paced by the routers' own buckets, about one a second from each source: with more
# than these a large failure would take minutes to say nothing new.
WALKS = 20
# Flows asked again after a pause (``late_refusals``): each takes three to eight seconds.
LATE = 6
# Two unhurried looks; who still probes then probes a lot.
QUIET_S = 10.0

# Fewer open files than these make an agent slow; Linux gives 1,024 where nobody changed it.
FEW_FILES = 256


class Agent:
    """One host's agent: starting, ready, or lost. ``index`` is how its answers name it."""

    def __init__(
        self, host: Host, index: int, templates: Templates, observe: Observe = nobody
    ) -> None:
        self.host = host
        self.index = index
        self._observe = observe
        self.link: AgentLink | None = None
        self.error: AgentError | None = None
        self.settled = asyncio.Event()
        self._templates = templates
        self._known_templates = 0
        self.walks_left = WALKS
        self.late_left = LATE
        # Held by who asks routers that answer seldom: one at a time.
        self.unhurried = asyncio.Lock()
        self._echoes = Echoes(self._stream)
        self._asking = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._routes: dict[tuple[str, str | None], dict[str, Any]] = {}

    async def ready(self) -> AgentLink:
        """The link, once there is one. Raises AgentError where there is none or it was lost."""
        await self.settled.wait()
        if self.error is not None or self.link is None:
            raise self.error or AgentError("no-vantage", "no agent was started")
        if self.link.lost.done():
            self.link.lost.result()
        return self.link

    @property
    def hello(self) -> dict[str, Any]:
        """What the agent said of itself; empty where there is none."""
        return self.link.hello if self.link is not None else {}

    @property
    def hears_tcp_errors(self) -> bool:
        """Whether the kernel queues ICMP errors of TCP sockets: Linux 5.8 (network-facts 1)."""
        numbers = re.match(r"(\d+)\.(\d+)", self.hello.get("kernel", ""))
        return numbers is not None and (int(numbers[1]), int(numbers[2])) >= (5, 8)

    @property
    def alive(self) -> bool:
        """Whether there is an agent now."""
        return self.link is not None and not self.link.lost.done()

    async def request(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask and wait for the answer; raises AgentError where the agent is gone."""
        link = await self.ready()
        self._teach(link)
        reply = await link.request(message)
        self._observe(self.host.name, message, [reply])
        return reply

    async def probe(self, order: dict[str, Any]) -> list[dict[str, Any]]:
        """Run one probe order; gives its ``outcomes`` frames. Raises AgentError."""
        self._asking += 1
        self._quiet.clear()
        try:
            frames = await self._probed(order)
        finally:
            self._asking -= 1
            if not self._asking:
                self._quiet.set()
        self._observe(self.host.name, order, frames)
        return frames

    async def quiet(self) -> None:
        """Wait until no probe of this host is out, or for QUIET_S: what is sent before takes the
        routers' answers from what is still being asked."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), QUIET_S)

    async def _probed(self, order: dict[str, Any]) -> list[dict[str, Any]]:
        if joins(order):
            return await self._echoes.probe(order)
        return [frame async for frame in self._stream(order) if frame["t"] == "outcomes"]

    async def _stream(self, order: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Send an order and give its frames. Raises AgentError."""
        link = await self.ready()
        self._teach(link)
        async for frame in link.stream(order):
            yield frame

    async def route(self, destination: str, source: str | None) -> dict[str, Any]:
        """The route to an address as the host's kernel sees it, asked once."""
        key = (destination, source)
        if key not in self._routes:
            message = {"t": "route", "dst": destination, "src": source}
            self._routes[key] = await self.request(message)
        return self._routes[key]

    def _teach(self, link: AgentLink) -> None:
        """Send the templates that this agent does not know yet."""
        items = self._templates.after(self._known_templates)
        if items:
            link.send({"t": "templates", "items": items})
            self._known_templates += len(items)


class Fleet:
    """Starts an agent on every host that has a way in, and ends all of them.

    ``tell`` is called with every host's report, once it is known; ``observe`` with what the agents
    are asked and answer.
    """

    def __init__(
        self,
        hosts: Sequence[Host],
        launcher: Launcher,
        tell: Callable[[HostReport], None],
        observe: Observe = nobody,
    ) -> None:
        self.templates = Templates()
        # Who asks slowly asks alone: a limit of new connections may be a router's.
        self.slowly = asyncio.Lock()
        self.key = b""
        self.order_ids = itertools.count(1)
        self._launcher = launcher
        self._tell = tell
        self._agents = {
            host.name: Agent(host, index, self.templates, observe)
            for index, host in enumerate(hosts)
        }
        self._starts: list[asyncio.Task[None]] = []
        self._closing = False

    def start(self, key: bytes, rate: int | None = None) -> None:
        """Begin to start every agent; each settles on its own.

        Of ``rate`` (probes a second over all) each gets an equal share from its first moment.
        """
        self.key = key
        able = [agent for agent in self._agents.values() if agent.host.vantage.kind != "none"]
        first: list[dict[str, Any]] = []
        if rate is not None:
            first.append({"t": "rate", "per_s": rate / max(1, len(able))})
        for agent in self._agents.values():
            self._starts.append(asyncio.create_task(self._start(agent, key, first)))

    def agent(self, host: Host) -> Agent:
        """The agent of a host, in whatever state it is."""
        return self._agents[host.name]

    def hosts(self) -> list[Host]:
        """Every host of the run."""
        return [agent.host for agent in self._agents.values()]

    def name_of(self, index: int) -> str | None:
        """Which host an answer's index means."""
        names = list(self._agents)
        return names[index] if 0 <= index < len(names) else None

    async def settled(self) -> None:
        """Wait until every start has succeeded or failed."""
        await asyncio.gather(*self._starts)

    def links(self) -> list[AgentLink]:
        """Every agent that is there now."""
        agents = self._agents.values()
        return [agent.link for agent in agents if agent.link is not None and agent.alive]

    async def close(self) -> None:
        """End every agent, whatever it is doing, and every start that is in progress."""
        for start in self._starts:
            start.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        self._closing = True
        links = [agent.link for agent in self._agents.values() if agent.link is not None]
        await asyncio.gather(*(link.close() for link in links), return_exceptions=True)

    async def _start(self, agent: Agent, key: bytes, first: Sequence[dict[str, Any]]) -> None:
        host = agent.host
        try:
            if host.vantage.kind == "none":
                agent.error = AgentError("no-vantage", "the host is declared vantage: none")
                self._report(host, HostReport(host.name, "none"))
                return
            link = await start_agent(host, agent.index, key=key, launcher=self._launcher)
            for message in first:
                link.send(message)
            agent.link = link
            self._report(host, host_report(link))
            link.lost.add_done_callback(lambda _: self._lost(agent))
        except AgentError as error:
            agent.error = error
            self._report(host, HostReport(host.name, "failed", words=str(error)))
        finally:
            agent.settled.set()

    def _lost(self, agent: Agent) -> None:
        if agent.link is None or self._closing or agent.link.lost.cancelled():
            return
        words = str(agent.link.lost.exception())
        self._report(agent.host, HostReport(agent.host.name, "lost", words=words))

    def _report(self, host: Host, report: HostReport) -> None:
        self._tell(replace(report, addresses=_probing_addresses(host)))


def _probing_addresses(host: Host) -> tuple[str, ...]:
    """What its probes start from: where the inventory names a source address, that one alone."""
    chosen = {address.family for address in host.source_addresses}
    own = [one for one in host.addresses if one.family and one.family not in chosen]
    return tuple(address.text for address in (*host.source_addresses, *own))


def host_report(link: AgentLink) -> HostReport:
    """What an agent's hello says of its rights, and what the missing ones cost."""
    hello = link.hello
    return HostReport(
        link.host,
        "agent",
        python=hello.get("python"),
        user=hello.get("user"),
        privileged=bool(hello.get("net_raw")),
        cost=_cost(hello) if link.cost is None else (link.cost,),
        facts=hello if link.cost is None else {**hello, "sudo_failed": True},
    )


def _cost(hello: dict[str, Any]) -> tuple[str, ...]:
    """What the rights that the agent lacks take away, one sentence each."""
    lacks = (
        ("net_raw", "no packet capture and no raw IP protocols: its own firewall cannot be told "
                    "from the path"),
        ("low_ports", "no listeners below port 1024"),
        ("sees_owners", "the owners of held ports stay unknown"),
    )  # fmt: skip
    costs = tuple(sentence for key, sentence in lacks if hello.get(key) is False)
    files = hello.get("nofile", FEW_FILES)
    few = f"only {files} files may be open at once (ulimit -n): few listeners and probes at a time"
    return (*costs, few) if files < FEW_FILES else costs
