"""From tasks to orders: which packets go to which ports, given what listens there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from netprobe.model import ports as port_sets
from netprobe.model.evidence import Listener
from netprobe.model.ports import Ports
from netprobe.probe.agents.templates import EMPTY, Templates
from netprobe.probe.flows.listeners import Listeners
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import UDP_BURST, UDP_INTERVAL_MS, ProbeSettings
from netprobe.protocols import Protocol
from netprobe.protocols.by_port import packets


@dataclass(frozen=True, slots=True)
class Part:
    """The ports of a task that get the same packets; one order each.

    ``mode`` is the wire's. ``paced``: nobody of ours answers, so answers may be rate-limited.
    """

    task: Task
    ports: Ports
    listeners: tuple[tuple[Ports, Listener], ...]
    protocol: Protocol
    mode: str
    template: int
    paced: bool

    @property
    def ours(self) -> bool:
        """Whether a listener of ours waits for these packets."""
        return any(listener.state == "ours" for _, listener in self.listeners)

    @property
    def one_way(self) -> bool:
        """Whether only a listener of ours can tell that these packets arrived."""
        return self.ours and self.mode == "send"

    def listener(self, ports: Ports) -> Iterator[tuple[Ports, Listener]]:
        """These ports by listener."""
        if not self.ports:
            yield (), self.listeners[0][1]
            return
        for known, listener in self.listeners:
            common = port_sets.intersect(ports, known)
            if common:
                yield common, listener

    def order(self, number: int, source: str | None, settings: ProbeSettings) -> dict[str, Any]:
        """The probe order as the wire carries it."""
        name, _, protocol_number = self.task.protocol.partition("/")
        ports = [list(entry) for entry in self.ports]
        return {
            "t": "probe",
            "id": number,
            "proto": name,
            "number": int(protocol_number) if protocol_number else None,
            "dst": self.task.address,
            "src": source,
            "blocks": [{"ports": ports, "mode": self.mode, "template": self.template}],
            "first_ms": settings.first_ms,
            "look_ms": settings.look_ms,
            "looks": settings.looks,
            "pace": [UDP_BURST, UDP_INTERVAL_MS] if self.paced else None,
            "min_ttl": None,
        }


def parts(task: Task, listeners: Listeners, templates: Templates) -> list[Part]:
    """Cut a task by what listens and so by what is sent."""
    groups: dict[tuple[str, int, bool], tuple[Protocol, list[tuple[Ports, Listener]]]] = {}
    for ports, listener, known in listeners.split(task):
        wanted = packets(task.protocol, task.probe, ports) if known is None else [(ports, known)]
        for some, protocol in wanted:
            mode, template = _packet(task, listener, protocol, templates)
            paced = task.protocol == "udp" and listener.state != "ours"
            members = groups.setdefault((mode, template, paced), (protocol, []))[1]
            members.append((some, listener))
    return [
        Part(task, _union(members), tuple(members), protocol, mode, template, paced)
        for (mode, template, paced), (protocol, members) in groups.items()
    ]


def _union(members: list[tuple[Ports, Listener]]) -> Ports:
    return port_sets.normalise(entry for ports, _ in members for entry in ports)


def _packet(
    task: Task, listener: Listener, protocol: Protocol, templates: Templates
) -> tuple[str, int]:
    """Mode and template: a nonce to a listener of ours, else what ``probe:`` says, else nothing."""
    transport = task.protocol.partition("/")[0]
    if transport == "icmp":
        return "echo", EMPTY
    if listener.state == "ours" or protocol.one_way:
        mode = "send" if protocol.one_way or transport == "ipproto" else "nonce"
        return mode, templates.listener(protocol, transport, task.family)
    if transport == "ipproto":
        return "send", templates.listener(protocol, transport, task.family)
    service = EMPTY if task.denied else templates.service(protocol, transport, task.family)
    if service != EMPTY:
        return "bytes", service
    return ("connect" if transport == "tcp" else "send"), EMPTY
