"""Tells routers that answer for all addresses of a network from machines that have some of them.

Who answers for addresses by chance that nobody of the inventory has answers for all.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_address

from netprobe.errors import AgentError
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.neighbours import links_of
from netprobe.probe.rehearsals.segment_asking import LinksByAddress, SegmentQuestion, ask_segments

# Asker, device, and whether it is IPv6.
AskedPlace = tuple[str, str, bool]
# So many addresses are asked for, and so many of them a router must answer for: one may be a
# broadcast address, or really that machine's.
ASKED, ANSWERED = 3, 2
# How many of its last bits an address may have another value in, the most first; and how many
# addresses are drawn to find some of the same network.
BITS, DRAWN = (16, 8, 6, 4, 3), 6


def place_of(question: SegmentQuestion) -> AskedPlace:
    """Give where an address is asked for."""
    return question.asker.host.name, question.device, ":" in question.address


async def find_routers(
    questions: Iterable[SegmentQuestion],
    answers: LinksByAddress,
    taken: Collection[str],
    fleet: Fleet,
) -> Mapping[AskedPlace, frozenset[str]]:
    """Find who answers for all on each network where a device of no agent answered; ``taken``:
    addresses that somebody has, or will have."""
    own = {link for agent in fleet.agents() for link in links_of(agent)}
    foreign: dict[AskedPlace, SegmentQuestion] = {}
    for one in questions:
        links = answers[one.address]
        if not isinstance(links, Exception) and any(link not in own for link in links):
            foreign.setdefault(place_of(one), one)
    drawn = await asyncio.gather(*(_draw_addresses(one, taken) for one in foreign.values()))
    told = await ask_segments([one for some in drawn for one in some], fleet)
    found = {}
    for place, some in zip(foreign, drawn, strict=True):
        links = [link for one in some for link in _list_links(told, one.address)]
        found[place] = frozenset(one for one in links if links.count(one) >= ANSWERED) - own
    return found


def _list_links(told: LinksByAddress, address: str) -> list[str]:
    links = told[address]
    return [] if isinstance(links, Exception) else [*links]


async def _draw_addresses(one: SegmentQuestion, taken: Collection[str]) -> list[SegmentQuestion]:
    """Draw addresses of the same network; fewer where it is small."""
    address, found = ip_address(one.address), list[SegmentQuestion]()
    for bits in BITS:
        values = random.sample(range(1, 1 << bits), DRAWN)
        texts = [str(type(address)(int(address) ^ value)) for value in values]
        free = [text for text in texts if text not in taken]
        near = await asyncio.gather(*(_is_near(one, text) for text in free))
        found = [one._replace(address=text) for text, is_near in zip(free, near, strict=True)
                 if is_near]  # fmt: skip
        if len(found) >= ASKED:
            break
    return found[:ASKED]


async def _is_near(one: SegmentQuestion, text: str) -> bool:
    """Tell whether an address is on the same network, as the asker's kernel says."""
    try:
        route = await one.asker.route(text, None)
    except AgentError:
        return False
    return route.failure is None and route.gateway is None and route.dev == one.device
