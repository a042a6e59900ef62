"""A VXLAN device of the kernel in a network namespace that only this process holds.

One RTM_NEWLINK with IFLA_NET_NS_FD goes to the kernel in the host's namespace: the device is made
in the other one and its UDP socket stays in the host's, which never shows the device. Both end with
the namespace, and that with the last descriptor and thread in it (docs/network-facts.md).
Nothing of the host's own devices changes.
"""

import array
import errno
import fcntl
import os
import socket
import struct
from typing import Dict, Iterator, NamedTuple, Optional, Tuple

from ..host.hello import read_rights
from ..host.identity import dump_links_of
from ..net.binding import bind_udp, family_of, wildcard
from ..net.netlink import NLM_F_CREATE, NLM_F_EXCL, attribute, attributes, change, open_netlink
from ..wire.tunnel_messages import TunnelOpenOrder

RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR = 16, 17, 20
IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 4, 18, 28
IFLA_INFO_KIND, IFLA_INFO_DATA = 1, 2
VXLAN_ID, VXLAN_GROUP, VXLAN_LOCAL, VXLAN_LEARNING, VXLAN_PORT = 1, 2, 4, 7, 15
VXLAN_GROUP6, VXLAN_LOCAL6 = 16, 17
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFA_F_NODAD = 0x02
IFF_UP = 1
SIOCETHTOOL = 0x8946
ETHTOOL_GDRVINFO, ETHTOOL_STXCSUM = 0x03, 0x17
CLONE_NEWNET = 0x40000000
# Makes the device, sends echo requests, makes a namespace.
RIGHTS = (("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13), ("CAP_SYS_ADMIN", 21))

DEVICE = "netprobe"
KIND = b"vxlan"
# Of networks for measurements (RFC 2544, RFC 5180): only the two ends of a tunnel have them.
ENDS: Dict[int, Tuple[str, str, int]] = {
    socket.AF_INET: ("198.18.0.1", "198.18.0.2", 30),
    socket.AF_INET6: ("2001:2::1", "2001:2::2", 126),
}

_IFINFOMSG = struct.Struct("=BxHiII")
_IFADDRMSG = struct.Struct("=BBBBI")


class TunnelError(Exception):
    """Why there is no tunnel: a word, and a sentence."""

    def __init__(self, word: str, words: str) -> None:
        Exception.__init__(self, words)
        self.word = word


def name_error(error: OSError, what: str) -> TunnelError:
    """Give the error of a tunnel: who has a right may still be forbidden to use it."""
    word = "no-right" if error.errno in (errno.EPERM, errno.EACCES) else "no-tunnel"
    return TunnelError(word, "%s: %s" % (what, error.strerror))


class Ends(NamedTuple):
    """The addresses inside of a tunnel: of this end and of the other one."""

    own: str
    other: str


def ends_of(order: TunnelOpenOrder) -> Ends:
    """Give the addresses inside; they are of the family of those outside."""
    first, second, _ = ENDS[family_of(order.remote)]
    return Ends(first, second) if order.first else Ends(second, first)


def make_device(order: TunnelOpenOrder) -> None:
    """Move this thread into a namespace of its own, with the tunnel's device in it, up.

    Raises TunnelError.
    """
    _check_rights()
    _check_port(order)
    outside = open_netlink()
    try:
        _leave_namespace()
        _create_device(outside, order)
    finally:
        outside.close()
    inside = open_netlink()
    try:
        index = socket.if_nametoindex(DEVICE)
        _give_address(inside, index, order)
        change(inside, RTM_NEWLINK, _IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, IFF_UP, IFF_UP))
    except OSError as error:
        raise name_error(error, "UDP port %d" % order.port) from error
    finally:
        inside.close()


def _check_rights() -> None:
    rights = read_rights()
    lacking = [name for name, number in RIGHTS if not rights >> number & 1]
    if lacking:
        raise TunnelError("no-right", "the agent lacks " + ", ".join(lacking))


def _check_port(order: TunnelOpenOrder) -> None:
    """Raise TunnelError where somebody holds the port: a kernel's tunnel would share it."""
    try:
        bind_udp(wildcard(order.remote), order.port).close()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise name_error(error, "UDP port %d" % order.port) from error
        holders = ", ".join(_list_tunnels(order.port))
        if holders:
            words = "the kernel's tunnel %s holds UDP port %d" % (holders, order.port)
            raise TunnelError("tunnel-there", words) from error
        raise TunnelError("port-held", "UDP port %d is held" % order.port) from error


def _list_tunnels(port: int) -> Iterator[str]:
    """Name the devices whose VXLAN has this port."""
    for name, info in dump_links_of(IFLA_LINKINFO):
        known = dict(attributes(info))
        if known.get(IFLA_INFO_KIND, b"").rstrip(b"\0") == KIND:
            data = dict(attributes(known.get(IFLA_INFO_DATA, b"")))
            if data.get(VXLAN_PORT) == struct.pack(">H", port):
                yield name


def _leave_namespace() -> None:
    """Move this thread, and no other, into a new network namespace. Raises TunnelError."""
    try:
        import ctypes  # some builds of Python have none
    except ImportError:
        raise TunnelError("no-tunnel", "this Python has no ctypes") from None
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        number = ctypes.get_errno()
        raise name_error(OSError(number, os.strerror(number)), "a network namespace of its own")


def _create_device(outside: socket.socket, order: TunnelOpenOrder) -> None:
    namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        info = attribute(IFLA_INFO_KIND, KIND) + attribute(IFLA_INFO_DATA, _make_vxlan(order))
        body = (
            _IFINFOMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0)
            + attribute(IFLA_IFNAME, DEVICE.encode() + b"\0")
            + attribute(IFLA_MTU, struct.pack("=I", order.mtu))
            + attribute(IFLA_LINKINFO, info)
            + attribute(IFLA_NET_NS_FD, struct.pack("=I", namespace))
        )
        change(outside, RTM_NEWLINK, body, NLM_F_CREATE | NLM_F_EXCL)
    except OSError as error:
        if error.errno == errno.EOPNOTSUPP:
            words = "the kernel has no VXLAN (module vxlan)"
            raise TunnelError("no-vxlan", words) from error
        raise name_error(error, "a VXLAN device") from error
    finally:
        os.close(namespace)


def _make_vxlan(order: TunnelOpenOrder) -> bytes:
    family = family_of(order.remote)
    remote, local = (
        (VXLAN_GROUP6, VXLAN_LOCAL6) if family == socket.AF_INET6 else (VXLAN_GROUP, VXLAN_LOCAL)
    )
    data = attribute(VXLAN_ID, struct.pack("=I", order.network))
    data += attribute(remote, socket.inet_pton(family, order.remote))
    if order.local is not None:
        data += attribute(local, socket.inet_pton(family, order.local))
    data += attribute(VXLAN_LEARNING, b"\0")
    return data + attribute(VXLAN_PORT, struct.pack(">H", order.port))


def _give_address(inside: socket.socket, index: int, order: TunnelOpenOrder) -> None:
    family = family_of(order.remote)
    own, bits = socket.inet_pton(family, ends_of(order).own), ENDS[family][2]
    body = _IFADDRMSG.pack(family, bits, IFA_F_NODAD, 0, index)
    body += attribute(IFA_LOCAL, own) + attribute(IFA_ADDRESS, own)
    change(inside, RTM_NEWADDR, body, NLM_F_CREATE | NLM_F_EXCL)


def remove_device() -> None:
    """Remove the tunnel's device from this thread's namespace: its port is free at once.

    The kernel would do so with the namespace, but later.
    """
    inside = open_netlink()
    try:
        index = socket.if_nametoindex(DEVICE)
        change(inside, RTM_DELLINK, _IFINFOMSG.pack(socket.AF_UNSPEC, 0, index, 0, 0))
    except OSError:
        pass
    finally:
        inside.close()


def set_checksums(control: socket.socket, by_cpu: bool) -> None:
    """Let the CPU make the checksums of what the tunnel's device sends, or not.

    ``control``: any socket of the tunnel's namespace. Raises OSError.
    """
    _ask_ethtool(control, DEVICE, struct.pack("=II", ETHTOOL_STXCSUM, 0 if by_cpu else 1))


def read_driver(device: str) -> Optional[str]:
    """Read which driver a device of this host has; None where the kernel does not say."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            data = _ask_ethtool(control, device, struct.pack("=I", ETHTOOL_GDRVINFO) + bytes(192))
    except OSError:
        return None
    return data[4:36].partition(b"\0")[0].decode("ascii", "replace") or None


def _ask_ethtool(control: socket.socket, device: str, request: bytes) -> bytes:
    data = array.array("B", request)
    address: Tuple[int, int] = data.buffer_info()
    fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP8x", device.encode(), address[0]))
    return data.tobytes()
