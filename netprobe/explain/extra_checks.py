"""Probes one flow with the probe stage's own parts, then runs checks that only explain runs.

The verdict and the trail rest on the first part alone, which is what a run does; the further checks
come after it and are for the reader only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.host_messages import Routed
from netprobe.agent.wire.questions import CHECK_MS, CONTROL_PORTS, MAX_TTL
from netprobe.errors import AgentError
from netprobe.model.evidence import Evidence, Outcome
from netprobe.model.notes import LookNote, WalkNote
from netprobe.model.plan import SEGMENT, Plan
from netprobe.model.ports import Ports
from netprobe.model.result import HostReport
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.probe.checks.traceroute import WALKED
from netprobe.probe.collect import begin_run, list_hosts
from netprobe.probe.destination import Destination
from netprobe.probe.flows.address_locks import Alone
from netprobe.probe.flows.pauses import PatientProber
from netprobe.probe.flows.prober import Prober, source_address
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.work import PlanPlace, Task, Want, Work, family_of
from netprobe.probe.rehearsals.playing import play_all
from netprobe.probe.rehearsals.rehearsal import RowArrivals
from netprobe.probe.settings import ProbeSettings
from netprobe.vantage.launch import Launcher

Answer = TypeVar("Answer")

# More ports than these tell no more of an address.
MOST_BESIDE = 4


class Further(Struct):
    """The answers to questions asked after the run's evidence was complete. None: no answer.

    ``controls`` has an outcome for each of ``icmp``, ``tcp/64999`` ...; ``flow_walk`` is the walk
    of the flow itself, ``other_walk`` that of ``other``: what another protocol reaches; ``route``
    and ``back`` are the routes there and back. ``beside`` names the controls on ports that other
    rows of the matrices require.
    """

    route: Routed | None = None
    back: Routed | None = None
    controls: Mapping[str, Outcome] = field(default_factory=dict)
    flow_walk: Walked | None = None
    other: str = "icmp echo"
    other_walk: Walked | None = None
    beside: tuple[str, ...] = ()


class Watched(Struct, frozen=True):
    """Everything seen: evidence in the plan's order, further checks by address, the hosts.

    ``left_out``: a sentence for each rehearsal that is skipped on purpose.
    """

    evidence: Sequence[Evidence]
    further: Mapping[str, Further]
    reports: Mapping[str, HostReport]
    left_out: Sequence[str] = ()


async def watch(
    plan: Plan, settings: ProbeSettings, launcher: Launcher, tell: Callable[[HostReport], None]
) -> Watched:
    """Probe the plan's only flow and everything beside it. ``tell`` gets both hosts' reports."""
    evidence: dict[PlanPlace, list[Evidence]] = {}

    def note_evidence(want: Want, found: list[Evidence]) -> None:
        evidence[want.order] = found

    probed, played = plan.split_rehearsals()
    work, stage = Work(probed), Work(played)
    destination = work.destinations[0]
    arrivals, left_out = RowArrivals(), list[str]()
    arrivals.expect(plan)
    async with open_fleet(list_hosts(plan), launcher, tell) as fleet:
        begin_run(fleet, plan, settings)
        wants = list(work.wants(destination))
        probing = Destination(destination, fleet, settings, Answered(), Alone(), note_evidence)
        await probing.run(wants)
        arrivals.note(one for some in evidence.values() for one in some)
        further_wants = [want for host in stage.destinations for want in stage.wants(host)]
        await play_all(
            further_wants, fleet, arrivals, note_evidence,
            lambda what, _ports: left_out.append(f"{what.requirement} is skipped: {what.reason}"),
        )  # fmt: skip
        seen = [one for order in sorted(evidence) for one in evidence[order]]
        prober = PatientProber(fleet, settings, Answered())
        further = await _look_further(seen, fleet, prober, list_beside(plan))
    return Watched(seen, further, fleet.reports, left_out)


def list_beside(plan: Plan) -> tuple[int, ...]:
    """List a few other TCP ports that the matrices require between the two hosts of the flow."""
    block = plan.blocks[0]
    starts = {*plan.roles.get(block.sources[0].name, ())}
    ends = {*plan.roles.get(block.destinations[0][0].name, ())}
    own = {port for port, _ in block.ports} if block.protocol == "tcp" else set()
    wanted = {
        first
        for one in plan.requirements
        if one.protocol == "tcp" and one.expect == "allowed"
        if starts & {*one.from_} and ends & {*one.to}
        for first, _ in one.ports
    }
    return tuple(sorted(wanted - own)[:MOST_BESIDE])


async def _look_further(
    seen: Sequence[Evidence], fleet: Fleet, prober: Prober, beside: Sequence[int]
) -> dict[str, Further]:
    """One address after the other, so that the looks do not share a router's rate limit."""
    found: dict[str, Further] = {}
    for evidence in seen:
        address = evidence.address
        resolved = evidence.outcome is None or evidence.outcome.operation != "resolve"
        is_flow = evidence.flow.block.rehearsal != SEGMENT
        if address not in found and evidence.mtu is None and resolved and is_flow:
            found[address] = await _FurtherLooks(evidence, fleet, prober, beside).look()
    return found


class _FurtherLooks:
    """The further looks at one address."""

    def __init__(
        self, evidence: Evidence, fleet: Fleet, prober: Prober, beside: Sequence[int]
    ) -> None:
        flow = evidence.flow
        address = evidence.address
        self._evidence = evidence
        self._beside = beside
        self._source = fleet.agent(flow.source)
        self._destination = fleet.agent(flow.destination)
        self._prober = prober
        self._protocol = flow.block.protocol
        self._task = Task(
            flow.source, address, family_of(address), "icmp", None, False, (),
            (Want(flow, (0, 0, 0)),),
        )  # fmt: skip

    async def look(self) -> Further:
        """Ask everything that can be asked; a name that is no address cannot."""
        found = Further()
        address = self._evidence.address
        is_name = ":" not in address and not address.replace(".", "").isdigit()
        if self._evidence.flow.address.family is None and is_name:
            return found
        found.route = await _try_asking(
            self._source.route(self._task.address, source_address(self._task))
        )
        sender = found.route.source if found.route is not None else None
        if sender is not None:
            found.back = await _try_asking(self._destination.route(sender, self._task.address))
        # The walks draw on the buckets of the routers, so they are made one after the other.
        found.flow_walk = await self._walk_flow()
        if self._protocol != "icmp":
            found.other_walk = await self._try_walk("icmp", 0, 0)
            if found.other_walk is not None and found.other_walk.failure is not None:
                # Not every host lets its users ping.
                found.other = f"udp/{CONTROL_PORTS[0]}"
                found.other_walk = await self._try_walk("udp", CONTROL_PORTS[0], 0)
        found.controls = await self._ask_controls()
        names = map(_name_port, self._beside)
        found.beside = tuple(name for name in names if name in found.controls)
        return found

    async def _walk_flow(self) -> Walked | None:
        """Walk with what the flow's own probes carried, unless the run did so itself."""
        ports = self._evidence.flow.block.ports
        port = ports[0][0] if ports else 0
        walks = [one.walked for one in self._evidence.notes(WalkNote) if one.port == port]
        if walks or self._protocol not in WALKED:
            return walks[0] if walks else None
        looks = self._evidence.notes(LookNote)
        return await self._try_walk(self._protocol, port, looks[0].template if looks else 0)

    async def _try_walk(self, protocol: str, port: int, template: int) -> Walked | None:
        address, source = self._task.address, source_address(self._task)
        return await _try_asking(
            self._source.walk(protocol, address, port, source, MAX_TTL, template)
        )

    async def _ask_controls(self) -> dict[str, Outcome]:
        """Echo, a TCP port that nobody uses, and such a UDP port beside a UDP flow."""
        port = CONTROL_PORTS[0]
        asked: dict[str, tuple[str, Ports]] = {"icmp": ("icmp", ())}
        for protocol in ("tcp", "udp") if self._protocol == "udp" else ("tcp",):
            asked[f"{protocol}/{port}"] = (protocol, ((port, port),))
        asked |= {_name_port(one): ("tcp", ((one, one),)) for one in self._beside}
        answers = await asyncio.gather(*(self._ask_control(*one) for one in asked.values()))
        return {name: one for name, one in zip(asked, answers, strict=True) if one is not None}

    async def _ask_control(self, protocol: str, ports: Ports) -> Outcome | None:
        task = replace(self._task, protocol=protocol)
        found = await _try_asking(self._prober.ask(task, protocol, ports, look_ms=CHECK_MS))
        return found[0][1] if found else None


def _name_port(port: int) -> str:
    return f"tcp/{port}"


async def _try_asking(asked: Awaitable[Answer]) -> Answer | None:
    """Wait for an agent's answer; None where there is no agent, or no longer."""
    try:
        return await asked
    except AgentError:
        return None
