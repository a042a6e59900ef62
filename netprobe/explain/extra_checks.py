"""Probes one flow with the probe stage's own parts, notes what the agents said, and looks further.

The verdict rests on the first part alone, which is what a run does; the further looks come after it
and are for the reader only.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from netprobe.errors import AgentError
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.plan import Plan
from netprobe.model.ports import Ports
from netprobe.model.result import HostReport
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.checks.suspects import CHECK_MS, CONTROL_PORTS
from netprobe.probe.destination import Destination
from netprobe.probe.flows.address_locks import Alone
from netprobe.probe.flows.prober import Prober, source_address
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.work import Order, Task, Want, Work, family_of
from netprobe.probe.settings import MAX_TTL, ProbeSettings
from netprobe.vantage.launch import Launcher

Frame = dict[str, Any]  # Any: a frame of the wire (docs/decisions/0002-the-wire.md)
Answer = TypeVar("Answer")

WALKED = ("tcp", "udp", "icmp")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One order that an agent answered, and the frames of its answer."""

    host: str
    order: Frame
    frames: tuple[Frame, ...]


@dataclass(slots=True)
class Further:
    """What was asked after the verdict's evidence was complete. None: it could not be asked.

    ``controls`` has an outcome for each of ``icmp``, ``tcp/64999`` ...; ``flow_walk`` and
    ``other_walk`` are ``walked`` frames, the latter of ``other``: what another protocol reaches;
    ``route`` and ``back`` are ``routed`` frames, there and back.
    """

    route: Frame | None = None
    back: Frame | None = None
    controls: Mapping[str, Outcome] = field(default_factory=dict)
    flow_walk: Frame | None = None
    other: str = "icmp echo"
    other_walk: Frame | None = None


@dataclass(frozen=True, slots=True)
class Watched:
    """Everything seen: evidence by its place in the plan, exchanges in order, looks by address."""

    evidence: Mapping[Order, Sequence[Evidence]]
    exchanges: tuple[Exchange, ...]
    further: Mapping[str, Further]
    reports: Mapping[str, HostReport]


@dataclass(slots=True)
class _Notes:
    exchanges: list[Exchange] = field(default_factory=list)
    evidence: dict[Order, list[Evidence]] = field(default_factory=dict)
    reports: dict[str, HostReport] = field(default_factory=dict)

    def observe(self, host: str, order: Frame, frames: list[Frame]) -> None:
        """Note one exchange."""
        self.exchanges.append(Exchange(host, order, tuple(frames)))

    def emit(self, want: Want, found: list[Evidence]) -> None:
        """Note what was found of one flow."""
        self.evidence[want.order] = found


async def watch(
    plan: Plan, settings: ProbeSettings, launcher: Launcher, tell: Callable[[HostReport], None]
) -> Watched:
    """Probe the plan's only flow and everything beside it. ``tell`` gets both hosts' reports."""
    notes = _Notes()

    def told(report: HostReport) -> None:
        notes.reports[report.name] = report
        tell(report)

    work = Work(plan)
    destination = work.destinations[0]
    hosts = {host.name: host for host in (*work.sources, destination)}
    fleet = Fleet(tuple(hosts.values()), launcher, told, notes.observe)
    answered = Answered()
    try:
        fleet.start(secrets.token_bytes(32), settings.rate)
        wants = list(work.wants(destination))
        probing = Destination(destination, fleet, settings, answered, Alone(), notes.emit)
        await probing.run(wants, lambda: None)
        exchanges = tuple(notes.exchanges)
        prober = Prober(fleet, settings, Answered())
        further = await _look_further(notes, exchanges, fleet, prober)
    finally:
        await fleet.close()
    return Watched(notes.evidence, exchanges, further, notes.reports)


async def _look_further(
    notes: _Notes, exchanges: Sequence[Exchange], fleet: Fleet, prober: Prober
) -> dict[str, Further]:
    """One address after the other, so that the looks do not share a router's rate limit."""
    found: dict[str, Further] = {}
    for evidence in [one for some in notes.evidence.values() for one in some]:
        address = evidence.address
        resolved = evidence.outcome is None or evidence.outcome.operation != "resolve"
        if address not in found and evidence.mtu is None and resolved:
            found[address] = await _Looks(evidence, exchanges, fleet, prober).all()
    return found


class _Looks:
    """The further looks at one address."""

    def __init__(
        self, evidence: Evidence, exchanges: Sequence[Exchange], fleet: Fleet, prober: Prober
    ) -> None:
        flow = evidence.flow
        address = evidence.address
        want = Want(flow, (0, 0, 0))
        self._evidence = evidence
        self._exchanges = exchanges
        self._source = fleet.agent(flow.source)
        self._destination = fleet.agent(flow.destination)
        self._prober = prober
        self._protocol = flow.block.protocol
        self._task = Task(
            flow.source, address, family_of(address), "icmp", None, False, (), (want,)
        )

    async def all(self) -> Further:
        """Ask everything that can be asked; a name that is no address cannot."""
        found = Further()
        if self._evidence.flow.address.family is None and _is_name(self._evidence.address):
            return found
        found.route = await _tried(
            self._source.route(self._task.address, source_address(self._task))
        )
        sender = (found.route or {}).get("source")
        if sender is not None:
            found.back = await _tried(self._destination.route(sender, self._task.address))
        # The walks draw on the buckets of the routers, so they are made one after the other.
        found.flow_walk = self._walked() or await self._walk_flow()
        if self._protocol != "icmp":
            found.other_walk = await self._walk("icmp", 0, 0)
            if found.other_walk is not None and found.other_walk.get("failure") is not None:
                # Not every host lets its users ping.
                found.other = f"udp/{CONTROL_PORTS[0]}"
                found.other_walk = await self._walk("udp", CONTROL_PORTS[0], 0)
        found.controls = await self._controls()
        return found

    def _walked(self) -> Frame | None:
        """The walk that the probe stage made of this very flow, if it did."""
        for one in self._exchanges:
            if _is_walk(one.order, self._task.address, self._protocol, self._port()):
                return one.frames[0]
        return None

    def _port(self) -> int:
        ports = self._evidence.flow.block.ports
        return ports[0][0] if ports else 0

    async def _walk_flow(self) -> Frame | None:
        if self._protocol not in WALKED:
            return None
        return await self._walk(self._protocol, self._port(), self._template())

    def _template(self) -> int:
        """What the flow's own probes carried."""
        for one in self._exchanges:
            if is_probe_of(one.order, self._task.address, self._protocol):
                return int(one.order["blocks"][0]["template"])
        return 0

    async def _walk(self, protocol: str, port: int, template: int) -> Frame | None:
        message = {
            "t": "walk", "proto": protocol, "dst": self._task.address, "port": port,
            "src": source_address(self._task), "max_ttl": MAX_TTL, "template": template,
        }  # fmt: skip
        return await _tried(self._source.request(message))

    async def _controls(self) -> dict[str, Outcome]:
        """Echo, a TCP port that nobody uses, and such a UDP port beside a UDP flow."""
        port = CONTROL_PORTS[0]
        asked: dict[str, tuple[str, Ports]] = {"icmp": ("icmp", ())}
        for protocol in ("tcp", "udp") if self._protocol == "udp" else ("tcp",):
            asked[f"{protocol}/{port}"] = (protocol, ((port, port),))
        answers = await asyncio.gather(*(self._asked(*one) for one in asked.values()))
        return {name: one for name, one in zip(asked, answers, strict=True) if one is not None}

    async def _asked(self, protocol: str, ports: Ports) -> Outcome | None:
        task = replace(self._task, protocol=protocol)
        found = await _tried(self._prober.ask(task, protocol, ports, look_ms=CHECK_MS))
        return found[0][1] if found else None


def is_probe_of(order: Frame, address: str, protocol: str) -> bool:
    """Whether an order sends the flow's own probes, not a check's or the MTU's."""
    name, _, number = protocol.partition("/")
    return (
        order["t"] == "probe"
        and order["dst"] == address
        and order["proto"] == name
        and str(order.get("number") or "") == number
        and "size" not in order
        and "ttl" not in order
        and order.get("min_ttl") is None
        and "host" in order
    )


def _is_walk(order: Frame, address: str, protocol: str, port: int) -> bool:
    return order["t"] == "walk" and (order["dst"], order["proto"], order["port"]) == (
        address,
        protocol,
        port,
    )


def _is_name(address: str) -> bool:
    return ":" not in address and not address.replace(".", "").isdigit()


async def _tried(asked: Awaitable[Answer]) -> Answer | None:
    """What an agent answered; None where there is no agent, or no longer."""
    try:
        return await asked
    except AgentError:
        return None
