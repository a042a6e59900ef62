"""Ports that services hold: a watch opens no listener there, so that a service that restarts gets
its port."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import chain

from msgspec.structs import replace

from netprobe.agent.wire.frames import PROCESS_NAME
from netprobe.errors import AgentError
from netprobe.model.plan import Block, Plan
from netprobe.model.ports import (
    Ports,
    cut_entries,
    intersect,
    normalise,
    subtract,
    union,
    union_by_key,
)
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.listeners import Round, spots
from netprobe.probe.flows.work import Work, join

# So many rounds a port is left alone that was held in one of them.
LEFT_ALONE = 10

# Host, protocol, address.
HeldPlace = tuple[str, str, str]
PortsHeld = Mapping[HeldPlace, Ports]


class HeldLedger:
    """What was held in which round; ``stays``: held in two rounds on end, now or earlier."""

    def __init__(self, stays: PortsHeld) -> None:
        self.stays = dict(stays)
        self._rounds: list[PortsHeld] = []

    def note(self, held: PortsHeld) -> dict[HeldPlace, Ports]:
        """Note what a round finds held; gives the places of which more stays now, with it."""
        before = self._rounds[-1] if self._rounds else {}
        self._rounds = [*self._rounds[-LEFT_ALONE:], held]
        more = {}
        for place, ports in held.items():
            twice = intersect(ports, before.get(place, ()))
            known = self.stays.get(place, ())
            if subtract(twice, known):
                self.stays[place] = more[place] = union((known, twice))
        return more

    def left_alone(self) -> PortsHeld:
        """Give the ports at which no listener is opened now."""
        return union_by_key(chain.from_iterable(one.items() for one in (self.stays, *self._rounds)))


async def find_held(plan: Plan, fleet: Fleet) -> PortsHeld:
    """Ask every agent who holds the ports that are required at its host."""
    work = Work(plan)
    found: list[tuple[HeldPlace, Ports]] = []

    async def look_at(name: str) -> None:
        host = next(one for one in work.destinations if one.name == name)
        wanted = spots(join(work.wants(host), {}))
        listeners = await Round(fleet.agent(host), next(fleet.order_ids)).held(wanted)
        for (protocol, address), ports, listener in listeners.known():
            if listener.state == "live" and PROCESS_NAME not in listener.processes:
                found.append(((name, protocol, address), ports))

    names = [host.name for host in work.destinations if fleet.agent(host).alive]
    looks = await asyncio.gather(*map(look_at, names), return_exceptions=True)
    for error in looks:
        if isinstance(error, BaseException) and not isinstance(error, AgentError):
            raise error
    return union_by_key(found)


def without_listeners(plan: Plan, held: PortsHeld) -> Plan:
    """Give the plan in which these ports are served: nothing of ours listens there."""
    if not held:
        return plan
    parts = (part for one in plan.blocks for part in _cut_block(one, held))
    # A pair may be in two of them, and each flow needs a place of its own.
    return replace(plan, blocks=tuple(replace(one, index=at) for at, one in enumerate(parts)))


def _cut_block(block: Block, held: PortsHeld) -> Iterator[Block]:
    """Split a block into parts whose destinations have the same of its ports held."""
    denied = block.requirement.expect == "denied"
    if block.existing or denied or not block.ports:
        yield block
        return
    ends: dict[Ports, set[int]] = {}
    for at, (host, address) in enumerate(block.destinations):
        place = (host.name, block.protocol, address.text)
        ends.setdefault(intersect(normalise(block.ports), held.get(place, ())), set()).add(at)
    if ends.keys() == {()}:
        yield block
        return
    for ports, some in ends.items():
        pairs = [
            (source, end)
            for source in range(len(block.sources))
            for end in block.peers(source)
            if end in some
        ]
        served = cut_entries(block.ports, ports)
        free = cut_entries(block.ports, subtract(normalise(block.ports), ports))
        if pairs and served:
            yield replace(block.keep_pairs(served, pairs), existing=True)
        if pairs and free:
            yield block.keep_pairs(free, pairs)
