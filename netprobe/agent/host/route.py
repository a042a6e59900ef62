"""The route of this host to a destination, as the kernel's routing table answers (rtnetlink).

The way back to a prober: its next hop's neighbour entry, and the reverse-path filter before it.

An answer whose next hop does not answer ARP or neighbour requests never leaves, and no errno says
so. Where ``rp_filter`` is strict, a request that comes in by another device than the route back
leaves by is dropped before any socket sees it (RFC 3704; IPv4 only).

What becomes of a packet here: its next hop, and whether the kernel has room for it.

The kernel gives up a next hop that does not answer ARP or neighbour requests after three seconds,
and then tells all packets that wait, so that each hears it after another time: the neighbour table
says it plainly. Where that table is full or a queue drops, TCP is not told (its SYNs just never
leave, as with a firewall that drops them), a datagram is: ENOBUFS, where the socket listens for
errors.
"""

import array
import fcntl
import socket
import struct
from typing import Dict, List, NamedTuple, Optional

from ..core.agent import AgentCore
from ..net.binding import family_of
from ..net.netlink import ask, attribute, attributes, dump
from ..net.sockets import open_probe, target_of
from ..wire.failures import name_of
from ..wire.host_messages import (
    Egress,
    EgressOrder,
    HopsOrder,
    HopsTold,
    ReturnPath,
    ReturnPathOrder,
    Routed,
    RouteOrder,
)
from ..wire.parts import NextHop
from .hello import read_text
from .identity import dump_addresses, format_link

RTM_GETROUTE = 26
RTM_F_LOOKUP_TABLE = 0x1000

RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PREFSRC, RTA_METRICS, RTA_VIA = 1, 2, 4, 5, 7, 8, 18
RTAX_MTU = 2
SIOCGIFFLAGS, SIOCGIFMTU = 0x8913, 0x8921
IFF_RUNNING = 0x40

_RTMSG = struct.Struct("=BBBBBBBBI")

RTM_GETNEIGH = 30
NDA_DST, NDA_LLADDR = 1, 2
INCOMPLETE, FAILED = 0x01, 0x20
STATES = {INCOMPLETE: "incomplete", FAILED: "failed"}
STRICT = 1
RP_FILTER = "/proc/sys/net/ipv4/conf/%s/rp_filter"

_NDMSG = struct.Struct("=BBHiHBB")


def tell_route(agent: AgentCore, order: RouteOrder) -> None:
    """Answer with the route, or with the failure that ``connect`` would have."""
    try:
        answer = look_up_route(order)
    except OSError as error:
        answer = Routed(order.id, None, None, None, None, None, name_of(error.errno))
    agent.send(answer)


def look_up_route(order: RouteOrder) -> Routed:
    """Source address, device, MTUs and gateway. Raises OSError as ``connect`` would: ENETUNREACH
    for no route, EHOSTUNREACH, EACCES and EINVAL for unreachable, prohibit and blackhole."""
    family = family_of(order.dst)
    found = _ask_kernel(family, order.dst, order.src)
    dev = _name_device(found)
    dev_mtu = _read_device_mtu(dev) if dev else None
    return Routed(
        order.id,
        order.src or _format_address(family, found.get(RTA_PREFSRC)),
        dev,
        _read_route_mtu(found.get(RTA_METRICS)) or dev_mtu,
        dev_mtu,
        _read_gateway(family, found),
        None,
    )


def tell_hops(agent: AgentCore, order: HopsOrder) -> None:
    """Answer with the next hop to each address; where there is no route, with none."""
    places: Dict[NextHop, int] = {}
    picks = [places.setdefault(_find_next_hop(*one), len(places)) for one in order.targets]
    agent.send(HopsTold(order.id, list(places), picks))


def _find_next_hop(destination: str, source: Optional[str]) -> NextHop:
    family = family_of(destination)
    try:
        found = _ask_kernel(family, destination, source)
        return NextHop(_read_gateway(family, found), _name_device(found))
    except OSError:
        return NextHop(None, None)


def _name_device(known: Dict[int, bytes]) -> Optional[str]:
    index = struct.unpack("=I", known[RTA_OIF])[0] if RTA_OIF in known else 0
    return socket.if_indextoname(index) if index else None


def _ask_kernel(family: int, destination: str, source: Optional[str]) -> Dict[int, bytes]:
    bits = 128 if family == socket.AF_INET6 else 32
    body = attribute(RTA_DST, socket.inet_pton(family, destination))
    if source:
        body += attribute(RTA_SRC, socket.inet_pton(family, source))
    body = (
        _RTMSG.pack(family, bits, bits if source else 0, 0, 0, 0, 0, 0, RTM_F_LOOKUP_TABLE) + body
    )
    return dict(attributes(ask(RTM_GETROUTE, body)[_RTMSG.size :]))


def _format_address(family: int, raw: Optional[bytes]) -> Optional[str]:
    return socket.inet_ntop(family, raw) if raw else None


def _read_gateway(family: int, known: Dict[int, bytes]) -> Optional[str]:
    via = known.get(RTA_VIA)
    if via is not None:
        # An IPv4 route through an IPv6 router (RFC 5549): family, then the address.
        return _format_address(struct.unpack_from("=H", via)[0], via[2:])
    return _format_address(family, known.get(RTA_GATEWAY))


def _read_route_mtu(metrics: Optional[bytes]) -> Optional[int]:
    for kind, value in attributes(metrics or b""):
        if kind == RTAX_MTU:
            return int(struct.unpack("=I", value)[0])
    return None


def has_carrier(dev: str) -> Optional[bool]:
    """Tell whether the device's cable is in, as far as its driver knows; None: it is gone."""
    flags = _ask_device(dev, SIOCGIFFLAGS, "H")
    return None if flags is None else bool(flags & IFF_RUNNING)


def _read_device_mtu(dev: str) -> Optional[int]:
    return _ask_device(dev, SIOCGIFMTU, "I")


def _ask_device(dev: str, question: int, form: str) -> Optional[int]:
    request = array.array("B", struct.pack("16sI12x", dev.encode("ascii"), 0))
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        fcntl.ioctl(sock.fileno(), question, request, True)
    except OSError:
        return None
    finally:
        sock.close()
    return int(struct.unpack_from("=" + form, request.tobytes(), 16)[0])


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


def tell_egress(agent: AgentCore, order: EgressOrder) -> None:
    """Answer with the next hop's neighbour entry, and how a datagram's send ended."""
    dev = next_hop = failure = None
    near = Neighbour(None, None)
    try:
        found = look_up_route(RouteOrder(order.id, order.dst, order.src))
        dev, next_hop = found.dev, found.gateway or order.dst
        near = neighbour(next_hop, dev)
        if near.state != "failed":  # a packet would make it unknown again for three seconds
            _send_datagram(order.dst, order.src, order.port)
    except OSError as error:
        failure = name_of(error.errno)
    if dev is not None and next_hop is not None:
        near = neighbour(next_hop, dev)
    carrier = has_carrier(dev) if dev is not None else None
    agent.send(Egress(order.id, dev, next_hop, near.state, near.link, carrier, failure))


def _send_datagram(destination: str, source: Optional[str], port: int) -> None:
    target = target_of(destination, source)
    sock = open_probe(target, socket.SOCK_DGRAM)
    try:
        sock.sendto(b"", target.sockaddr(port))
    finally:
        sock.close()
