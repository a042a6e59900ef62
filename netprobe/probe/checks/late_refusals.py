"""Asks silent ports again where the same address refused others: its answers may be rationed.

Routers and hosts answer a prober about once a second. Where it has no route a Linux router pays
twice for an answer, and once for a packet that it leaves unanswered (ip_error and icmp_send share a
bucket): who keeps asking hears nothing more. After a pause one packet is answered.

What follows: after 3.5 s the flow is asked again, and is what that says: the rejection, or silence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec.structs import replace

from netprobe.model import ports as port_sets
from netprobe.model.icmp import is_late
from netprobe.probe.checks.check import Check, Scene, group_by
from netprobe.probe.flows.prober import Observation
from netprobe.probe.flows.reachability import is_host_unreachable
from netprobe.probe.settings import UDP_BURST

# Two answers' worth of a bucket that fills at one a second, and what a walk may have taken.
PAUSE_S = 3.5

# So many ports of a protocol are asked in a turn: connects repeat their SYNs over three seconds,
# and datagrams are sent at the pace of the answers.
MOST_AT_ONCE = {"tcp": 64, "udp": UDP_BURST}

PORT_UNREACHABLE = ((3, 3), (1, 4))


class LateRefusals(Check):
    """Asks silent flows again where somebody is known to refuse their address."""

    name = "late-refusals"

    def concerns(self, seen: Observation) -> bool:
        """Refused flows, silent ones, which may be refused as well, and those to a dead host."""
        return _is_refused(seen) or _is_silent(seen) or _is_given_up(seen)

    async def look(self, group: list[Observation], scene: Scene) -> list[Observation]:
        """Look once more at each silent flow, after a pause; without a refusal at none.

        A router that has looked for a dead host in vain says so at once to whoever asks next.
        """
        dead = any(_is_given_up(seen) for seen in group)
        if not any(_is_refused(seen) and not (dead and _is_unreachable(seen)) for seen in group):
            return group
        silent = [seen for seen in group if _is_silent(seen)]
        found = [seen for seen in group if not _is_silent(seen)]
        asked = await asyncio.gather(*(_ask_late(some, scene) for some in _share_turns(silent)))
        return found + [piece for pieces in asked for piece in pieces]


def _share_turns(silent: Iterable[Observation]) -> list[list[Observation]]:
    """Share silent flows out to turns: in each as many ports of a protocol as may be asked."""
    turns: list[list[Observation]] = []
    for some in group_by(silent, lambda seen: seen.task.protocol):
        left = 0
        for seen in some:
            ports = port_sets.count(seen.ports) or 1
            if left < ports:
                turns.append([])
                left = MOST_AT_ONCE.get(seen.task.protocol, 1)
            turns[-1].append(seen)
            left -= ports
    return turns


async def _ask_late(silent: list[Observation], scene: Scene) -> list[Observation]:
    """Look once more at flows of one source after a pause; what is still silent stays as it was."""
    agent = scene.fleet.agent(silent[0].task.source)
    if agent.late_left <= 0:
        return silent
    agent.late_left -= 1
    async with scene.fleet.phases.turn(agent.unhurried, f"for a turn of {agent.host.name}"):
        await agent.quiet()
        await scene.fleet.phases.pause(PAUSE_S, f"before {agent.host.name} asks again")
        found = await asyncio.gather(*(_look_again(seen, scene) for seen in silent))
    return [piece for pieces in found for piece in pieces]


async def _look_again(seen: Observation, scene: Scene) -> list[Observation]:
    # Datagrams are sent at the pace of the answers.
    paced = replace(seen.part, paced=seen.task.protocol == "udp")
    again = await scene.prober.again(replace(seen, part=paced))
    again = [replace(one, part=replace(one.part, paced=seen.part.paced)) for one in again]
    heard = [one for one in again if one.outcome is not None and not one.lost]
    rest = port_sets.subtract(seen.ports, port_sets.union(one.ports for one in heard))
    silent = [replace(seen, ports=rest)] if rest or not heard else []
    return [one.counting(seen.outcome, packets=False) for one in heard] + silent


def _is_refused(seen: Observation) -> bool:
    """Whether a firewall, a router without a route or another machine said so. A closed UDP port is
    no refusal, and who finds no such host refuses nothing."""
    outcome = seen.outcome
    if outcome is None or outcome.icmp is None or outcome.icmp.origin == "source":
        return False
    if (outcome.icmp.type, outcome.icmp.code) in PORT_UNREACHABLE:
        # Where our listener waits, the port is not closed: a firewall says so, or another machine.
        return outcome.icmp.origin == "router" or seen.listener.state == "ours"
    return not _is_given_up(seen)


def _is_unreachable(seen: Observation) -> bool:
    return seen.outcome is not None and is_host_unreachable(seen.outcome)


def _is_given_up(seen: Observation) -> bool:
    """Tell whether a router has looked for the host, and found none."""
    elapsed_ms = None if seen.outcome is None else seen.outcome.elapsed_ms
    return _is_unreachable(seen) and is_late(elapsed_ms)


def _is_silent(seen: Observation) -> bool:
    """Tell whether so few ports are silent that asking them does not empty the bucket again."""
    if not seen.lost or (seen.witness is not None and seen.witness.socket):
        return False
    return port_sets.count(seen.ports) <= MOST_AT_ONCE.get(seen.task.protocol, 1)
