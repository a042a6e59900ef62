"""What a host is asked of itself, and its answers: one order and one answer for each fact."""

from typing import List, NamedTuple, Optional, Tuple

from .parts import HeldSocket, NextHop, Ranges, SocketOwner


class ResolveOrder(NamedTuple):
    """Resolve a name as programs on this host do."""

    id: int
    name: str


class Resolved(NamedTuple):
    """The addresses of a name in the resolver's order, or its own words."""

    id: int
    addresses: List[str]
    failure: Optional[str]
    words: str


class RouteOrder(NamedTuple):
    """Look up the route to an address in this host's kernel."""

    id: int
    dst: str
    src: Optional[str]


class Routed(NamedTuple):
    """The route: the address that it sends from, the device, the MTU of the route and that of the
    device, and the gateway (None: on the same network)."""

    id: int
    source: Optional[str]
    dev: Optional[str]
    mtu: Optional[int]
    dev_mtu: Optional[int]
    gateway: Optional[str]
    failure: Optional[str]


class HopsOrder(NamedTuple):
    """Look up the next hops to many addresses, each from an address of this host or from any."""

    id: int
    targets: List[Tuple[str, Optional[str]]]


class HopsTold(NamedTuple):
    """The next hops that there are, and which of them each target has, by its index."""

    id: int
    hops: List[NextHop]
    picks: List[int]


class ReturnPathOrder(NamedTuple):
    """Can this host answer from ``src`` to ``dst``, who asked?"""

    id: int
    dst: str
    src: str


class ReturnPath(NamedTuple):
    """The route back. ``neighbour``: ``failed`` or ``incomplete`` where nobody answers for the next
    hop, ``known`` where somebody does, None: no entry. ``holder``: the device that has the
    answering address. ``strict``: devices whose ``rp_filter`` is strict."""

    id: int
    dev: Optional[str]
    next_hop: Optional[str]
    neighbour: Optional[str]
    holder: Optional[str]
    strict: List[str]
    failure: Optional[str]


class EgressOrder(NamedTuple):
    """What becomes of a packet at this host's end? One datagram goes to this port, unless it is
    known already that nobody answers for the next hop."""

    id: int
    dst: str
    src: Optional[str]
    port: int


class Egress(NamedTuple):
    """How a datagram's send ended (``failure``), and the next hop's neighbour entry as above;
    ``link``: the link-layer address in it. ``carrier``: whether the device's cable is in."""

    id: int
    dev: Optional[str]
    next_hop: Optional[str]
    neighbour: Optional[str]
    link: Optional[str]
    carrier: Optional[bool]
    failure: Optional[str]


class NameserversOrder(NamedTuple):
    """Read the name servers of this host's resolv.conf."""

    id: int


class Nameservers(NamedTuple):
    """The addresses of resolv.conf, in its order."""

    id: int
    servers: List[str]


class SocketsOrder(NamedTuple):
    """List every socket that listens on this host."""

    id: int


class Sockets(NamedTuple):
    """The sockets, and the processes that hold them. ``sees_all``: no process of the machine is
    hidden, so that a socket without one is the kernel's. ``client_ports``: the first and last port
    that the kernel gives to who asks for none."""

    id: int
    sockets: List[HeldSocket]
    owners: List[SocketOwner]
    sees_all: bool
    client_ports: Tuple[int, int]


class OwnResetsOrder(NamedTuple):
    """Ports of a neighbour that reset connections: which of these resets does this host make?"""

    id: int
    dst: str
    src: Optional[str]
    ports: Ranges


class OwnResets(NamedTuple):
    """The ports whose resets this host makes itself: its own firewall lets nothing out to them."""

    id: int
    ports: Ranges


class PacketCountsOrder(NamedTuple):
    """How many packets of the family of ``dst`` has this host stopped so far?"""

    id: int
    dst: str


class PacketCounts(NamedTuple):
    """What the kernel has counted so far: packets for this host that its firewall or its kernel
    stopped as they came in (``stopped``), and packets that it stopped on their way out (``held``);
    segments that TCP got, of both families (``segments``). None: the kernel does not say."""

    id: int
    stopped: Optional[int]
    held: Optional[int]
    segments: Optional[int]
