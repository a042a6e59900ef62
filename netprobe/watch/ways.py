"""The ways that packets of a watch take, and what changes in them: a mark is one change.

The next hops are looked up at the agents, without a packet; how many routers answers have passed
and how wide a path is, rounds see anyhow. What is seen once more than one way (several paths) is
not known, and so changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address

from msgspec import Struct

from netprobe.agent.wire.host_messages import HopsOrder, HopsTold
from netprobe.agent.wire.parts import NextHop
from netprobe.errors import AgentError
from netprobe.model.evidence import Evidence
from netprobe.model.inventory import Address, Host
from netprobe.model.outage import MarkKind, RouteMark
from netprobe.model.plan import Flow, Plan
from netprobe.model.result import Result
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.prober import find_source_address

# Systems send with one of these; what is missing to it is routers.
_FIRST_TTLS = (64, 128, 255)
# Destination and address.
_End = tuple[str, str]


class _Targets(Struct, frozen=True):
    """What a source sends to: the ends, and for each the address and that which it sends from."""

    ends: tuple[_End, ...]
    asked: tuple[tuple[str, str | None], ...]


class _WaysSeen(Struct, frozen=True):
    """What was seen last of the ways from a source: for each end a value, and when. A large estate
    has a million ends, so that they are no objects of their own."""

    ends: tuple[_End, ...] = ()
    values: tuple[str, ...] = ()
    times: tuple[float, ...] = ()


class Ways:
    """Keeps what was seen last, and gives what has changed since. A sink for a round's results."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._seen: dict[tuple[MarkKind, str], _WaysSeen] = {}
        self._targets: tuple[Plan, dict[str, _Targets]] | None = None
        self._heard: dict[tuple[MarkKind, str], dict[_End, set[int]]] = {}
        self._marks: list[RouteMark] = []

    def take_marks(self) -> tuple[RouteMark, ...]:
        """Give what has changed since this was asked last."""
        marks, self._marks = tuple(self._marks), []
        return marks

    async def look_up(self, plan: Plan, fleet: Fleet, sources: set[str] | None = None) -> None:
        """Ask all agents, or those of these sources, for their next hops."""
        if self._targets is None or self._targets[0] is not plan:
            self._targets = plan, _list_targets(plan)
        targets = self._targets[1]
        agents = [one for one in fleet.agents() if one.alive and one.host.name in targets]
        chosen = (one for one in agents if sources is None or one.host.name in sources)
        await asyncio.gather(*(self._ask_agent(one, targets[one.host.name]) for one in chosen))

    async def _ask_agent(self, agent: AgentMethods, targets: _Targets) -> None:
        begun = self._now()
        try:
            told = await agent.request(HopsOrder(0, list(targets.asked)), HopsTold)
        except AgentError:
            return  # its host is blind then, and the round reports that
        words = [*map(_word_hop, told.hops)]
        values = tuple(words[at] for at in told.picks)
        self._compare_values(
            ("next-hop", agent.host.name), targets.ends, values, (begun, self._now())
        )

    def begin_round(self) -> None:
        """Forget what was heard before this round."""
        self._heard = {}

    def hear(self, flow: Flow, found: Iterable[Evidence]) -> None:
        """Note how many routers the answers of a flow have passed."""
        for one in found:
            outcome = one.outcome
            if outcome is not None and outcome.failure is None and outcome.ttl:
                first = next(ttl for ttl in _FIRST_TTLS if ttl >= outcome.ttl)
                end = flow.destination.name, one.address
                self._note_value("hops", flow.source.name, end, first - outcome.ttl)

    def add(self, result: Result) -> None:
        """Note how wide a path is."""
        if result.path_mtu_bytes is not None:
            end = result.destination, result.address
            self._note_value("path-mtu", result.source, end, result.path_mtu_bytes)

    def _note_value(self, kind: MarkKind, source: str, end: _End, value: int) -> None:
        self._heard.setdefault((kind, source), {}).setdefault(end, set()).add(value)

    def end_round(self, begun: float, decided: float) -> None:
        """Compare what the round heard. Where one end has several values there are several ways."""
        for key, heard in self._heard.items():
            some = {end: str(*values) for end, values in heard.items() if len(values) == 1}
            self._compare_values(key, tuple(some), tuple(some.values()), (begun, decided))

    def _compare_values(
        self, key: tuple[MarkKind, str], ends: tuple[_End, ...], values: tuple[str, ...],
        looked: tuple[float, float],
    ) -> None:  # fmt: skip
        """Make marks of what is another value than before; ``looked``: from when to when."""
        before = self._seen.get(key, _WaysSeen())
        times = (looked[0],) * len(ends)
        if (before.ends, before.values) == (ends, values):
            self._seen[key] = _WaysSeen(before.ends, before.values, times)
            return
        known = dict(zip(before.ends, zip(before.values, before.times, strict=True), strict=True))
        changed: dict[tuple[str, float, str], list[str]] = {}
        for end, value in zip(ends, values, strict=True):
            old, at = known.get(end, (value, 0.0))
            if old != value:
                changed.setdefault((old, at, value), []).append(end[0])
        for (old, at, value), names in changed.items():
            hosts = tuple(dict.fromkeys(names))
            self._marks.append(RouteMark(*key, hosts, at, looked[1], old, value))
        known.update(zip(ends, zip(values, times, strict=True), strict=True))
        columns = zip(*known.values(), strict=True) if known else ((), ())
        self._seen[key] = _WaysSeen(tuple(known), *map(tuple, columns))


def _list_targets(plan: Plan) -> dict[str, _Targets]:
    found: dict[str, dict[_End, str | None]] = {}
    for source, destination, address in _list_pairs(plan):
        if address.family is not None and source.name != destination.name:
            ends = found.setdefault(source.name, {})
            ends[destination.name, address.text] = find_source_address(source, address.family)
    return {
        name: _Targets(tuple(ends), tuple((end[1], own) for end, own in ends.items()))
        for name, ends in found.items()
    }


def _list_pairs(plan: Plan) -> Iterator[tuple[Host, Host, Address]]:
    for block in plan.blocks:
        for place, source in enumerate(block.sources):
            for peer in block.peers(place):
                yield source, *block.destinations[peer]


def _word_hop(hop: NextHop) -> str:
    """A gateway of one link only is known by that link, too."""
    if hop.dev is None:
        return "no route"
    if hop.gateway is None:
        return f"none by {hop.dev}"
    return f"{hop.gateway}%{hop.dev}" if ip_address(hop.gateway).is_link_local else hop.gateway
