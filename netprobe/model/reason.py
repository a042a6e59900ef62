"""What one reason means, and what findings, requests and reports read of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, get_args

from netprobe.model.result import Place

# What became of the packets.
End = Literal["dropped", "rejected", "reset"]
# What failures of one cause share: the rule of a firewall · the address that nobody, or the source
# itself, has · the address for which another machine answers · the next hop · the router that says
# so · the narrow link · the name that does not resolve · the name servers of a host · the process
# that holds the port · the driver of network cards · what was seen, in the same words · nothing but
# the reason: each has it by itself.
Share = Literal[
    "rule",
    "address",
    "machine",
    "next-hop",
    "router",
    "link",
    "name",
    "resolver",
    "holder",
    "driver",
    "sentence",
    "reason",
]
Advice = Mapping[tuple[Place, ...], str]
# Who must act: who keeps firewalls and routers between hosts; who keeps the hosts; who runs
# netprobe. Unclear: several of them may have to.
Team = Literal["network", "hosts", "ourselves", "unclear"]
OWNERS: Final[tuple[Team, ...]] = get_args(Team)


class Reason(NamedTuple):
    """What one reason means.

    ``kind`` and ``title``: of a finding, where the reason says it all; empty where they are made of
    ends, hosts and places. ``end``: what became of the packets. ``by``: who did that to them, where
    the place alone would say something else. ``router_does``: the verb of one router on the way
    that answers with this reason, and of several, and ``router_is`` its part in it. ``source_is``:
    what of the source is at fault where it is that, ``destination_is`` of the destination, and
    ``host_is`` of the host itself.
    ``rule_causes``: a firewall rule may be the cause of a filtered flow; ``rule_mends``: a firewall
    rule may let it through. ``shares``: what findings fold by. ``always_found``: a finding although
    it is neither blocked nor exposed. ``of_port``: it is the port's own, whoever asks. ``advice``:
    what to do, by the places that are left; other places have advice of their own. ``in_doubt``:
    what to do where it leaves a flow inconclusive. ``owner``: who must act, where the places say
    something else. ``waits``: nobody looked, because what stops the same port of its row comes
    first.
    """

    kind: str = ""
    title: str = ""
    end: End = "rejected"
    by: str = ""
    router_does: tuple[str, str] | None = None
    router_is: str = "{router} refused it"
    source_is: str = "its own firewall or routing table"
    destination_is: str = ""
    host_is: str = "down"
    rule_causes: bool = True
    rule_mends: bool = True
    shares: Share = "rule"
    always_found: bool = False
    of_port: bool = False
    advice: Advice = MappingProxyType({})
    in_doubt: str = ""
    owner: Team | None = None
    waits: bool = False
