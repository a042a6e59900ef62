"""The route of this host to a destination, as the kernel's routing table answers (rtnetlink)."""

import array
import fcntl
import socket
import struct
from typing import Dict, Optional

from ..core.agent import AgentCore
from ..net.binding import family_of
from ..net.netlink import ask, attribute, attributes
from ..wire.failures import name_of
from ..wire.host_messages import (
    Routed,
    RouteOrder,
)

RTM_GETROUTE = 26
RTM_F_LOOKUP_TABLE = 0x1000

RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PREFSRC, RTA_METRICS, RTA_VIA = 1, 2, 4, 5, 7, 8, 18
RTAX_MTU = 2
SIOCGIFFLAGS, SIOCGIFMTU = 0x8913, 0x8921
IFF_RUNNING = 0x40

_RTMSG = struct.Struct("=BBBBBBBBI")


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
    index = struct.unpack("=I", found[RTA_OIF])[0] if RTA_OIF in found else 0
    dev = socket.if_indextoname(index) if index else None
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
