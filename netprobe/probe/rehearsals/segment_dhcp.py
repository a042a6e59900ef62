"""Asks each network once which DHCP servers it has; nothing is requested of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from netprobe.agent.wire.segment_messages import DhcpHeard, DhcpOrder
from netprobe.errors import AgentError
from netprobe.model.segment import DhcpFacts, DhcpSeen
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.neighbours import name_machines
from netprobe.probe.rehearsals.segment_seats import Seat


class Network(NamedTuple):
    """The places of addresses in a list that one network has, and where it is asked."""

    places: tuple[int, ...]
    family: int
    seat: Seat


def find_networks(seats: Iterable[tuple[str, Seat]]) -> list[Network]:
    """Find the networks of addresses: two have one if an agent there is on the network of both."""
    found: list[tuple[set[str], Network]] = []
    for place, (address, seat) in enumerate(seats):
        family = 6 if ":" in address else 4
        ends, network = {address, *seat.sources}, Network((place,), family, seat)
        for one in [one for one in found if one[0] & ends]:
            ends |= one[0]
            network = one[1]._replace(places=one[1].places + network.places)
            found.remove(one)
        found.append((ends, network))
    return [network for _, network in found]


async def ask_networks(networks: Iterable[Network], fleet: Fleet) -> list[DhcpFacts]:
    """Ask all of them at once; it takes 6 s."""
    return await asyncio.gather(*(_ask_network(one, fleet) for one in networks))


async def _ask_network(network: Network, fleet: Fleet) -> DhcpFacts:
    seat = network.seat
    asker = f"{seat.asker.host.name} on {seat.device}"
    order = DhcpOrder(next(fleet.order_ids), seat.device, network.family)
    try:
        told = await seat.asker.request(order, DhcpHeard)
    except AgentError as error:
        return DhcpFacts(asker, failure=str(error))
    servers = tuple(
        DhcpSeen(one.server, name_machines([one.link], fleet.agents())[0], one.offer)
        for one in told.servers
    )
    return DhcpFacts(asker, servers, failure=told.failure)
