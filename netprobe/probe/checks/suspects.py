"""Answers that may not be the destination's: forged resets, and whoever accepts for everybody.

Asked only for what would pass without our listener's word, once a source and address.

* A genuine reset arrives with the destination's TTL. With IP_MINTTL just above that the kernel
  ignores it, and still sees one from a nearer forger (network-facts section 2).
* Where nothing tells that TTL, a full one betrays the first hop: if the destination is behind a
  gateway that says "time exceeded" to a SYN with TTL 1, the gateway does not own the address, and
  whatever comes from the address has lost at least one.
* A port that must be closed and opens nevertheless: something answers SYNs for everybody.
* A connection that opens with a TTL too small to reach the destination: something nearer answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import Outcome
from netprobe.model.ports import Ports
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.flows.prober import Prober, Sighting, source_address
from netprobe.probe.flows.work import Task
from netprobe.probe.settings import MAX_TTL

# Two SYNs: the kernel sends the second after 1 s.
CHECK_MS = 1500
# Ports that no matrix names; the first that the flows do not need must be closed.
CONTROL_PORTS = (64999, 61113, 59387)
# What stacks start their TTL with; a TTL on arrival tells how many hops it has lost.
INITIAL_TTLS = (64, 128, 255)
DEPARTURES = 64

HANDSHAKES = ("unasked", "silent", "closed", "reset", "other", "service")


class Suspects:
    """Checks one destination's answers; gives the sightings with what was found."""

    def __init__(self, fleet: Fleet, prober: Prober) -> None:
        self._fleet = fleet
        self._prober = prober

    async def check(self, sightings: list[Sighting]) -> list[Sighting]:
        """Every sighting, with the doubtful ones' outcome completed."""
        groups: dict[tuple[str, str], list[Sighting]] = {}
        for sighting in sightings:
            groups.setdefault((sighting.task.source.name, sighting.task.address), []).append(
                sighting
            )
        found = await asyncio.gather(*(self._pair(group) for group in groups.values()))
        return [sighting for group in found for sighting in group]

    async def _pair(self, group: list[Sighting]) -> list[Sighting]:
        """One source and one address."""
        task = group[0].task
        doubtful = [sighting for sighting in group if _is_reset(sighting) or _is_open(sighting)]
        if not doubtful or task.address in {a.text for a in task.source.addresses}:
            return group
        resets = [sighting for sighting in doubtful if _is_reset(sighting)]
        opens = [sighting for sighting in doubtful if _is_open(sighting)]
        try:
            found = await self._resets(resets, group) if resets else []
            found += await self._opens(opens) if opens else []
        except AgentError:
            # The source is gone: what it saw stands as it is, without the check.
            return group
        checked = {id(sighting) for sighting in doubtful}
        return [sighting for sighting in group if id(sighting) not in checked] + found

    async def _ttl(self, task: Task, group: Iterable[Sighting]) -> int | None:
        """The TTL of genuine answers: from what was heard already, else asked for."""
        known = [ttl for sighting in group if (ttl := genuine_ttl(sighting.outcome)) is not None]
        known = known or await self._ask_ttl(task)
        return known[0] if known else None

    async def _hops(self, task: Task) -> int | None:
        """The smallest TTL that reaches the address: by echo, else by a closed UDP port."""
        hops = await self._walk(task, "icmp", 0)
        return hops if hops is not None else await self._walk(task, "udp", CONTROL_PORTS[0])

    async def _walk(self, task: Task, protocol: str, port: int) -> int | None:
        agent = self._fleet.agent(task.source)
        walked = await agent.walk(protocol, task.address, port, source_address(task), MAX_TTL)
        return _distance(task.address, walked.hops)

    async def _ask_ttl(self, task: Task) -> list[int]:
        """The TTL of an echo reply, or of the answer of a closed UDP port."""
        for protocol, ports in (("icmp", ()), ("udp", ((CONTROL_PORTS[0],) * 2,))):
            outcomes = await self._prober.ask(task, protocol, ports, look_ms=CHECK_MS)
            found = [ttl for _, one in outcomes if (ttl := genuine_ttl(one)) is not None]
            if found:
                return found
        return []

    # Resets

    async def is_genuine(self, reset: Sighting, group: Iterable[Sighting]) -> bool:
        """Whether nobody nearer resets this connection when it is asked alone."""
        ttl = await self._ttl(reset.task, group)
        if ttl is None:
            return False
        again = await self._prober.ask(
            reset.task, "tcp", reset.ports, look_ms=CHECK_MS, min_ttl=ttl + 1
        )
        return not any(one.failure == "refused" and not one.icmp for _, one in again)

    async def _resets(self, resets: list[Sighting], group: Iterable[Sighting]) -> list[Sighting]:
        task = resets[0].task
        ttl = await self._ttl(task, group)
        if ttl is None:
            return await self._without_ttl(resets)
        ports = _union(sighting.ports for sighting in resets)
        forged = await self._refused(task, ports, ttl + 1)
        if forged and await self._starts_higher(task, forged):
            return resets
        # A neighbour's resets arrive with a full TTL, and so do those of the own firewall.
        neighbour = ttl in INITIAL_TTLS
        left = await self._left(task, resets) if forged or neighbour else None
        if neighbour and left is False:
            forged = ports
        return [piece for sighting in resets for piece in _split(sighting, forged, left)]

    async def _refused(self, task: Task, ports: Ports, min_ttl: int) -> Ports:
        """The ports whose resets arrive with at least this TTL."""
        found = await self._prober.ask(task, "tcp", ports, look_ms=CHECK_MS, min_ttl=min_ttl)
        return _union(some for some, one in found if one.failure == "refused" and not one.icmp)

    async def _without_ttl(self, resets: list[Sighting]) -> list[Sighting]:
        """Nothing tells the destination's TTL: only a full one says something of whose it is."""
        task = resets[0].task
        route = await self._fleet.agent(task.source).route(task.address, source_address(task))
        if route.gateway in (None, task.address):
            return resets
        full = await self._full(task, _union(sighting.ports for sighting in resets))
        left = await self._left(task, resets) if full else None
        forged = bool(full) and (left is False or await self._first_hop_resets(task, full))
        return [piece for one in resets for piece in _split_full(one, full, forged, left)]

    async def _full(self, task: Task, ports: Ports) -> Ports:
        """The ports whose resets no router has lowered the TTL of."""
        full: Ports = ()
        for ttl in INITIAL_TTLS:
            here = await self._refused(task, ports, ttl)
            if not here:
                break
            # A reset that was only lost would make the TTL look full: asked twice.
            for _ in range(2 if ttl < max(INITIAL_TTLS) else 0):
                lower = port_sets.subtract(here, await self._refused(task, here, ttl + 1))
                here = lower or ()
                if not here:
                    break
            full = _union((full, here))
        return full

    async def _first_hop_resets(self, task: Task, ports: Ports) -> bool:
        """Whether a full TTL can only be the first hop's.

        A SYN that dies of its TTL there was not for that hop. A router that sets the TTL of all
        that it forwards gives a reset of an unused port a full one, too.
        """
        control = ((CONTROL_PORTS[0],) * 2,)
        if await self._refused(task, control, min(INITIAL_TTLS)):
            return False
        agent = self._fleet.agent(task.source)
        walked = await agent.walk("tcp", task.address, ports[0][0], source_address(task), 1)
        return any(ttl == 1 and hop not in (None, task.address) for ttl, hop in walked.hops)

    async def _starts_higher(self, task: Task, forged: Ports) -> bool:
        """Whether these resets start with another TTL than the answers: then nothing is known."""
        first = ((forged[0][0], forged[0][0]),)
        answers = await self._prober.ask(task, "tcp", first, look_ms=CHECK_MS, min_ttl=65)
        return any(one.failure == "refused" for _, one in answers)

    async def _left(self, task: Task, resets: list[Sighting]) -> bool | None:
        """Whether connects raise the interface's count of sent packets; None: nobody could say."""
        agent = self._fleet.agent(task.source)
        port = resets[0].ports[0][0]
        counted = await agent.count_sent(task.address, source_address(task), port, DEPARTURES)
        return None if counted.packets is None else counted.packets >= counted.connects

    # Opens

    async def _opens(self, opens: list[Sighting]) -> list[Sighting]:
        task = opens[0].task
        if await self._control_opens(task):
            return [_false_open(sighting, "control") for sighting in opens]
        hops = await self._hops(task)
        if hops is None or hops < 2:
            return opens
        ports = _union(sighting.ports for sighting in opens)
        answers = await self._prober.ask(task, "tcp", ports, look_ms=CHECK_MS, ttl=hops - 1)
        nearer = _union(some for some, one in answers if one.answer is not None)
        return [piece for sighting in opens for piece in _split_open(sighting, nearer)]

    async def _control_opens(self, task: Task) -> bool:
        """Whether two ports that nobody needs accept connections too."""
        ports = port_sets.normalise((port, port) for port in CONTROL_PORTS[:2])
        answers = await self._prober.ask(task, "tcp", ports, look_ms=CHECK_MS)
        return bool(answers) and all(one.answer is not None for _, one in answers)


def _distance(address: str, hops: Iterable[tuple[int, str | None]]) -> int | None:
    """The TTL that reaches the address, as far as a router vouches for it.

    The last router's answer proves that one less does not reach it. Its own probe or answer may be
    lost, and then a larger TTL looks like the first that does.
    """
    known = [(ttl, hop) for ttl, hop in hops if hop is not None]
    reached = [ttl for ttl, hop in known if hop == address]
    if not reached:
        return None
    routers = [ttl for ttl, hop in known if hop != address and ttl < min(reached)]
    if routers:
        return max(routers) + 1
    return 1 if min(reached) == 1 else None


def genuine_ttl(outcome: Outcome | None) -> int | None:
    """The TTL of an answer that only the address itself gives, where the kernel said it."""
    if outcome is None:
        return None
    if outcome.icmp is not None:
        return outcome.icmp.ttl if outcome.icmp.origin == "destination" else None
    return outcome.ttl if outcome.answer in ("echo", "nonce", "service") else None


def _is_reset(sighting: Sighting) -> bool:
    outcome = sighting.outcome
    return (
        outcome is not None
        and outcome.failure == "refused"
        and outcome.icmp is None
        and not outcome.blind
    )


def _is_open(sighting: Sighting) -> bool:
    """A TCP connection that opened without our listener's word."""
    outcome = sighting.outcome
    return (
        outcome is not None
        and sighting.task.protocol == "tcp"
        and sighting.listener.state != "ours"
        and outcome.answer in HANDSHAKES
    )


def _union(parts: Iterable[Ports]) -> Ports:
    return port_sets.normalise(entry for ports in parts for entry in ports)


def _split(sighting: Sighting, forged: Ports, left: bool | None) -> list[Sighting]:
    """The ports whose reset came from nearer, and those whose reset is the destination's."""
    assert sighting.outcome is not None
    nearer = port_sets.intersect(sighting.ports, forged)
    rest = port_sets.subtract(sighting.ports, forged)
    pieces = []
    if nearer:
        outcome = replace(sighting.outcome, forged=True, left_host=left)
        pieces.append(replace(sighting, ports=nearer, outcome=outcome))
    if rest:
        outcome = replace(sighting.outcome, forged=False)
        pieces.append(replace(sighting, ports=rest, outcome=outcome))
    return pieces


def _split_full(sighting: Sighting, full: Ports, forged: bool, left: bool | None) -> list[Sighting]:
    """The ports whose reset came with a full TTL, and the others, of which nothing is known."""
    assert sighting.outcome is not None
    some = port_sets.intersect(sighting.ports, full)
    rest = port_sets.subtract(sighting.ports, full)
    word = True if forged else None
    outcome = replace(sighting.outcome, forged=word, full_ttl=True, left_host=left)
    lower = replace(sighting.outcome, full_ttl=False)
    pieces = ((some, outcome), (rest, lower))
    return [replace(sighting, ports=ports, outcome=one) for ports, one in pieces if ports]


def _split_open(sighting: Sighting, nearer: Ports) -> list[Sighting]:
    false = port_sets.intersect(sighting.ports, nearer)
    rest = port_sets.subtract(sighting.ports, nearer)
    pieces = [_false_open(replace(sighting, ports=false), "nearer")] if false else []
    return [*pieces, replace(sighting, ports=rest)] if rest else pieces


def _false_open(sighting: Sighting, how: str) -> Sighting:
    assert sighting.outcome is not None
    said = {
        "control": "ports that nobody uses accept connections too",
        "nearer": "the connection opens even with a TTL too small to reach the destination",
    }[how]
    outcome = replace(sighting.outcome, answer="intercepted", said=said)
    return replace(sighting, outcome=outcome)
