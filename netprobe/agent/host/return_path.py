"""The way back to a prober: its next hop's neighbour entry, and the reverse-path filter before it.

An answer whose next hop does not answer ARP or neighbour requests never leaves, and no errno says
so. Where ``rp_filter`` is strict, a request that comes in by another device than the route back
leaves by is dropped before any socket sees it (RFC 3704; IPv4 only).
"""

import socket
import struct
from typing import List, NamedTuple, Optional

from ..core.agent import AgentCore
from ..net.binding import family_of
from ..net.netlink import attributes, dump
from ..wire.failures import name_of
from ..wire.host_messages import (
    ReturnPath,
    ReturnPathOrder,
    RouteOrder,
)
from .hello import read_text
from .identity import dump_addresses, format_link
from .route import look_up_route

RTM_GETNEIGH = 30
NDA_DST, NDA_LLADDR = 1, 2
INCOMPLETE, FAILED = 0x01, 0x20
STATES = {INCOMPLETE: "incomplete", FAILED: "failed"}
STRICT = 1
RP_FILTER = "/proc/sys/net/ipv4/conf/%s/rp_filter"

_NDMSG = struct.Struct("=BBHiHBB")


class Neighbour(NamedTuple):
    """A neighbour's entry. ``state``: ``failed`` or ``incomplete`` where nobody has answered for
    the address, ``known`` where somebody has, None without an entry; ``link``: who has."""

    state: Optional[str]
    link: Optional[str]


def tell_return_path(agent: AgentCore, order: ReturnPathOrder) -> None:
    """Answer with the path from ``src`` of this host back to ``dst``, who asked."""
    agent.send(look_up_return_path(order))


def look_up_return_path(order: ReturnPathOrder) -> ReturnPath:
    """Look up the return path, or the failure that a packet on it would meet."""
    try:
        found = look_up_route(RouteOrder(order.id, order.dst, order.src))
        next_hop = found.gateway or order.dst
        strict = strict_devices() if family_of(order.src) == socket.AF_INET else []
        near = neighbour(next_hop, found.dev).state
        return ReturnPath(order.id, found.dev, next_hop, near, holder(order.src), strict, None)
    except OSError as error:
        return ReturnPath(order.id, None, None, None, None, [], name_of(error.errno))


def neighbour(address: str, dev: Optional[str]) -> Neighbour:
    """Look up the neighbour's entry. Raises OSError."""
    family = family_of(address)
    index = socket.if_nametoindex(dev) if dev else 0
    wanted = socket.inet_pton(family, address)
    for body in dump(RTM_GETNEIGH, _NDMSG.pack(family, 0, 0, 0, 0, 0, 0)):
        entry, known = _NDMSG.unpack_from(body), dict(attributes(body[_NDMSG.size :]))
        if entry[3] == index and known.get(NDA_DST) == wanted:
            state, link = STATES.get(entry[4], "known"), known.get(NDA_LLADDR)
            return Neighbour(state, format_link(link) if link and state == "known" else None)
    return Neighbour(None, None)


def holder(address: str) -> Optional[str]:
    """Give the device that has the address."""
    family = family_of(address)
    wanted = socket.inet_ntop(family, socket.inet_pton(family, address))
    for one, device in dump_addresses(family):
        if one == wanted:
            return socket.if_indextoname(device)
    return None


def strict_devices() -> List[str]:
    """Devices whose reverse-path filter is strict: the larger of ``all`` and its own counts."""
    everywhere = _read_number(RP_FILTER % "all")
    names = [name for _index, name in socket.if_nameindex() if name != "lo"]
    return [name for name in names if max(everywhere, _read_number(RP_FILTER % name)) == STRICT]


def _read_number(path: str) -> int:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else 0
