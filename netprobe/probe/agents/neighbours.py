"""Agents on the network of an address: what they know of it, and who answers them for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Container, Iterable, Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from netprobe.agent.wire.host_messages import Routed
from netprobe.agent.wire.segment_messages import SegmentAnswers, SegmentAskOrder
from netprobe.errors import AgentError
from netprobe.probe.agents.agent import AgentMethods

# So many agents are asked whether they are on the address's network, the nearest first.
NEAREST = 4
# A question may get lost; who answers at all does so within milliseconds.
ASKED, ASK_AGAIN_MS = 3, 150


async def find_neighbours(
    address: str, agents: Iterable[AgentMethods]
) -> list[tuple[AgentMethods, Routed]]:
    """Find agents on the network of an address, with their routes to it; not who has it itself."""
    others = (one for one in agents if one.alive and address not in one.own_addresses)
    near = sorted(others, key=lambda agent: distance(address, agent.own_addresses))[:NEAREST]
    routes = await asyncio.gather(*(agent.route(address, None) for agent in near))
    return [
        (agent, route)
        for agent, route in zip(near, routes, strict=True)
        if route.failure is None and route.gateway is None and route.source != address
    ]


def distance(address: str, others: Iterable[str]) -> int:
    """Give how far the nearest of the others is, as the size of the network that holds both."""
    here = ip_address(address)
    known = list(_read_addresses(others))
    return min(
        ((int(one) ^ int(here)).bit_length() for one in known if one.version == here.version),
        default=here.max_prefixlen + 1,
    )


def _read_addresses(texts: Iterable[str]) -> Iterator[IPv4Address | IPv6Address]:
    """Read addresses; what an agent says of itself may be none."""
    for text in texts:
        with contextlib.suppress(ValueError):
            yield ip_address(text)


class HolderAnswers:
    """Who answers for addresses that are doubted; a neighbour with packet sockets asks once."""

    def __init__(self, agents: Sequence[AgentMethods]) -> None:
        self._agents = agents
        self._asked: dict[str, asyncio.Task[tuple[str, ...] | None]] = {}

    async def ask(self, address: str) -> tuple[str, ...]:
        """Give the link-layer addresses of all who answer for it; none where nobody can ask."""
        if address not in self._asked:
            self._asked[address] = asyncio.create_task(self._ask_network(address))
        found = await asyncio.shield(self._asked[address])
        if found is None:
            # An agent that can ask may still be starting.
            self._asked.pop(address, None)
        return found or ()

    async def _ask_network(self, address: str) -> tuple[str, ...] | None:
        with contextlib.suppress(AgentError):
            for agent, route in await find_neighbours(address, self._agents):
                if route.source is not None and route.dev is not None and _may_ask(agent):
                    asked = [address] * ASKED
                    order = SegmentAskOrder(0, route.dev, asked, ASK_AGAIN_MS, route.source)
                    answer = await agent.request(order, SegmentAnswers)
                    if answer.failure is None:
                        return tuple(one.link for one in answer.answers)
        return None


def name_machines(
    links: Iterable[str], agents: Iterable[AgentMethods], own: Container[str] = ()
) -> list[str]:
    """Give the machines that have these devices, other than who has its ``own``: each once, by its
    name where its agent says that the device is its."""
    names = {link: one.host.name for one in agents for link in links_of(one)}
    return list(dict.fromkeys(names.get(link, link) for link in links if link not in own))


def links_of(agent: AgentMethods) -> list[str]:
    """Give the link-layer addresses of an agent's host, as far as it said them."""
    return agent.hello.links if agent.hello is not None else []


def word_answers(names: Sequence[str], address: str) -> str:
    """Word who answers for an address."""
    who = f"{' and '.join(names)} {'answers' if len(names) == 1 else 'all answer'}"
    return f"{who} {'neighbour' if ':' in address else 'ARP'} requests for {address}"


def _may_ask(agent: AgentMethods) -> bool:
    """Tell whether an agent may open packet sockets."""
    return agent.hello is not None and agent.hello.net_raw
