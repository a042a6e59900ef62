"""What is heard and asked on the network segments of a host: one order and one answer each."""

from typing import List, NamedTuple, Optional, Tuple

from .parts import AddressAnswer, DhcpServer, RouterHeard


class SegmentHearOrder(NamedTuple):
    """Listen on all devices for routers that share virtual addresses. 0 ms: only see whether that
    is possible. ``senders``: meanwhile join VRRP's group at these devices, and send three packets
    of the id 0, which no router has, from these addresses there; none: nothing is sent."""

    id: int
    window_ms: int
    senders: List[Tuple[str, str]]


class SegmentHeard(NamedTuple):
    """All routers that were heard, each once; ``failure``: why nobody could listen."""

    id: int
    routers: List[RouterHeard]
    failure: Optional[str]


class SegmentAskOrder(NamedTuple):
    """Ask everybody on the network of a device who has these addresses, one frame each and
    ``gap_ms`` between them, by ARP and ND. ``src``: from this address; None: from none, by ARP
    probes (RFC 5227) and solicitations from ``::``."""

    id: int
    dev: str
    dsts: List[str]
    gap_ms: int
    src: Optional[str]


class SegmentAnswers(NamedTuple):
    """All who answered; ``failure``: why nobody could be asked."""

    id: int
    answers: List[AddressAnswer]
    failure: Optional[str]


class DhcpOrder(NamedTuple):
    """Ask everybody on the network of a device for an address of this family (4 or 6), by one
    DHCP DISCOVER or SOLICIT; nothing is requested."""

    id: int
    dev: str
    family: int


class DhcpHeard(NamedTuple):
    """All servers that answered; ``failure``: why nobody could be asked."""

    id: int
    servers: List[DhcpServer]
    failure: Optional[str]
