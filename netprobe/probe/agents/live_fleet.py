"""Live agents: started at once, each ready or lost on its own."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from ipaddress import ip_address

from msgspec.structs import replace

from netprobe.agent.wire.answers import HelloLine, StoryTold
from netprobe.agent.wire.orders import RateOrder, RecordOrder, StoryOrder
from netprobe.errors import AgentError, bug_words
from netprobe.model.inventory import Host
from netprobe.model.result import HostFacts, HostReport
from netprobe.probe.agents.agent import Agent
from netprobe.probe.agents.fleet import Fleet, TellHost
from netprobe.probe.agents.start_doubts import StartDoubts
from netprobe.probe.agents.templates import Templates
from netprobe.vantage.base import HostKeyError
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.limits import make_room_for_agents
from netprobe.vantage.link import CLOSE_S, HURRIED_CLOSE_S, AgentLink

# Fewer open files than these make an agent slow; Linux gives 1,024 where nobody changed it.
FEW_FILES = 256

# What a recorder missed is a note: the run waits no longer for an agent that stands still.
LOSS_S = 2.0
# Asks a recorder for nothing but how it fares.
NO_FLOW = StoryOrder(
    0, "tcp", None, "0.0.0.0", "0.0.0.0", [], sent=True, numbers=[], own_ports=[]
)  # fmt: skip

_OF_MACHINE = ("machine", "addresses", "links")


@contextlib.asynccontextmanager
async def open_fleet(
    hosts: Iterable[Host], launcher: Launcher, tell: TellHost
) -> AsyncIterator[LiveFleet]:
    """Begin to start an agent on every host that has a way in; at the end all of them end.

    ``launcher`` is for this fleet alone. ``tell`` gets every host's report, once it is known.
    Raises RequestError where this login may not open enough files for so many agents.
    """
    hosts = tuple(hosts)
    make_room_for_agents(hosts)
    async with launcher, LiveFleet(hosts, launcher, tell) as fleet:
        yield fleet


class LiveFleet(Fleet):
    """Starts an agent on every host that has a way in, and ends all of them."""

    def __init__(self, hosts: Sequence[Host], launcher: Launcher, tell: TellHost) -> None:
        templates = Templates()
        agents = [Agent(host, index, templates) for index, host in enumerate(hosts)]
        super().__init__(agents, templates, secrets.token_bytes(32), tell)
        self._launcher = launcher
        self._agents = {agent.host.name: agent for agent in agents}
        self._starts: list[asyncio.Task[None]] = []
        self._doubts = StartDoubts(agents)
        self._sharing: asyncio.Task[None] | None = None
        self._closing = False
        # What agents that are still starting are told first.
        self._first: list[RateOrder | RecordOrder] = []

    def start(self) -> None:
        """Begin to start every agent; each settles on its own."""
        self._starts = [asyncio.create_task(self._start_one(one)) for one in self._agents.values()]

    def begin_run(self, rate: int | None = None, record: RecordOrder | None = None) -> None:
        """Tell every agent its share of ``rate`` and what to record, from its first moment."""
        super().begin_run(rate, record)
        self._first = [] if record is None else [record]
        if self._sharing is not None:
            self._sharing.cancel()
            self._first.append(RateOrder(None))
        if rate is not None:
            able = [one for one in self._agents.values() if one.host.may_start]
            self._first.append(RateOrder(rate / max(1, len(able))))
            self._sharing = asyncio.create_task(self._share_rate(rate))
        for link in self.links():
            for order in self._first:
                link.send(order)

    async def _share_rate(self, rate: int) -> None:
        """Give each agent an equal share, once all have settled."""
        await self.settled()
        links = self.links()
        for link in links:
            link.send(RateOrder(rate / max(1, len(links))))

    def start_again(self) -> None:
        """Begin to start an agent wherever there is none any more; not while a run goes on."""
        self._starts = [one for one in self._starts if not one.done()]
        for name, gone in self._agents.items():
            if not gone.host.may_start or gone.alive or not gone.settled.is_set():
                continue
            if gone.link is not None:
                self._starts.append(asyncio.create_task(gone.link.close(0.0)))
            agent = Agent(gone.host, gone.index, self.templates)
            self._agents[name] = self._by_name[name] = agent
            self._starts.append(asyncio.create_task(self._start_one(agent)))

    async def settled(self) -> None:
        """Wait until every start has succeeded or failed."""
        await asyncio.gather(*self._starts)

    def links(self) -> list[AgentLink]:
        """Give every agent that is there now."""
        agents = self._agents.values()
        return [agent.link for agent in agents if agent.link is not None and agent.alive]

    async def tell_losses(self) -> None:
        """Report the hosts whose recorder has missed packets, once more with that."""
        await asyncio.gather(*(self._tell_loss(one) for one in self._agents.values()))

    async def close(self) -> None:
        """End every agent, whatever it is doing, and every start that is in progress.

        Where the caller is being cancelled, agents get less time for it.
        """
        self._closing = True
        for start in (*self._starts, *([self._sharing] if self._sharing else [])):
            start.cancel()
        links = [agent.link for agent in self._agents.values() if agent.link is not None]
        caller = asyncio.current_task()
        hurried = caller is not None and caller.cancelling()
        patience_s = HURRIED_CLOSE_S if hurried else CLOSE_S
        closing = (link.close(patience_s) for link in links)
        try:
            await asyncio.gather(*self._starts, *closing, return_exceptions=True)
        except asyncio.CancelledError:
            # A second interrupt may come before a closing has begun.
            for link in links:
                link.kill()
            # asyncio prints a warning where the loop closes before it has seen these processes end.
            await asyncio.gather(*(link.close(0) for link in links))
            raise

    async def _tell_loss(self, agent: Agent) -> None:
        if not agent.records:
            return
        asking = self.phases.during("waiting", f"for the recorder of {agent.host.name}")
        with asking, contextlib.suppress(AgentError, TimeoutError):
            told = await asyncio.wait_for(agent.tell_story(NO_FLOW), LOSS_S)
            words = _word_loss(told)
            report = self.reports[agent.host.name]
            if words is not None:
                self._report_host(agent.host, replace(report, cost=(*report.cost, words)))

    async def _start_one(self, agent: Agent) -> None:
        host = agent.host
        begin = time.monotonic()
        try:
            if host.vantage.kind == "none":
                agent.error = AgentError("no-vantage", "the host is declared vantage: none")
                self._report_host(host, HostReport(name=host.name, state="none"))
                return
            if host.closed is not None:
                self._fail_start(agent, AgentError("no-vantage", host.closed), 0.0)
                return
            with self.phases.during("starts", host.name):
                link = await start_agent(host, agent.index, key=self.key, launcher=self._launcher)
            for order in self._first:
                link.send(order)
            agent.link = link
            took_s = round(time.monotonic() - begin, 1)
            report = host_report(link)
            cost = (*report.cost, *find_strangeness(host, link.hello.addresses))
            self._report_host(host, replace(report, cost=cost, start_s=took_s))
            link.lost.add_done_callback(lambda _: self._report_lost(agent))
        except AgentError as error:
            took_s = time.monotonic() - begin
            error = await self._doubts.look_at(agent, error, self.holders)
            self._fail_start(agent, error, took_s)
        except Exception as error:
            words = AgentError("no-vantage", bug_words(error))
            self._fail_start(agent, words, time.monotonic() - begin)
        finally:
            self._doubts.note(agent)
            agent.settled.set()

    def _fail_start(self, agent: Agent, error: AgentError, took_s: float) -> None:
        agent.error = error
        name, took_s = agent.host.name, round(took_s, 1)
        key = error.host_key if isinstance(error, HostKeyError) else None
        report = HostReport(
            name=name, state="failed", words=str(error), start_s=took_s, host_key=key
        )
        self._report_host(agent.host, report)

    def _report_lost(self, agent: Agent) -> None:
        if agent.link is None or self._closing or agent.link.lost.cancelled():
            return
        words = str(agent.link.lost.exception())
        self._report_host(agent.host, HostReport(name=agent.host.name, state="lost", words=words))

    def _report_host(self, host: Host, report: HostReport) -> None:
        self.report_host(replace(report, addresses=host.probing_addresses, zone=host.zone))


def find_strangeness(host: Host, own: Sequence[str]) -> Iterator[str]:
    """Say where the agent's machine, which has its ``own`` addresses, has none of the host's.

    Either they are translated, or the way onto it leads elsewhere: then what it sends starts there.
    """
    # Every loopback address is each host's own, whatever its devices list.
    addresses = (ip_address(text) for text in host.listed_addresses)
    listed = sorted(str(address) for address in addresses if not address.is_loopback)
    if listed and own and not set(listed) & set(own):
        words = f"its agent runs on a machine that does not have {', '.join(listed)}"
        yield f"{words}: is the way onto it right, and the address translated (NAT)?"


def _word_loss(told: StoryTold) -> str | None:
    """Word what a recorder has missed; None where it missed nothing."""
    if told.full:
        return "its packet recorder was full: that it did not see a packet says nothing"
    if not told.lost:
        return None
    packets = f"{told.lost:,} packet{'' if told.lost == 1 else 's'}"
    return f"its packet recorder missed {packets}: that it did not see one says nothing"


def host_report(link: AgentLink) -> HostReport:
    """Report the agent's rights as its hello gives them, and the cost of missing rights."""
    report = report_hello(link.host, link.hello)
    if link.is_python_sent:
        report = replace(report, facts=replace(report.facts, python_sent=True))
    if link.cost is None:
        return report
    return replace(report, cost=(link.cost,), facts=replace(report.facts, sudo_failed=True))


def report_hello(host: str, hello: HelloLine) -> HostReport:
    """Report an agent's rights as its hello gives them."""
    # Whose devices these are concerns the run only, not who reads its report.
    said = {key: value for key, value in hello._asdict().items() if key not in _OF_MACHINE}
    return HostReport(
        name=host,
        state="agent",
        python=hello.python,
        user=hello.user,
        privileged=hello.net_raw,
        cost=_describe_costs(hello),
        facts=HostFacts(**said),
    )


def _describe_costs(hello: HelloLine) -> tuple[str, ...]:
    """Describe in one sentence each what a missing right costs."""
    lacks = (
        (hello.net_raw, "no packet recorder and no raw IP protocols: only its kernel's counters "
                        "tell its own firewall from the path"),
        (hello.low_ports, "no listeners below port 1024"),
        (hello.sees_owners, "the owners of held ports stay unknown"),
    )  # fmt: skip
    costs = tuple(sentence for allowed, sentence in lacks if not allowed)
    files = hello.nofile
    few = f"only {files} files may be open at once (ulimit -n): few listeners and probes at a time"
    return (*costs, few) if files < FEW_FILES else costs
