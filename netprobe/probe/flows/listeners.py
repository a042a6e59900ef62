"""Rounds of listeners at one destination: what to open, what came of it, what it saw.

Tells which source sent a packet that arrives; its address may be translated on the way.

A nonce tells from which address a source's packets arrive. TCP and echo carry no nonce, so their
senders are compared with those that the nonces of other flows have shown.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from netprobe.agent.wire.answers import Listening, Seen
from netprobe.agent.wire.failures import ADDRESS_IN_USE
from netprobe.agent.wire.frames import PROCESS_NAME
from netprobe.agent.wire.parts import HeldPorts, ListenBlock, ListeningBlock
from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Listener
from netprobe.model.inventory import Host
from netprobe.model.ports import Ports
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.flows.work import Task, family_of
from netprobe.probe.settings import ROUND_LISTENERS, SPARE_DESCRIPTORS
from netprobe.protocols import Protocol, packets

UNKNOWN = Listener("unknown")
CLOSED = Listener("closed")
LOST = Listener("lost")
# A source and an address, its family and the protocol.
_Asked = tuple[tuple[str, str], int, str]
# A socket bound to all addresses of one family.
WILDCARDS = ("0.0.0.0", "::")


class Origins:
    """The addresses that packets to one destination come from, as far as nonces have told."""

    def __init__(
        self,
        hosts: Sequence[Host],
        own: Callable[[Host], Set[str]] = lambda host: host.listed_addresses,
    ) -> None:
        # The addresses that a host may send from: those of the inventory, and its agent's word.
        self.own = own
        self._all_hosts = hosts
        # The ports that are asked, by source and address, family and protocol.
        self._asked: dict[_Asked, Ports] = {}
        self._senders: dict[tuple[str, str], set[str]] = {}
        self._known: frozenset[str] | None = None

    def expect(self, tasks: Iterable[Task]) -> None:
        """Note what is probed as well, and what the hosts have told until now."""
        for task in tasks:
            key = (task.pair, task.family, task.protocol)
            self._asked[key] = port_sets.union((self._asked.get(key, ()), task.ports))
        self._known = None

    def note(self, task: Task, senders: Iterable[str]) -> None:
        """Note that nonces of this source came to the task's address from these."""
        self._senders.setdefault(task.pair, set()).update(senders)

    def is_translated(self, task: Task) -> bool:
        """Tell whether nonces of this source came to the task's address from a strange one."""
        return bool(self._senders.get(task.pair, set()) - self.own(task.source))

    def is_of(self, task: Task, port: int, sender: str) -> bool | None:
        """Whether a packet that came to this port is the task's source's; None: nobody can say."""
        if sender in self.own(task.source):
            return True
        if sender in self._senders.get(task.pair, ()):
            return None if self._is_shared(task, port, sender) else True
        return False if sender in self._hosts else None

    def list_rivals(self, task: Task, sender: str) -> Iterator[Ports]:
        """List what other sources ask by the same protocol, and may ask from that address, too.

        Any source may send an echo request at any time: checks do.
        """
        for (pair, family, protocol), ports in self._asked.items():
            is_alike = family == task.family and task.protocol in (protocol, "icmp")
            if pair[0] != task.source.name and is_alike:
                known = self._senders.get(pair)
                if not known or sender in known:
                    yield ports

    @property
    def _hosts(self) -> frozenset[str]:
        """The addresses of all hosts; most destinations never need them."""
        if self._known is None:
            self._known = frozenset(one for host in self._all_hosts for one in self.own(host))
        return self._known

    def _is_shared(self, task: Task, port: int, sender: str) -> bool:
        """Tell whether another host that asks the same may come from that address too."""
        return sender in self._hosts or any(
            not ports or holds(ports, port) for ports in self.list_rivals(task, sender)
        )


def holds(ports: Ports, port: int) -> bool:
    """Tell whether the port is one of them."""
    return any(first <= port <= last for first, last in ports)


class Spot(Struct, frozen=True):
    """One socket address's ports that share a packet: what a block of a listen order is about.

    ``existing``: what listens there runs already. A listener of ours would stand in for a dead
    service, so that the ports are only looked at.
    """

    protocol: str
    address: str
    packet: Protocol
    ports: Ports
    existing: bool = False

    @property
    def size(self) -> int:
        """How many sockets it takes."""
        return port_sets.count(self.ports) or 1


class Listeners:
    """The states of the destination's ports in one round."""

    def __init__(self, default: Listener) -> None:
        self._default = default
        self._states: dict[tuple[str, str], list[tuple[Ports, Listener, Protocol]]] = {}

    def add(self, spot: Spot, ports: Ports, listener: Listener) -> None:
        """Note the state of some ports of a spot."""
        states_there = self._states.setdefault((spot.protocol, spot.address), [])
        states_there.append((ports, listener, spot.packet))

    def include(self, other: Listeners) -> None:
        """Note everything that another has noted."""
        for place, some in other._states.items():
            self._states.setdefault(place, []).extend(some)

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
    """Choose the ports to listen on; echo needs no listener, because the kernel answers."""
    found: dict[tuple[str, str, str, bool], tuple[Protocol, list[tuple[int, int]]]] = {}
    taken: dict[tuple[str, str], Ports] = {}
    # A port that must be served already stays untouched, whoever else requires it.
    for task in sorted(tasks, key=lambda task: not task.existing):
        if task.protocol == "icmp" or task.denied or task.is_name:
            continue
        place = (task.protocol, task.address)
        for ports, packet in packets(task.protocol, task.probe, task.ports):
            # One socket speaks one protocol: where two requirements ask for the same port with
            # different packets, the listener knows the first one's, and both send that.
            known = taken.get(place, ())
            free = port_sets.subtract(ports, known)
            key = (*place, packet.name, task.existing)
            found.setdefault(key, (packet, []))[1].extend(free)
            taken[place] = port_sets.normalise((*known, *free))
    return [
        Spot(protocol, address, packet, port_sets.normalise(ranges), existing)
        for (protocol, address, _, existing), (packet, ranges) in found.items()
        if ranges or "/" in protocol
    ]


def rounds(wanted: list[Spot], descriptors: int) -> list[list[Spot]]:
    """Cut spots into rounds that fit the agent's limit of descriptors.

    An agent with few of them needs most for other things than listeners.
    """
    room = max(1, min(ROUND_LISTENERS, max(descriptors - SPARE_DESCRIPTORS, descriptors // 4)))
    # The first round asks all tasks that have no ports: it opens the sockets of IP protocols.
    result: list[list[Spot]] = [[spot for spot in wanted if not spot.ports]]
    left = room
    for spot in wanted:
        for piece in _cut_spot(spot, room) if spot.ports else ():
            if piece.size > left:
                result.append([])
                left = room
            result[-1].append(piece)
            left -= piece.size
    return [one for one in result if one]


def _cut_spot(spot: Spot, room: int) -> Iterator[Spot]:
    """Give the spot, or parts of it of at most ``room`` ports."""
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
                yield replace(spot, ports=tuple(piece))
                piece, left = [], room
    if piece:
        yield replace(spot, ports=tuple(piece))


class Round:
    """One round at one destination: open, ask what was seen, close."""

    def __init__(self, agent: AgentMethods, number: int, origins: Origins | None = None) -> None:
        self.origins = origins or Origins(())
        self._agent = agent
        self._number = number

    async def open(self, wanted: list[Spot]) -> Listeners:
        """Open listeners and give what came of it. Raises AgentError."""
        answer = await self._agent.listen(self._number, [self._make_block(one) for one in wanted])
        return _read_states(wanted, answer)

    async def held(self, wanted: list[Spot]) -> Listeners:
        """Open nothing, and give who holds what already. Raises AgentError."""
        answer = await self._agent.held(self._number, [self._make_block(one) for one in wanted])
        return _read_states(wanted, answer)

    async def seen(self, orders: list[int], *, rest: bool = False) -> Seen:
        """Ask what the listeners noted of these orders; ``rest``: also what says why the rest did
        not come. Raises AgentError."""
        return await self._agent.seen(self._number, orders, rest=rest)

    async def close(self) -> bool:
        """Close every listener of the round; False where its agent, and they with it, are gone."""
        try:
            await self._agent.close_round(self._number)
        except AgentError:
            return False
        return True

    def _make_block(self, spot: Spot) -> ListenBlock:
        name, _, word = spot.protocol.partition("/")
        templates = self._agent.templates
        template = templates.listener(spot.packet, name, family_of(spot.address))
        number = int(word) if word else None
        return ListenBlock(name, spot.address, list(spot.ports), number, template)


async def look_at_denied(
    tasks: Iterable[Task], agent: AgentMethods, numbers: Iterator[int]
) -> Listeners:
    """Ask the destination's agent who holds ports that must not answer, where their silence alone
    says nothing: those of UDP, and IP protocols. What it cannot know stays unknown."""
    told = agent.hello.addresses if agent.hello is not None else ()
    quiet = [
        replace(task, denied=False)
        for task in tasks
        if task.protocol == "udp" or "/" in task.protocol
        if not told or task.address in told  # behind a translation the port may be another one
    ]
    found = Listeners(UNKNOWN)
    wanted = spots(quiet)
    if wanted and agent.alive:
        with contextlib.suppress(AgentError):
            found.include(await Round(agent, next(numbers)).held(wanted))
            for spot in wanted:
                found.add(spot, spot.ports, CLOSED)
    return found


def _read_states(wanted: list[Spot], answer: Listening) -> Listeners:
    listeners = Listeners(CLOSED)
    for spot, block in zip(wanted, answer.blocks, strict=True):
        for ports, listener in states(block):
            listeners.add(spot, ports, listener)
    return listeners


def states(block: ListeningBlock) -> Iterator[tuple[Ports, Listener]]:
    """Give the ports of one answered listen block, by state."""
    for held in block.held:
        ports = ((held.first, held.last),) if held.first else ()
        state: Literal["loopback", "live"] = "loopback" if held.loopback else "live"
        yield ports, Listener(state, _name_owner(held), processes=_name_processes(held))
    yield from _find_ours(block) if block.up else _find_beside(block, "closed")
    if block.skipped:
        words = "a kubelet runs there: NodePorts are NAT rules"
        yield port_sets.normalise(block.skipped), Listener("closed", note=words)
    if block.denied:
        words = "the agent may not bind ports below 1024 there"
        yield port_sets.normalise(block.denied), Listener("closed", note=words)
    for first, last, failure in block.failed:
        fate: Literal["bound", "closed"] = "bound" if failure == ADDRESS_IN_USE else "closed"
        yield ((first, last),), Listener(fate, note=f"no listener could be opened: {failure}")


def _find_ours(block: ListeningBlock) -> Iterator[tuple[Ports, Listener]]:
    """Give the ports of our listeners, by what else is known of them."""
    rest = port_sets.normalise(block.up)
    for ports, listener in _find_beside(block, "ours"):
        yield port_sets.intersect(rest, ports), listener
        rest = port_sets.subtract(rest, ports)
    if rest:
        yield rest, Listener("ours", nat=block.nat)


def _find_beside(
    block: ListeningBlock, state: Literal["ours", "closed"]
) -> Iterator[tuple[Ports, Listener]]:
    """Give the ports that a process holds on another local address."""
    for held in block.beside:
        if held.process == PROCESS_NAME:
            continue
        owner = _name_owner(held)
        note = None if held.loopback else f"the port is held on another address: {owner}"
        found = Listener(state, nat=block.nat, note=note, processes=_name_processes(held))
        if held.bind not in WILDCARDS:
            found = replace(found, beside=owner, beside_loopback=held.loopback)
        yield ((held.first, held.last),), found


def _name_processes(held: HeldPorts) -> tuple[str, ...]:
    """Give the names of a holder: that of its program file, and the kernel's."""
    return tuple(dict.fromkeys(name for name in (held.program, held.process) if name))


def _name_owner(held: HeldPorts) -> str:
    """Name the holder of a port in a phrase: ``etcd (pid 812) on 127.0.0.1``."""
    known = f"{held.process} (pid {held.pid})" if held.pid else held.process
    name = known if held.process else "a process that the agent may not see"
    return f"{name} on {held.bind}"


def restrict(tasks: list[Task], wanted: list[Spot], first: bool) -> list[Task]:
    """The tasks of one round: the ports that it listens on; what needs no listener goes first."""
    some = []
    for task in tasks:
        if not task.ports:
            if first:
                some.append(task)
            continue
        place = (task.protocol, task.address)
        open_there = [spot.ports for spot in wanted if (spot.protocol, spot.address) == place]
        ports = port_sets.intersect(task.ports, port_sets.union(open_there))
        if ports:
            some.append(replace(task, ports=ports))
    return some
