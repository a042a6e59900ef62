"""Wants, tasks, observations and scenes, made of few words; hosts are ``a`` and ``b``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from netprobe.model.evidence import Listener, Outcome
from netprobe.model.inventory import Address, Host
from netprobe.model.matrix import Requirement
from netprobe.model.plan import Block, Flow
from netprobe.model.ports import Ports
from netprobe.probe.checks.check import Check, Scene, apply_check
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.listeners import Origins, Round
from netprobe.probe.flows.mtu_ladder import PathWidths
from netprobe.probe.flows.prober import Observation, Prober
from netprobe.probe.flows.reachability import Answered
from netprobe.probe.flows.work import FlowLedger, Task, Want, join
from netprobe.probe.settings import ProbeSettings
from netprobe.protocols import protocol_for
from tests.probe.fakes import FakeAgent, FakeFleet, host

SOURCE = host("a", "10.0.0.1")
TARGET = host("b", "10.0.0.2")
# The same host, which the inventory knows by its name.
NAMED = replace(TARGET, addresses=(Address("b.example.com", None),))
ROUTER = "10.0.9.1"
ROUND = 1000


def make_want(
    protocol: str = "tcp",
    ports: Ports = ((443, 443),),
    *,
    source: Host = SOURCE,
    target: Host = TARGET,
    order: tuple[int, int, int] = (0, 0, 0),
    sni: str | None = None,
    kept: Mapping[str, Ports] | None = None,
    **requirement: Any,
) -> Want:
    """One flow of a plan; ``requirement`` are fields of its requirement (probe, expect)."""
    wanted = Requirement("x", ("node",), ("external",), purpose="x", row="Row", **requirement)
    address = target.addresses[0]
    ends = ((source,), ((target, address),))
    block = Block(order[0], "m", wanted, protocol, ports, address.family, *ends, sni=sni)
    return Want(Flow(block, source, target, address), order, FlowLedger(dict(kept or {})))


def make_task(protocol: str = "tcp", ports: Ports = ((443, 443),), **more: Any) -> Task:
    """The task of one want."""
    (task,) = join([make_want(protocol, ports, **more)], {})
    return task


def make_observation(
    outcome: Outcome | None,
    task: Task | None = None,
    *,
    listener: Listener | str = "unknown",
    mode: str = "connect",
    template: int = 0,
    order: int = 7,
    **facts: Any,
) -> Observation:
    """What the source saw on all ports of a task."""
    about = task or make_task()
    known = Listener(listener) if isinstance(listener, str) else listener  # type: ignore[arg-type]
    listeners = ((about.ports, known),)
    packet = protocol_for(about.probe)
    part = Part(about, about.ports, listeners, packet, mode, template, paced=False)
    return Observation(about, part, about.ports, order, outcome=outcome, listener=known, **facts)


def make_scene(
    source: FakeAgent,
    target: FakeAgent | None = None,
    *others: FakeAgent,
    settings: ProbeSettings | None = None,
) -> Scene:
    """A destination with a round of listeners; without an agent there where none is given."""
    destination = target or FakeAgent(TARGET, hello=None)
    fleet = FakeFleet([source, destination, *others])
    prober = Prober(fleet, settings or ProbeSettings(), Answered())
    origins = Origins(fleet.hosts(), fleet.own_addresses)
    round_ = None if target is None else Round(target, ROUND, origins)
    return Scene(fleet, destination, prober, origins, PathWidths(fleet, prober.chance), round_)


async def look(check: Check, scene: Scene, *seen: Observation) -> list[Observation]:
    """What one check makes of these, ordered by port."""
    found = await apply_check(check, seen, scene)
    return sorted(found, key=lambda one: (one.task.source.name, one.task.protocol, one.ports))
