"""Rounds of listeners at one destination: what to open, what came of it, what it saw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Listener
from netprobe.model.ports import Ports
from netprobe.probe.agents.fleet import Agent
from netprobe.probe.agents.templates import Templates
from netprobe.probe.flows.translated_sources import Origins
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import ROUND_LISTENERS, SPARE_DESCRIPTORS
from netprobe.protocols import Protocol
from netprobe.protocols.by_port import packets

UNKNOWN = Listener("unknown")
CLOSED = Listener("closed")


@dataclass(frozen=True, slots=True)
class Spot:
    """One socket address's ports that share a packet: what a block of a listen order is about."""

    protocol: str
    address: str
    packet: Protocol
    ports: Ports

    @property
    def size(self) -> int:
        """How many sockets it takes."""
        return port_sets.count(self.ports) or 1


class Listeners:
    """What is known of the destination's ports in one round."""

    def __init__(self, default: Listener) -> None:
        self._default = default
        self._states: dict[tuple[str, str], list[tuple[Ports, Listener, Protocol]]] = {}

    def add(self, spot: Spot, ports: Ports, listener: Listener) -> None:
        """Note the state of some ports of a spot."""
        states_there = self._states.setdefault((spot.protocol, spot.address), [])
        states_there.append((ports, listener, spot.packet))

    def known(self) -> Iterator[tuple[tuple[str, str], Ports, Listener]]:
        """Everything noted: (protocol, address), ports, state."""
        for key, some in self._states.items():
            for ports, listener, _ in some:
                yield key, ports, listener

    def split(self, task: Task) -> Iterator[tuple[Ports, Listener, Protocol | None]]:
        """The task's ports by their state, with the packet that a listener of ours there knows."""
        rest = task.ports
        for known, listener, packet in self._states.get((task.protocol, task.address), []):
            common = port_sets.intersect(rest, known)
            if common or not task.ports:
                yield common, listener, packet if listener.state == "ours" else None
                rest = port_sets.subtract(rest, common)
                if not task.ports:
                    return
        if rest or not task.ports:
            yield rest, self._default, None


def spots(tasks: Iterable[Task]) -> list[Spot]:
    """What to listen on for these tasks; echo needs no listener, the kernel answers."""
    found: dict[tuple[str, str, str], tuple[Protocol, list[tuple[int, int]]]] = {}
    taken: dict[tuple[str, str], Ports] = {}
    for task in tasks:
        if task.protocol == "icmp" or task.denied or task.is_name:
            continue
        place = (task.protocol, task.address)
        for ports, packet in packets(task.protocol, task.probe, task.ports):
            # One socket speaks one protocol: where two requirements ask for the same port with
            # different packets, the listener knows the first one's, and both send that.
            known = taken.get(place, ())
            free = port_sets.subtract(ports, known)
            found.setdefault((*place, packet.name), (packet, []))[1].extend(free)
            taken[place] = port_sets.normalise((*known, *free))
    return [
        Spot(protocol, address, packet, port_sets.normalise(ranges))
        for (protocol, address, _), (packet, ranges) in found.items()
        if ranges or "/" in protocol
    ]


def rounds(wanted: list[Spot], descriptors: int) -> list[list[Spot]]:
    """Cut spots into rounds that fit the agent's limit of descriptors.

    An agent with few of them needs most for other things than listeners.
    """
    room = max(1, min(ROUND_LISTENERS, max(descriptors - SPARE_DESCRIPTORS, descriptors // 4)))
    result: list[list[Spot]] = [[]]
    left = room
    for spot in wanted:
        for piece in _pieces(spot, room):
            if piece.size > left:
                result.append([])
                left = room
            result[-1].append(piece)
            left -= piece.size
    return [one for one in result if one]


def _pieces(spot: Spot, room: int) -> Iterator[Spot]:
    """The spot, or parts of it of at most ``room`` ports."""
    if spot.size <= room:
        yield spot
        return
    piece: list[tuple[int, int]] = []
    left = room
    for first, last in spot.ports:
        start = first
        while start <= last:
            end = min(last, start + left - 1)
            piece.append((start, end))
            left -= end - start + 1
            start = end + 1
            if not left:
                yield Spot(spot.protocol, spot.address, spot.packet, tuple(piece))
                piece, left = [], room
    if piece:
        yield Spot(spot.protocol, spot.address, spot.packet, tuple(piece))


class Round:
    """One round at one destination: open, ask what was seen, close."""

    def __init__(
        self, agent: Agent, templates: Templates, number: int, origins: Origins | None = None
    ) -> None:
        self.origins = origins or Origins(())
        self._agent = agent
        self._templates = templates
        self._number = number

    async def open(self, wanted: list[Spot]) -> Listeners:
        """Open listeners and give what came of it. Raises AgentError."""
        return await self._ask("listen", wanted)

    async def held(self, wanted: list[Spot]) -> Listeners:
        """Open nothing, and give who holds what already. Raises AgentError."""
        return await self._ask("held", wanted)

    async def _ask(self, kind: str, wanted: list[Spot]) -> Listeners:
        blocks = [self._block(spot) for spot in wanted]
        message = {"t": kind, "id": self._number, "blocks": blocks}
        reply = await self._agent.request(message)
        listeners = Listeners(CLOSED)
        for spot, block in zip(wanted, reply["blocks"], strict=True):
            for ports, listener in states(block):
                listeners.add(spot, ports, listener)
        return listeners

    async def seen(self, orders: list[int]) -> dict[str, Any]:
        """What the listeners noted of these orders. Raises AgentError."""
        return await self._agent.request({"t": "seen", "round": self._number, "orders": orders})

    async def close(self) -> None:
        """Close every listener of the round."""
        try:
            await self._agent.request({"t": "close", "id": self._number})
        except AgentError:
            # The agent is gone, and its sockets with it.
            return

    def _block(self, spot: Spot) -> dict[str, Any]:
        name, _, number = spot.protocol.partition("/")
        family = 6 if ":" in spot.address else 4
        return {
            "proto": name,
            "addr": spot.address,
            "ports": [list(entry) for entry in spot.ports],
            "number": int(number) if number else None,
            "template": self._templates.listener(spot.packet, name, family),
        }


def states(block: dict[str, Any]) -> Iterator[tuple[Ports, Listener]]:
    """The ports of one answered listen block, by state."""
    nat = bool(block.get("nat"))
    undialled = _ports(block.get("undialled", ()))
    up = _ports(block["up"])
    for held in block["held"]:
        kind = "loopback" if held["loopback"] else "live"
        ports = ((held["first"], held["last"]),) if held["first"] else ()
        yield ports, Listener("loopback" if kind == "loopback" else "live", _owner(held))
    note = "the agent's own connection to its listener did not arrive"
    if undialled:
        yield undialled, Listener("ours", nat=nat, note=note)
    rest = port_sets.subtract(up, undialled)
    for some, words in _beside(block, rest if up else None):
        yield some, Listener("ours" if up else "closed", nat=nat, note=words)
        rest = port_sets.subtract(rest, some)
    if rest or block.get("up_raw"):
        yield rest, Listener("ours", nat=nat)
    skipped = _ports(block.get("skipped", ()))
    if skipped:
        yield skipped, Listener("closed", note="a kubelet runs there: NodePorts are NAT rules")
    denied = _ports(block["denied"])
    if denied:
        yield denied, Listener("closed", note="the agent may not bind ports below 1024 there")
    for first, last, failure in block["failed"]:
        yield ((first, last),), Listener("closed", note=f"no listener could be opened: {failure}")


def _beside(block: dict[str, Any], of: Ports | None) -> Iterator[tuple[Ports, str]]:
    """Ports (of these only) that somebody holds on another address of the host, with his name."""
    for held in block["beside"]:
        ports: Ports = ((held["first"], held["last"]),)
        mine = ports if of is None else port_sets.intersect(of, ports)
        if mine:
            yield mine, f"the port is held on another address: {_owner(held)}"


def _owner(held: dict[str, Any]) -> str:
    """Who holds a port, as a phrase: ``etcd (pid 812) on 127.0.0.1``."""
    process = held.get("process")
    name = f"{process} (pid {held['pid']})" if process else "a process that the agent may not see"
    return f"{name} on {held['bind']}"


def _ports(ranges: Iterable[Iterable[int]]) -> Ports:
    return port_sets.normalise((first, last) for first, last in ranges)
