"""The segments of hosts: who answers for their addresses, and for those that must be free yet.

Nobody but who has an address learns from a question who asks (docs/rehearsal.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from netprobe.model.segment import DhcpFacts, RouterSeen, SegmentFacts
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.neighbours import links_of, name_machines
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Played, Stage
from netprobe.probe.rehearsals.segment_asking import LinksByAddress, SegmentQuestion, ask_segments
from netprobe.probe.rehearsals.segment_dhcp import Network, ask_networks, find_networks
from netprobe.probe.rehearsals.segment_hearing import assign_routers, doubt_router, hear_foreign
from netprobe.probe.rehearsals.segment_proxies import AskedPlace, find_routers
from netprobe.probe.rehearsals.segment_seats import PacketRehearsal, Seat, find_seat

# So many hosts of the inventory without an agent are asked who they are: a virtual address may be
# theirs already.
MOST_AGENTLESS = 64


class SegmentRehearsal(PacketRehearsal):
    """Listens and asks on all segments at once: one pace for all questions of a run."""

    async def play_together(self, stages: Sequence[Stage]) -> list[Played]:
        """Listen, ask meanwhile, and give what is known of each address."""
        fleet = stages[0].fleet
        # Who only listens and asks here has not been waited for.
        await asyncio.gather(*(one.settled.wait() for one in fleet.agents()))
        seats = await asyncio.gather(*(find_seat(stage.address, fleet) for stage in stages))
        wanted = [
            (stage, seat) for stage, seat in zip(stages, seats, strict=True)
            if isinstance(seat, Seat)
        ]  # fmt: skip
        listeners = {pair[0].host.name: pair[0] for _, seat in wanted for pair in seat.listeners}
        questions = [
            SegmentQuestion(stage.address, *seat[:2], seat.source) for stage, seat in wanted
        ]
        own = {address for one in fleet.agents() for address in _list_own(one)}
        listed = stages[0].flow.block.listed
        agentless = await _find_agentless(stages, listed, own)
        also = agentless if any(stage.flow.destination.free for stage in stages) else []
        networks = find_networks([(stage.address, seat) for stage, seat in wanted])
        (heard, deaf), answers, served = await asyncio.gather(
            hear_foreign(listeners.values(), fleet, {*listed, *own}),
            ask_segments([*questions, *also], fleet),
            ask_networks(networks, fleet),
        )
        taken = {*listed, *own, *(one.address for one in questions)}
        proxies = await find_routers(questions, answers, taken, fleet)
        others = _name_agentless([one.address for one in also], answers)
        heard = [
            doubt_router(one, agentless, answers) for one in heard if one.seen.link not in others
        ]
        routers = assign_routers([(stage, _name_places(seat)) for stage, seat in wanted], heard)
        known = _Answers(answers, others, proxies)
        table = _Table(fleet, known, wanted, routers, deaf)
        played = [table.conclude(stage, seat) for stage, seat in wanted]
        for network, dhcp in zip(networks, served, strict=True):
            _add_dhcp(played, network, dhcp._replace(is_barred=stages[0].flow.block.no_dhcp))
        shown = iter(played)
        return [next(shown) if isinstance(seat, Seat) else seat for seat in seats]


def _add_dhcp(played: list[Played], network: Network, dhcp: DhcpFacts) -> None:
    """Tell of the DHCP servers of a network at one of its addresses: a host's, if it has one."""
    seen = [
        (facts.is_free, place, facts)
        for place in network.places if isinstance(facts := played[place], SegmentFacts)
    ]  # fmt: skip
    for _, place, facts in sorted(seen)[:1]:
        played[place] = facts._replace(dhcp=dhcp)


def _name_places(seat: Seat) -> frozenset[tuple[str, str]]:
    return frozenset((agent.host.name, device) for agent, device in seat.listeners)


async def _find_agentless(
    stages: Sequence[Stage], listed: Iterable[str], own: Collection[str]
) -> list[SegmentQuestion]:
    """Find addresses of hosts without an agent on these networks, and who asks for them, once."""
    asked = {stage.address for stage in stages}
    some = [text for text in listed if text not in own and text not in asked][:MOST_AGENTLESS]
    fleet = stages[0].fleet
    seats = await asyncio.gather(*(find_seat(address, fleet) for address in some))
    return [
        SegmentQuestion(address, seat.asker, seat.device, times=1)
        for address, seat in zip(some, seats, strict=True)
        if isinstance(seat, Seat)
    ]


def _name_agentless(addresses: Iterable[str], answers: LinksByAddress) -> dict[str, str]:
    """Give the address of the host that has a link-layer address, where it alone answered."""
    found: dict[str, str] = {}
    for address in addresses:
        links = answers[address]
        if not isinstance(links, Exception) and len(links) == 1:
            found.setdefault(links[0], address)
    return found


class _Answers(NamedTuple):
    """Who answered: for each address, for hosts without an agent, and for all addresses."""

    links: LinksByAddress
    agentless: Mapping[str, str]
    proxies: Mapping[AskedPlace, frozenset[str]]


class _Table:
    """All answers of a run, and what they say of each address."""

    def __init__(
        self,
        fleet: Fleet,
        answers: _Answers,
        wanted: Sequence[tuple[Stage, Seat]],
        routers: Mapping[int, tuple[RouterSeen, ...]],
        deaf: frozenset[str],
    ) -> None:
        self._agents = fleet.agents()
        self._answers, self._agentless, self._proxies = answers
        self._routers = routers
        self._deaf = deaf
        # Where hosts were asked for their own addresses, whether any was answered.
        self._answered: dict[AskedPlace, bool] = {}
        for stage, seat in wanted:
            if not stage.flow.destination.free:
                self._note_host(stage, seat)

    def _note_host(self, stage: Stage, seat: Seat) -> None:
        links = self._answers.get(stage.address)
        if isinstance(links, Exception) or links is None:
            return
        place = _name_place(stage, seat)
        self._answered[place] = self._answered.get(place, False) or bool(links)

    def conclude(self, stage: Stage, seat: Seat) -> Played:
        """Give what is known of one address."""
        links = self._answers[stage.address]
        if isinstance(links, Exception):
            return links
        facts = SegmentFacts(
            stage.flow.destination.free, seat.asker.host.name, seat.device,
            routers=self._routers.get(id(stage), ()),
            is_deaf=all(agent.host.name in self._deaf for agent, _ in seat.listeners),
        )  # fmt: skip
        look = self._look_at_free if facts.is_free else self._look_at_host
        return look(stage, seat, facts, links)

    def _look_at_free(
        self, stage: Stage, seat: Seat, facts: SegmentFacts, links: Sequence[str]
    ) -> Played:
        owners = [one for one in self._agents if stage.address in _list_own(one)]
        proxies = self._proxies.get(_name_place(stage, seat), frozenset())
        own = {link for one in owners for link in links_of(one)}
        others = [link for link in links if link not in proxies]
        agentless = [self._agentless[link] for link in others if link in self._agentless]
        facts = facts._replace(
            holders=tuple(_name_holders(others, self._agents, {*own, *self._agentless})),
            is_silent=self._answered.get(_name_place(stage, seat)) is False,
            vrid=stage.flow.destination.vrid,
        )
        if facts.holders or facts.clashing:
            return facts
        if owners or agentless:
            names = ", ".join([*(one.host.name for one in owners), *agentless])
            return NotPlayedError(None, f"{names} has {stage.address} already")
        if links:
            return NotPlayedError(None, f"{', '.join(links)} {_ANSWERS_FOR_ALL}")
        return facts

    def _look_at_host(
        self, stage: Stage, seat: Seat, facts: SegmentFacts, links: Sequence[str]
    ) -> Played:
        own = links_of(stage.fleet.agent(stage.flow.destination))
        if not own:
            return NotPlayedError(None, "its kernel does not say its link-layer addresses")
        if not links:
            return NotPlayedError(
                None, f"nobody answers for {stage.address}, not {facts.asker}'s question either"
            )
        proxies = self._proxies.get(_name_place(stage, seat), frozenset())
        holders = _name_holders(links, self._agents, {*own, *proxies})
        if not holders and proxies & {*links}:
            return NotPlayedError(None, f"{', '.join(proxies & {*links})} {_ANSWERS_FOR_ALL}")
        return facts._replace(itself=bool({*own} & {*links}), holders=tuple(holders))


_ANSWERS_FOR_ALL = (
    "answers for it, and for addresses that nobody of the inventory has: a router that answers for "
    "all, as some clouds have"
)


def _list_own(agent: AgentMethods) -> Iterable[str]:
    return agent.hello.addresses if agent.alive and agent.hello is not None else ()


def _name_place(stage: Stage, seat: Seat) -> AskedPlace:
    return seat.asker.host.name, seat.device, ":" in stage.address


def _name_holders(
    links: Sequence[str], agents: Iterable[AgentMethods], own: Iterable[str]
) -> list[str]:
    """Name the machines, with the link-layer addresses that they answered with."""
    known = {*own}
    names = {link: name_machines([link], agents)[0] for link in links if link not in known}
    return [name if name == link else f"{name} ({link})" for link, name in names.items()]
