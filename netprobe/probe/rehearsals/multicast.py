"""VRRP's multicast between the hosts of a row of protocol 112: does it pass the switches?

All hosts join the group, listen, and send three packets of the id 0: VRRP has ids from 1 to 255, so
that no router elects anybody by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from netprobe.agent.wire.segment_messages import SegmentHeard, SegmentHearOrder
from netprobe.errors import AgentError
from netprobe.model.multicast import MulticastFacts
from netprobe.model.plan import find_row
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, Stage
from netprobe.probe.rehearsals.segment_hearing import HEAR_MS
from netprobe.probe.rehearsals.segment_seats import NO_RIGHT, PacketRehearsal

NO_ROUTER_HAS = 0
# A device, and the address that packets leave it from.
DevicePlace = tuple[str, str]


class MulticastWay(NamedTuple):
    """The two ends of one flow."""

    near: AgentMethods
    near_place: DevicePlace
    far: AgentMethods
    far_place: DevicePlace


class MulticastRehearsal(PacketRehearsal):
    """All hosts send and listen at once."""

    async def play_together(self, stages: Sequence[Stage]) -> list[Played]:
        """Send and listen at all hosts, and give for each way what was heard."""
        ways = await asyncio.gather(*(_find_way(stage) for stage in stages))
        places: dict[AgentMethods, dict[DevicePlace, None]] = {}
        for way in ways:
            if isinstance(way, MulticastWay):
                places.setdefault(way.near, {})[way.near_place] = None
                places.setdefault(way.far, {})[way.far_place] = None
        fleet = stages[0].fleet
        told = await asyncio.gather(
            *(_hear_at(one, [*some], fleet) for one, some in places.items())
        )
        heard = dict(zip(places, told, strict=True))
        return [_read_way(way, heard) if isinstance(way, MulticastWay) else way for way in ways]


async def _find_way(stage: Stage) -> MulticastWay | NotPlayedError | AgentError:
    """Find from where to where a flow leads, if that is one network."""
    near, far = stage.fleet.agent(stage.flow.source), stage.fleet.agent(stage.flow.destination)
    try:
        await asyncio.gather(near.wait_ready(), far.wait_ready())
        _refuse_hopeless(stage, near, far)
        there = await near.route(stage.address, stage.source_address)
        source = stage.source_address or there.source
        if there.gateway is not None or there.dev is None or source is None:
            words = f"{stage.address} is on no network of {near.host.name}: no router forwards VRRP"
            return NotPlayedError(None, words)
        back = await far.route(source, stage.address)
    except (NotPlayedError, AgentError) as error:
        return error
    if back.dev is None:
        return NotPlayedError(None, f"{far.host.name} has no way back to {source}")
    return MulticastWay(near, (there.dev, source), far, (back.dev, stage.address))


def _refuse_hopeless(stage: Stage, near: AgentMethods, far: AgentMethods) -> None:
    """Raise NotPlayedError where the run knows already that nothing will be heard."""
    hellos = [one.hello for one in (near, far) if one.hello is not None]
    machines = [one.machine for one in hellos]
    if len(machines) == 2 and machines[0] and machines[0] == machines[1]:
        raise NotPlayedError(None, "both ends are one machine")
    for one in (near, far):
        if one.hello is not None and not one.hello.net_raw:
            raise NotPlayedError("no-permission", f"{one.host.name}: {NO_RIGHT}")
    if stage.arrivals.of_row(stage.flow, stage.address, stage.port) is False:
        block = stage.flow.block
        row = f"row {find_row(block.requirement.id)} of {block.matrix}"
        words = f"packets of IP protocol 112 from host to host ({row}) are stopped: first that"
        raise NotPlayedError("row-stopped", words)


async def _hear_at(
    agent: AgentMethods, places: list[DevicePlace], fleet: Fleet
) -> SegmentHeard | AgentError:
    try:
        order = SegmentHearOrder(next(fleet.order_ids), HEAR_MS, places)
        return await agent.request(order, SegmentHeard)
    except AgentError as error:
        return error


def _read_way(way: MulticastWay, heard: Mapping[AgentMethods, SegmentHeard | AgentError]) -> Played:
    for end in (way.near, way.far):
        told = heard[end]
        if isinstance(told, AgentError):
            return told
        if told.failure is not None:
            return NotPlayedError("not-tested", f"{end.host.name} could not: {told.failure}")
    device, source = way.near_place
    others = {one: _list_senders(told) for one, told in heard.items() if one is not way.near}
    at_far = others.pop(way.far)
    heard_by = tuple(one.host.name for one, senders in others.items() if source in senders)
    is_6, own = ":" in source, {source, *way.near.own_addresses}
    hears = any((":" in one) == is_6 for one in at_far - own)
    return MulticastFacts(source, device, source in at_far, heard_by, hears)


def _list_senders(told: SegmentHeard | AgentError) -> set[str]:
    routers = [] if isinstance(told, AgentError) else told.routers
    return {one.sender for one in routers if one.group == NO_ROUTER_HAS}
