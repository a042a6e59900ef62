"""Counts how many hops away a destination is, by its own answers to walks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from netprobe.agent.wire.answers import Walked
from netprobe.agent.wire.parts import WalkHop
from netprobe.agent.wire.questions import CONTROL_PORTS, MAX_TTL
from netprobe.probe.checks.check import Scene
from netprobe.probe.flows.prober import source_address
from netprobe.probe.flows.work import Task

# Protocol → port: what is asked of an address before its distance is known.
KINDS = {"icmp": 0, "udp": CONTROL_PORTS[0]}


@dataclass
class DistanceWalks:
    """The walks from one source to one address, by echo and to a closed UDP port.

    ``walks`` has the latest one of each protocol, so that each is made once.
    """

    task: Task
    scene: Scene
    walks: dict[str, Walked] = field(default_factory=dict)

    async def count_hops(
        self, beside: str = "", *, exact: bool = False, or_least: bool = False
    ) -> int | None:
        """Find the smallest TTL that reaches the address: by echo, else by a closed UDP port.

        ``beside``: the protocol that is not to be asked. ``exact``: not a TTL below which a hop
        kept quiet, or said "time exceeded" in the name of the address, as one does that translates
        it. ``or_least``: of an address that does not answer, the smallest TTL that may reach it.
        Raises AgentError.
        """
        least = 0
        # What has been walked is read first: a walk draws answers that hosts and routers ration.
        for protocol in sorted(
            KINDS.keys() - {beside}, key=lambda one: (one not in self.walks, one)
        ):
            walked = await self._take_walk(protocol)
            hops = _find_distance(self.task.address, walked.hops)
            if hops is not None and (not exact or _is_exact(self.task.address, walked, hops)):
                return hops
            if _is_gapless(self.task.address, walked.hops):
                least = max(least, _count_routers(self.task.address, walked.hops) + 1)
        return least if or_least and least > 1 else None

    def forget_inexact(self) -> None:
        """Forget the walks that told no exact distance: the next count makes them again."""
        address = self.task.address
        self.walks = {
            protocol: walked for protocol, walked in self.walks.items()
            if _is_exact(address, walked, _find_distance(address, walked.hops))
        }  # fmt: skip

    async def _take_walk(self, protocol: str) -> Walked:
        if protocol not in self.walks:
            agent = self.scene.fleet.agent(self.task.source)
            self.walks[protocol] = await agent.walk(
                protocol, self.task.address, KINDS[protocol], source_address(self.task), MAX_TTL
            )
        return self.walks[protocol]


def _is_exact(address: str, walked: Walked, hops: int | None) -> bool:
    reached = [hop.ttl for hop in walked.hops if hop.address == address]
    return walked.reached and reached == [hops]


def _find_distance(address: str, hops: Iterable[WalkHop]) -> int | None:
    """Find the TTL that reaches the address, as far as a router vouches for it.

    The last router's answer proves that one less does not reach it. Its own probe or answer may be
    lost, and then a larger TTL looks like the first that does.
    """
    known = [hop for hop in hops if hop.address is not None]
    reached = [hop.ttl for hop in known if hop.address == address]
    if not reached:
        return None
    routers = _count_routers(address, (hop for hop in known if hop.ttl < min(reached)))
    if routers:
        return routers + 1
    return 1 if min(reached) == 1 else None


def _count_routers(address: str, hops: Iterable[WalkHop]) -> int:
    """Give the TTL of the last router that answered; 0 without one."""
    return max((hop.ttl for hop in hops if hop.address not in (None, address)), default=0)


def _is_gapless(address: str, hops: Iterable[WalkHop]) -> bool:
    """Tell whether each router up to the last one answered, and none twice.

    One that rejects packets does so with a TTL larger by one than that of its "time exceeded": it
    answers twice, or has kept quiet before. Where packets go round, routers answer twice, too.
    """
    routers = {hop.ttl: hop.address for hop in hops if hop.address not in (None, address)}
    return len(routers) == len(set(routers.values())) == max(routers, default=0)
