"""Every host at once: start its agent, let it list its sockets, end it, and compare."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from netprobe.agent.wire.answers import HelloLine
from netprobe.agent.wire.host_messages import Sockets, SocketsOrder
from netprobe.audit.compare import find_violations, is_client, ports_of
from netprobe.audit.declared import find_undeclared, find_unheld, pods_of
from netprobe.audit.registry import Registry, registries
from netprobe.audit.sightings import HostView, read_view
from netprobe.errors import AgentError
from netprobe.model.audit import AuditedHost, AuditedMatrix, AuditFinding, PortAudit
from netprobe.model.inventory import Host, Inventory
from netprobe.model.matrix import ChosenMatrix
from netprobe.model.plan import Pod
from netprobe.model.run import Events
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.live_fleet import open_fleet
from netprobe.signals import run_to_end
from netprobe.vantage.base import HostKeyError
from netprobe.vantage.launch import Launcher


class AuditJob(Struct, frozen=True):
    """What to compare: matrices with settings, hosts, and pods (None: no file was given)."""

    chosen: tuple[ChosenMatrix, ...]
    inventory: Inventory
    pods: tuple[Pod, ...] | None = None
    notes: tuple[str, ...] = ()


# What a host's agent said, or why it said nothing.
HostAnswer = tuple[HelloLine, Sockets] | AgentError


def audit_ports(job: AuditJob, launcher: Launcher, events: Events) -> PortAudit:
    """Look at every host that has a role of the matrices. Raises KeyboardInterrupt at a signal."""
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    begun = time.monotonic()
    known = registries(job.chosen, job.inventory)
    hosts = [host for host in job.inventory.hosts if host.name in known]
    heard = run_to_end(_ask_all(hosts, launcher, events))
    found = [_audit_host(host, known[host.name], heard, job) for host in hosts]
    return PortAudit(
        started,
        round(time.monotonic() - begun, 3),
        tuple(AuditedMatrix(one.matrix.name, dict(one.settings)) for one in job.chosen),
        tuple(host for host, _ in found),
        tuple(finding for _, findings in found for finding in findings),
        (*job.notes, *_note_nodes(job, hosts, heard)),
    )


async def _ask_all(
    hosts: Sequence[Host], launcher: Launcher, events: Events
) -> dict[str, HostAnswer]:
    """Ask every agent; hosts that none is declared for are left out."""
    heard: dict[str, HostAnswer] = {}

    async def ask(fleet: Fleet, host: Host) -> None:
        agent = fleet.agent(host)
        try:
            await agent.wait_ready()
            told = await agent.request(SocketsOrder(0), Sockets)
            assert agent.hello is not None
            heard[host.name] = (agent.hello, told)
        except AgentError as error:
            heard[host.name] = error

    able = [host for host in hosts if host.vantage.kind != "none"]
    async with open_fleet(able, launcher, events.host) as fleet:
        await asyncio.gather(*(ask(fleet, host) for host in able))
    return heard


def _audit_host(
    host: Host, registry: Registry, heard: Mapping[str, HostAnswer], job: AuditJob
) -> tuple[AuditedHost, list[AuditFinding]]:
    told = heard.get(host.name)
    if told is None:
        words = "the host is declared vantage: none"
        return AuditedHost(host.name, registry.roles, "none", words), []
    if isinstance(told, AgentError):
        words = str(told).removeprefix(f"{host.name}: ")
        key = told.host_key if isinstance(told, HostKeyError) else None
        return AuditedHost(host.name, registry.roles, "failed", words, host_key=key), []
    hello, sockets = told
    pods = _find_pods(host, hello, job)
    view = read_view(host.name, sockets, job.pods or ())
    ports = ports_of(view, registry)
    findings = [*find_violations(view, registry, ports)]
    if job.pods is not None:
        findings += find_undeclared(view, registry, ports, job.pods)
        findings += find_unheld(view, registry, ports, pods, job.pods)
    findings.sort(key=lambda one: (one.protocol, one.port))
    listed = tuple(one.audited() for one in ports if not is_client(one, view, registry))
    notes = tuple(_note_left_out(view, len(ports) - len(listed), hello))
    return AuditedHost(host.name, registry.roles, "looked-at", "", listed, notes), findings


def _find_pods(host: Host, hello: HelloLine, job: AuditJob) -> tuple[Pod, ...]:
    own = frozenset((*host.listed_addresses, *hello.addresses))
    own = frozenset(address for address in own if not address.startswith("127."))
    return pods_of(job.pods or (), host.name, hello.hostname, own)


def _note_left_out(view: HostView, clients: int, hello: HelloLine) -> Iterator[str]:
    first, last = view.client_ports
    if clients:
        yield (
            f"{clients} UDP {'port' if clients == 1 else 'ports'} of {first}-{last}, which the "
            "kernel gives to clients, left out"
        )
    if view.ours:
        yield f"{view.ours} sockets of another run of netprobe left out"
    unseen = sum(1 for one in view.sockets if one.holder is None)
    if unseen and not hello.sees_owners:
        yield f"of {unseen} sockets nobody could see the owner: the agent lacks the right (sudo)"
    elif unseen:
        yield f"of {unseen} sockets nobody could see the owner"


def _note_nodes(
    job: AuditJob, hosts: Sequence[Host], heard: Mapping[str, HostAnswer]
) -> Iterator[str]:
    """Say which nodes of the pods are no host of the inventory."""
    if job.pods is None:
        return
    known: set[str] = set()
    for host in hosts:
        told = heard.get(host.name)
        if isinstance(told, tuple):
            known |= {pod.node for pod in _find_pods(host, told[0], job)}
    strange = sorted({pod.node for pod in job.pods} - known)
    if strange:
        yield f"--pods has pods of nodes that were not looked at: {', '.join(strange)}"
