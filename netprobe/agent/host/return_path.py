"""The way back to a prober: its next hop's neighbour entry, and the reverse-path filter before it.

An answer whose next hop does not answer ARP or neighbour requests never leaves, and no errno says
so. Where ``rp_filter`` is strict, a request that comes in by another device than the route back
leaves by is dropped before any socket sees it (RFC 3704; IPv4 only).
"""

import socket
import struct
from typing import Any, Dict, List, Optional

from ..net.binding import family_of
from ..net.netlink import attributes, dump
from ..wire.failures import name_of
from .hello import read_text
from .route import route

RTM_GETADDR, RTM_GETNEIGH = 22, 30
IFA_ADDRESS, IFA_LOCAL, NDA_DST = 1, 2, 1
INCOMPLETE, FAILED = 0x01, 0x20
STATES = {INCOMPLETE: "incomplete", FAILED: "failed"}
STRICT = 1
RP_FILTER = "/proc/sys/net/ipv4/conf/%s/rp_filter"

_IFADDRMSG = struct.Struct("=BBBBI")
_NDMSG = struct.Struct("=BBHiHBB")


def way_back(message: Dict[str, Any]) -> Dict[str, Any]:
    """The ``way-back`` frame for a ``back`` order: ``dst`` asked, ``src`` answers."""
    answer: Dict[str, Any] = {
        "t": "way-back",
        "id": message["id"],
        "dev": None,
        "next_hop": None,
        "neighbour": None,
        "holder": None,
        "strict": [],
        "failure": None,
    }
    try:
        answer.update(_look(message["dst"], message["src"]))
    except OSError as error:
        answer["failure"] = name_of(error.errno)
    return answer


def _look(asker: str, address: str) -> Dict[str, Any]:
    found = route(asker, address)
    dev, next_hop = found["dev"], found["gateway"] or asker
    return {
        "dev": dev,
        "next_hop": next_hop,
        "neighbour": neighbour(next_hop, dev),
        "holder": holder(address),
        "strict": strict_devices() if family_of(address) == socket.AF_INET else [],
    }


def neighbour(address: str, dev: Optional[str]) -> Optional[str]:
    """``failed`` or ``incomplete`` where nobody has answered for the address, ``known`` where
    somebody has; None: there is no entry."""
    family = family_of(address)
    index = socket.if_nametoindex(dev) if dev else 0
    wanted = socket.inet_pton(family, address)
    for body in dump(RTM_GETNEIGH, _NDMSG.pack(family, 0, 0, 0, 0, 0, 0)):
        entry = _NDMSG.unpack_from(body)
        if entry[3] == index and dict(attributes(body[_NDMSG.size :])).get(NDA_DST) == wanted:
            return STATES.get(entry[4], "known")
    return None


def holder(address: str) -> Optional[str]:
    """The device that has the address."""
    family = family_of(address)
    wanted = socket.inet_pton(family, address)
    for body in dump(RTM_GETADDR, _IFADDRMSG.pack(family, 0, 0, 0, 0)):
        known = dict(attributes(body[_IFADDRMSG.size :]))
        if known.get(IFA_LOCAL, known.get(IFA_ADDRESS)) == wanted:
            return socket.if_indextoname(_IFADDRMSG.unpack_from(body)[4])
    return None


def strict_devices() -> List[str]:
    """Devices whose reverse-path filter is strict: the larger of ``all`` and its own counts."""
    everywhere = _number(RP_FILTER % "all")
    names = [name for _index, name in socket.if_nameindex() if name != "lo"]
    return [name for name in names if max(everywhere, _number(RP_FILTER % name)) == STRICT]


def _number(path: str) -> int:
    text = read_text(path).strip()
    return int(text) if text.isdigit() else 0
