"""Listens on segments for routers that share virtual addresses, and leaves out the known ones."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import NamedTuple

from netprobe.agent.wire.segment_messages import SegmentHeard, SegmentHearOrder
from netprobe.errors import AgentError
from netprobe.model.segment import RouterSeen
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.rehearsals.rehearsal import Stage
from netprobe.probe.rehearsals.segment_asking import LinksByAddress, SegmentQuestion

# HSRP says hello every 3 s, VRRP and CARP every second, unless somebody chose otherwise.
HEAR_MS = 4000
# Who has a virtual router over IPv6 may send from its link-layer address (RFC 9568).
VIRTUAL_6 = "00:00:5e:00:02:"


class ForeignRouter(NamedTuple):
    """A router, and where it was heard: hosts and their devices."""

    seen: RouterSeen
    places: frozenset[tuple[str, str]]


async def hear_foreign(
    agents: Iterable[AgentMethods], fleet: Fleet, known: Collection[str]
) -> tuple[list[ForeignRouter], frozenset[str]]:
    """Listen at all of these hosts; gives the routers that send from no ``known`` address, and the
    hosts that could not listen."""
    some = list(agents)
    told = await asyncio.gather(*(_hear_at(agent, fleet) for agent in some))
    places: dict[tuple[str, int, str], set[tuple[str, str]]] = {}
    last: dict[tuple[str, int, str], RouterSeen] = {}
    for agent, heard in zip(some, told, strict=True):
        for one in heard.routers:
            if one.sender in known:
                continue
            key = (one.speaks, one.group, one.sender)
            places.setdefault(key, set()).add((agent.host.name, one.dev))
            last[key] = RouterSeen(*key[:2], one.priority, one.sender, one.link, ())
    deaf = (one.host.name for one, heard in zip(some, told, strict=True) if heard.failure)
    found = [
        ForeignRouter(
            seen._replace(heard_by=tuple(sorted({name for name, _ in places[key]}))),
            frozenset(places[key]),
        )
        for key, seen in last.items()
    ]
    return found, frozenset(deaf)


def doubt_router(
    router: ForeignRouter,
    agentless: Iterable[SegmentQuestion],
    answers: LinksByAddress,
) -> ForeignRouter:
    """Give a router with the hosts of its network that it may be, by their addresses: a link-local
    address tells nobody's name, and some have no agent that would.

    ``agentless``: who asks for their addresses.
    """
    seen = router.seen
    if ":" not in seen.sender or not ip_address(seen.sender).is_link_local:
        return router
    is_virtual = seen.link.startswith(VIRTUAL_6)
    maybe = [
        one.address for one in agentless
        if (one.asker.host.name, one.device) in router.places
        and (is_virtual or isinstance(answers.get(one.address, ()), Exception)
             or not answers.get(one.address))
    ]  # fmt: skip
    return router._replace(seen=seen._replace(maybe=tuple(maybe)))


async def _hear_at(agent: AgentMethods, fleet: Fleet) -> SegmentHeard:
    order = SegmentHearOrder(next(fleet.order_ids), HEAR_MS, [])
    try:
        return await agent.request(order, SegmentHeard)
    except AgentError as error:
        return SegmentHeard(order.id, [], error.reason)


def assign_routers(
    stages: Sequence[tuple[Stage, frozenset[tuple[str, str]]]], heard: Iterable[ForeignRouter]
) -> Mapping[int, tuple[RouterSeen, ...]]:
    """Give the routers of each address, by the identity of the stage: a router belongs to all
    addresses of its network that must be free; without one, to the first address of a host."""
    found: dict[int, list[RouterSeen]] = {}
    for router in heard:
        is_six = ":" in router.seen.sender
        near = [
            stage for stage, places in stages
            if places & router.places and (":" in stage.address) == is_six
        ]  # fmt: skip
        free = [stage for stage in near if stage.flow.destination.free]
        for stage in free or near[:1]:
            found.setdefault(id(stage), []).append(router.seen)
    return {key: tuple(some) for key, some in found.items()}
