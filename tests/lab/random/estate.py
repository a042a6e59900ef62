"""What a random estate is: routers, hosts, requirements and faults; nothing is built here.

Everything that stands in an estate is drawn from its seed alone, so a seed is a whole test case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import Any

Family = int
FAMILIES: tuple[Family, ...] = (4, 6)
PROTOCOLS = ("tcp", "udp", "icmp")


@dataclass(frozen=True)
class Host:
    """A host on a segment. ``agent`` is root, nobody (no capability) or none (no agent)."""

    name: str
    segment: int
    number: int
    agent: str

    def address(self, family: Family) -> str:
        """Its address of a family."""
        net = f"10.77.{self.segment + 1}." if family == 4 else f"fd77:{self.segment + 1}::"
        return f"{net}{self.number}"


@dataclass(frozen=True)
class Requirement:
    """One requirement of the matrix; ``ports`` is empty for ICMP echo."""

    name: str
    source: str
    destination: str
    protocol: str
    ports: tuple[int, ...] = ()
    expect: str = "allowed"


@dataclass(frozen=True, order=True)
class Flow:
    """One source, one address of one destination, one protocol and port (0 for ICMP)."""

    source: str
    destination: str
    family: Family
    protocol: str
    port: int

    def __str__(self) -> str:
        port = f"/{self.port}" if self.port else ""
        return f"{self.source}->{self.destination} v{self.family} {self.protocol}{port}"


@dataclass(frozen=True)
class Firewall:
    """A rule at a hook of a machine.

    ``flow`` gives the addresses; ``scope`` is what of it counts: port, protocol or address.
    ``answers``: the rule meets the packets of the way back. ``data``: TCP segments with data only.
    ``action`` is drop, tcp-reset, or nft's word for an ICMP reject.
    """

    machine: str
    hook: str
    flow: Flow
    scope: str
    answers: bool
    action: str
    data: bool = False

    def meets(self, flow: Flow) -> bool:
        """Whether it meets the requests of a flow."""
        parts = {"address": 3, "protocol": 4, "port": 5}[self.scope]
        return not self.answers and astuple(self.flow)[:parts] == astuple(flow)[:parts]

    def __str__(self) -> str:
        way = "answers of " if self.answers else ""
        data = " (segments with data)" if self.data else ""
        return f"{self.machine} {self.hook}: {self.action} {way}{self.flow} by {self.scope}{data}"


@dataclass(frozen=True)
class Translation:
    """A router translates: ``to`` another host or port (DNAT), or the source address (SNAT).

    ``to`` None is SNAT; ``port`` 0 keeps the port. ``to`` the router itself is a redirect.
    ``served``: a service of the target's own answers there.
    """

    machine: str
    flow: Flow
    scope: str
    to: str | None
    port: int = 0
    served: bool = False

    def __str__(self) -> str:
        if self.to is None:
            return f"{self.machine} postrouting: masquerade {self.flow} by {self.scope}"
        target = f"{self.to}:{self.port}" if self.port else self.to
        served = ", where a service answers" if self.served else ""
        return f"{self.machine} prerouting: dnat {self.flow} by {self.scope} to {target}{served}"


@dataclass(frozen=True)
class Route:
    """A wrong route of a machine: to the destination of a flow, or back to its source.

    ``action`` is none (no route), unreachable, prohibit, blackhole, or ``via NAME``; ``via dead``
    is a gateway that nobody is.
    """

    machine: str
    flow: Flow
    answers: bool
    action: str

    def __str__(self) -> str:
        end = self.flow.source if self.answers else self.flow.destination
        return f"{self.machine} route to {end} v{self.flow.family}: {self.action}"


@dataclass(frozen=True)
class Narrow:
    """The cable between two routers carries less; ``quiet`` routers do not tell."""

    link: int
    mtu: int
    quiet: bool

    def __str__(self) -> str:
        return f"link {self.link}: mtu {self.mtu}{' without ICMP errors' if self.quiet else ''}"


@dataclass(frozen=True)
class Loss:
    """A router loses a share of all packets, at random."""

    machine: str
    percent: int

    def __str__(self) -> str:
        return f"{self.machine}: loses {self.percent} %"


@dataclass(frozen=True)
class Held:
    """A service holds the port of a flow; ``on`` is address, wildcard or loopback."""

    flow: Flow
    on: str

    def __str__(self) -> str:
        flow = self.flow
        return f"{flow.destination}: a service holds {flow.protocol}/{flow.port} on {self.on}"


@dataclass(frozen=True)
class Duplicate:
    """A machine has a destination's address on its loopback too.

    ``machine`` is the flow's source, or another host that a router takes for the destination.
    """

    machine: str
    flow: Flow
    router: str = ""

    def __str__(self) -> str:
        routed = f", and {self.router} routes to it" if self.router else ""
        return f"{self.machine}: has {self.flow.destination}'s v{self.flow.family} address{routed}"


@dataclass(frozen=True)
class Dead:
    """A host whose only cable is dead."""

    machine: str

    def __str__(self) -> str:
        return f"{self.machine}: dead"


@dataclass(frozen=True)
class Cut:
    """The cable of a host, whose other end is down, or between two routers, whose first end is."""

    machine: str = ""
    link: int = -1

    def __str__(self) -> str:
        return f"cut cable of {self.machine or f'link {self.link}'}"


@dataclass(frozen=True)
class Behind:
    """A rule that meets what a translation has made of its flow, or the answers to that.

    ``action`` is drop, tcp-reset, nft's word for an ICMP reject, or ``ttl NUMBER``, which the
    answers get.
    """

    machine: str
    hook: str
    translation: Translation
    action: str

    def __str__(self) -> str:
        return f"{self.machine} {self.hook}: {self.action} behind: {self.translation}"


@dataclass(frozen=True)
class FirstSyn:
    """A router drops the first SYN of every connection to the port of a flow."""

    machine: str
    flow: Flow

    def __str__(self) -> str:
        return f"{self.machine} forward: drop the first SYN of each connection of {self.flow}"


@dataclass(frozen=True)
class Relay:
    """A router takes a flow for itself, and a proxy there forwards it to where it was to go."""

    machine: str
    flow: Flow

    def __str__(self) -> str:
        return f"{self.machine}: a proxy takes {self.flow} and forwards it"


@dataclass(frozen=True)
class FewSyns:
    """A source whose kernel sends a SYN twice only (``tcp_syn_retries``)."""

    machine: str

    def __str__(self) -> str:
        return f"{self.machine}: tcp_syn_retries=1"


@dataclass(frozen=True)
class Custom:
    """What only a hand-written case does: ``do`` gets the estate as it stands."""

    words: str
    do: Callable[[Any], None]

    def __str__(self) -> str:
        return self.words


Fault = (
    Firewall | Translation | Route | Narrow | Loss | Held | Duplicate | Dead | Cut | Custom
    | Behind | FirstSyn | Relay | FewSyns
)  # fmt: skip


@dataclass(frozen=True)
class Estate:
    """Routers are numbered from 0; a segment is the number of the router that it hangs on."""

    seed: int
    links: tuple[tuple[int, int], ...]
    segments: tuple[int, ...]
    hosts: tuple[Host, ...]
    requirements: tuple[Requirement, ...]
    faults: tuple[Fault, ...]

    def __getitem__(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    @property
    def routers(self) -> tuple[int, ...]:
        """All routers."""
        return tuple(range(len(self.links) + 1))

    def flows(self) -> Iterator[Flow]:
        """Every flow of every requirement, once."""
        seen: set[Flow] = set()
        for one in self.requirements:
            for family in FAMILIES:
                for port in one.ports or (0,):
                    flow = Flow(one.source, one.destination, family, one.protocol, port)
                    if flow not in seen:
                        seen.add(flow)
                        yield flow

    def way(self, source: str, destination: str) -> list[int]:
        """The routers between two hosts, in order; none on one segment."""
        first, last = self[source].segment, self[destination].segment
        if first == last:
            return []
        return self.path(self.segments[first], self.segments[last])

    def path(self, first: int, last: int) -> list[int]:
        """The routers from one to another, both ends included; the estate is a tree."""
        before = {first: first}
        queue = deque([first])
        while queue:
            here = queue.popleft()
            for there in self.neighbours(here):
                if there not in before:
                    before[there] = here
                    queue.append(there)
        way = [last]
        while way[-1] != first:
            way.append(before[way[-1]])
        return way[::-1]

    def neighbours(self, router: int) -> list[int]:
        """The routers on the other ends of its cables."""
        return [b if a == router else a for a, b in self.links if router in (a, b)]

    def words(self) -> list[str]:
        """The estate for people, a line each."""
        shape = ", ".join(f"r{a}-r{b}" for a, b in self.links) or "r0"
        lines = [f"seed {self.seed}: routers {shape}"]
        for host in self.hosts:
            gateway = self.segments[host.segment]
            lines.append(
                f"  host {host.name} on segment {host.segment} (r{gateway}), agent {host.agent}"
            )
        for one in self.requirements:
            ports = ",".join(map(str, one.ports))
            lines.append(f"  requires {one.source}->{one.destination} {one.protocol} {ports}")
        return [*lines, *(f"  fault {fault}" for fault in self.faults)]


def router_name(number: int) -> str:
    """The namespace of a router."""
    return f"r{number}"
