"""Who this host is on its networks: its addresses, those of its devices, and the machine itself."""

import os
import socket
import struct
from typing import Dict, Iterator, List, Tuple

from ..net.netlink import attributes, dump

RTM_GETLINK, RTM_GETADDR = 18, 22
IFLA_ADDRESS, IFLA_IFNAME, IFA_ADDRESS, IFA_LOCAL = 1, 3, 1, 2
IFLA_XDP, IFLA_XDP_ATTACHED = 43, 2
# A node has an address for each service where IPVS carries them.
MOST = 500
BOOT_ID = "/proc/sys/kernel/random/boot_id"

_IFADDRMSG = struct.Struct("=BBBBI")
_IFINFOMSG = struct.Struct("=BxHiII")


def machine() -> str:
    """Name this boot of this machine and its network namespace; empty where nothing tells."""
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return "%s/%d" % (file.read().strip(), os.stat("/proc/self/ns/net").st_ino)
    except (OSError, ValueError):
        return ""


def addresses() -> List[str]:
    """Give the IP addresses of this host."""
    return _list_some(address for address, _device in dump_addresses(socket.AF_UNSPEC))


def links() -> List[str]:
    """Give the link-layer addresses of this host's devices."""
    return _list_some(_dump_links())


def dump_addresses(family: int) -> Iterator[Tuple[str, int]]:
    """Every address of this host with its device's index. Raises OSError."""
    for body in dump(RTM_GETADDR, _IFADDRMSG.pack(family, 0, 0, 0, 0)):
        entry, known = _IFADDRMSG.unpack_from(body), dict(attributes(body[_IFADDRMSG.size :]))
        raw = known.get(IFA_LOCAL, known.get(IFA_ADDRESS))
        if raw is not None and entry[0] in (socket.AF_INET, socket.AF_INET6):
            yield socket.inet_ntop(entry[0], raw), entry[4]


def format_link(raw: bytes) -> str:
    """Write a link-layer address as ``ip`` does."""
    return ":".join("%02x" % byte for byte in bytearray(raw))


def filtered_devices() -> List[int]:
    """Give the devices (their numbers) with an XDP program, which may drop what comes in."""
    try:
        return [device for device, known in _dump_devices() if _has_xdp(known.get(IFLA_XDP, b""))]
    except OSError:
        return []


def _has_xdp(nested: bytes) -> bool:
    return any(bytearray(dict(attributes(nested)).get(IFLA_XDP_ATTACHED, b"")))


def _dump_links() -> Iterator[str]:
    for _device, known in _dump_devices():
        raw = known.get(IFLA_ADDRESS)
        if raw and any(bytearray(raw)):
            yield format_link(raw)


def dump_links_of(kind: int) -> Iterator[Tuple[str, bytes]]:
    """Every device of this host that has this attribute, by name. Raises OSError."""
    for _device, known in _dump_devices():
        if kind in known:
            yield known[IFLA_IFNAME].rstrip(b"\0").decode("utf-8", "replace"), known[kind]


def _dump_devices() -> Iterator[Tuple[int, Dict[int, bytes]]]:
    for body in dump(RTM_GETLINK, _IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
        # The kernel marks kinds whose value is nested, or in network order.
        some = {kind & 0x3FFF: value for kind, value in attributes(body[_IFINFOMSG.size :])}
        yield _IFINFOMSG.unpack_from(body)[2], some


def _list_some(found: Iterator[str]) -> List[str]:
    """Give each once, as far as the kernel answers."""
    some: Dict[str, bool] = {}  # a dict keeps the kernel's order
    try:
        for one in found:
            if len(some) == MOST:
                break
            some[one] = True
    except OSError:
        pass
    return list(some)
