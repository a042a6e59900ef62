"""Where an address is looked at: the agents on its network, and who of them asks."""

from __future__ import annotations

from typing import NamedTuple

from netprobe.agent.wire.segment_messages import SegmentHeard, SegmentHearOrder
from netprobe.errors import AgentError
from netprobe.model.plan import Block
from netprobe.probe.agents.agent import AgentMethods
from netprobe.probe.agents.fleet import Fleet
from netprobe.probe.agents.neighbours import find_neighbours
from netprobe.probe.rehearsals.rehearsal import NotPlayedError, Stage, TogetherRehearsal

NO_RIGHT = "its agent has no packet sockets (it needs root, or CAP_NET_RAW)"


class PacketRehearsal(TogetherRehearsal):
    """A rehearsal by packet sockets, of all hosts at once."""

    def name_group(self, stage: Stage) -> tuple[str, ...]:
        """All flows are one group."""
        del stage
        return ()

    def list_ports(self, stage: Stage) -> tuple[int, ...]:
        """It needs no port."""
        del stage
        return ()

    async def try_alone(self, agent: AgentMethods, block: Block, fleet: Fleet) -> str | None:
        """See whether a host may open packet sockets."""
        del block
        told = await agent.request(SegmentHearOrder(next(fleet.order_ids), 0, []), SegmentHeard)
        return NO_RIGHT if told.failure is not None else None


class Seat(NamedTuple):
    """Where one address is looked at: who asks, on which device, and all neighbours that listen.

    ``sources``: the addresses that these neighbours have on its network, ``source``: the asker's.
    """

    asker: AgentMethods
    device: str
    listeners: tuple[tuple[AgentMethods, str], ...]
    sources: frozenset[str]
    source: str | None = None


async def find_seat(address: str, fleet: Fleet) -> Seat | NotPlayedError | AgentError:
    """Find the agents on the network of an address; of those that may, the first one asks."""
    try:
        found = await find_neighbours(address, fleet.agents())
    except AgentError as error:
        return error
    near = sorted(found, key=lambda one: one[0].index)
    on_link = [(agent, route.dev) for agent, route in near if route.dev is not None]
    own = {agent: route.source for agent, route in near}
    sources = frozenset(route.source for _, route in near if route.source is not None)
    if not on_link:
        return NotPlayedError(None, f"no other agent is on the network of {address}")
    able = [(agent, dev) for agent, dev in on_link if agent.hello and agent.hello.net_raw]
    if not able:
        names = ", ".join(agent.host.name for agent, _ in on_link)
        return NotPlayedError(
            "no-permission", f"only {names} could ask for {address}, and {NO_RIGHT}"
        )
    return Seat(*able[0], tuple(able), sources, own[able[0][0]])
