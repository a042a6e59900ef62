"""Finds out about a host that may be dead from a few of its flows, before the others are sent.

A dead host costs a router, and whoever waits for the router's word, three seconds; and the router
says so a few times only. So some ports and an echo request go first. Where all of them come back as
those of a dead host, and a check confirms it, they stand for all other flows of the pair.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.model import ports as port_sets
from netprobe.model.evidence import CheckConclusion, Outcome
from netprobe.model.icmp import HOST_DOWN_MS
from netprobe.model.notes import ConclusionNote, ScoutNote
from netprobe.probe.flows.batches import Part
from netprobe.probe.flows.prober import Observation, Prober
from netprobe.probe.flows.reachability import is_host_unreachable

SCOUTS = 3
# Fewer flows than these are sent at once.
LEAST_FLOWS = 8
# A dead neighbour shows after 3.06 s.
ECHO_MS = 4000
# What comes sooner is a refusal.
AT_ONCE_MS = 100
# So often an echo is asked for while the router looks for the host for somebody else.
ECHOES = 3


class Scouts:
    """The scouts of one pair: which parts they are, what they saw, and what is left to send."""

    def __init__(self, parts: list[Part], prober: Prober) -> None:
        self._prober = prober
        self._task = parts[0].task
        self.first, self.rest = _cut_scouts(parts)
        self.seen: list[Observation] = []
        self._asked: list[asyncio.Task[bool]] = []

    async def are_dead(self) -> bool:
        """Send the scouts: True when all of them have met a dead host, False when one has not.

        After True ``seen`` has what they saw; after False ``wait`` gives it.
        """
        asked = self._asked = [asyncio.create_task(self._ask_part(part)) for part in self.first]
        echo = asyncio.create_task(self._ask_echo())
        try:
            for done in asyncio.as_completed([*asked, echo]):
                if not await done:
                    return False
        except asyncio.CancelledError:
            for task in asked:
                task.cancel()
            raise
        finally:
            echo.cancel()
        routers = {one.outcome.icmp.offender for one in self.seen
                   if one.outcome is not None and one.outcome.icmp is not None}  # fmt: skip
        return len(routers) <= 1

    def conclude(self) -> list[Observation]:
        """Give what the scouts of a dead host saw, with what their router did.

        A firewall refuses an echo request within a round trip, so that a word that came so late is
        a router's that has given up. Of a source's own kernel the neighbour table knows more.
        """
        conclusion = CheckConclusion("router-gives-up")
        note = ConclusionNote(conclusion.name)
        return [
            replace(one, conclusion=conclusion).noting("dead-host", note)
            if one.outcome is not None and one.outcome.icmp and one.outcome.icmp.origin == "router"
            else one
            for one in self.seen
        ]

    async def wait(self) -> list[Observation]:
        """Give what all scouts saw, when they have all come back."""
        await asyncio.gather(*self._asked)
        return self.seen

    def stand_for_rest(self, scout: Observation) -> list[Observation]:
        """Give the flows that need not be sent what a scout saw, with the scout in their trail."""
        assert scout.outcome is not None
        note = ScoutNote(scout.task.protocol, scout.ports[0][0] if scout.ports else None)
        return [
            replace(
                scout, task=part.task, part=part, ports=part.ports, listener=listener,
                stood_for=True,
            ).noting("dead-host", note)
            for part in self.rest
            for _, listener in part.listener(part.ports)
        ]  # fmt: skip

    async def _ask_part(self, part: Part) -> bool:
        """Send one scout, and tell whether it may have met a dead host."""
        found = await self._prober.part(part)
        self.seen += found
        return all(_has_waited(one.outcome, AT_ONCE_MS) for one in found)

    async def _ask_echo(self) -> bool:
        """Ask for an echo, and tell whether the request met a dead host.

        Where the packets of another source made the router look for the host, its word comes early.
        """
        for _ in range(ECHOES):
            try:
                found = await self._prober.ask(self._task, "icmp", (), look_ms=ECHO_MS)
            except AgentError:
                return False
            if all(_has_waited(outcome, HOST_DOWN_MS) for _, outcome in found):
                return True
            if not all(_has_waited(outcome, AT_ONCE_MS) for _, outcome in found):
                return False
        return False


def _cut_scouts(parts: list[Part]) -> tuple[list[Part], list[Part]]:
    """Choose a few TCP ports, ends included; and give the parts without them."""
    ports = port_sets.union(part.ports for part in parts if part.task.protocol == "tcp")
    each = list(port_sets.each(ports))
    flows = sum(port_sets.count(part.ports) or 1 for part in parts)
    if not each or flows < LEAST_FLOWS:
        return [], parts
    last = len(each) - 1
    chosen = {each[round(last * number / (SCOUTS - 1))] for number in range(SCOUTS)}
    wanted = port_sets.normalise((port, port) for port in chosen)
    first, rest = [], []
    for part in parts:
        is_tcp = part.task.protocol == "tcp"
        mine = port_sets.intersect(part.ports, wanted) if is_tcp else ()
        others = port_sets.subtract(part.ports, mine)
        if mine:
            first.append(replace(part, ports=mine))
        if others or not part.ports:
            rest.append(replace(part, ports=others))
    return first, rest


def _has_waited(outcome: Outcome | None, least_ms: int) -> bool:
    """Tell whether it is "host unreachable", and came after so long at least."""
    if outcome is None or not is_host_unreachable(outcome):
        return False
    return outcome.elapsed_ms is None or outcome.elapsed_ms >= least_ms
