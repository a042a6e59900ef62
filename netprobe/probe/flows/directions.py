"""Which direction of two hosts is asked first, where it helps the other one to get through.

An IP protocol has no ports: what a host has sent opens stateful firewalls, its own too, for what
comes back. So of two directions one at most is asked as if nobody had sent anything before.
Neighbours take turns, so that every host of three or more is asked first by another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from netprobe.model.plan import PATH_MTU, Block, Flow, Plan

PORTLESS = "ipproto/"
ALONE, FIRST, LATER = range(3)


class Directions:
    """When each flow of a plan is asked."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        blocks = [block for block in plan.blocks if block.protocol.startswith(PORTLESS)]
        self._ends = [_Ends(block) for block in blocks]
        names = sorted(plan.hosts()) if blocks else []
        self._places = {name: place for place, name in enumerate(names)}

    def split(self) -> tuple[Plan, Plan]:
        """Give the plan of what is asked first, and of what is asked when this has ended."""
        parts: list[tuple[int, Block]] = []
        for block in self._plan.blocks:
            # The width of a path is measured with the packets that it is for.
            with_pair = block.protocol.startswith(PORTLESS) or block.requirement.probe == PATH_MTU
            is_cut = with_pair and bool(self._ends)
            parts += self._cut_block(block) if is_cut else [(ALONE, block)]
        first = tuple(block for turn, block in parts if turn != LATER)
        later = tuple(block for turn, block in parts if turn == LATER)
        return replace(self._plan, blocks=first), replace(self._plan, blocks=later)

    def goes_both_ways(self, flow: Flow) -> bool:
        """Tell whether what goes the other way may help this flow to get through."""
        is_portless = flow.block.protocol.startswith(PORTLESS)
        return is_portless and self._find_turn(flow.source.name, flow.destination.name) != ALONE

    def _cut_block(self, block: Block) -> Iterator[tuple[int, Block]]:
        """Cut a block by when its flows are asked; all of them keep their places in the plan."""
        chosen: list[list[tuple[int, ...]]] = [[], [], []]
        for place, source in enumerate(block.sources):
            peers: list[list[int]] = [[], [], []]
            for peer in block.peers(place):
                turn = self._find_turn(source.name, block.destinations[peer][0].name)
                peers[turn].append(peer)
            for turn, some in enumerate(peers):
                chosen[turn].append(tuple(some))
        for turn, by_source in enumerate(chosen):
            if any(by_source):
                yield turn, replace(block, chosen=tuple(by_source))

    def _find_turn(self, source: str, destination: str) -> int:
        there = [one for one in self._ends if one.has(source, destination)]
        back = [one for one in self._ends if one.has(destination, source)]
        if not there or not back or source == destination:
            return ALONE
        # What must not come shows whether it does before anything helps it.
        denied = any(one.denied for one in there)
        if denied != any(one.denied for one in back):
            return FIRST if denied else LATER
        here, end = self._places[source], self._places[destination]
        return FIRST if ((here + end) % 2 == 1) == (here < end) else LATER


class _Ends:
    """The places of a block's hosts by their names."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self._sources = {host.name: place for place, host in enumerate(block.sources)}
        self._destinations: dict[str, list[int]] = {}
        for place, (host, _) in enumerate(block.destinations):
            self._destinations.setdefault(host.name, []).append(place)
        self.denied = block.requirement.expect == "denied"

    def has(self, source: str, destination: str) -> bool:
        """Tell whether the block has a flow of these hosts."""
        at = self._sources.get(source)
        places = self._destinations.get(destination, ())
        return at is not None and any(self._block.has_pair(at, place) for place in places)
