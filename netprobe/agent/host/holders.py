"""Who has an address on this host's own network: all who answer ARP, or ND, for it.

The kernel keeps one neighbour for an address, whoever answered first. Where two machines have it,
both answer a request that is sent to all.
"""

import errno
import os
import socket
import struct
from typing import Dict, List, Optional, Tuple

from ..core import loop as looping
from ..core.agent import AgentCore
from ..net.binding import family_of
from ..wire.failures import name_of
from ..wire.host_messages import Holders, HoldersOrder
from .identity import format_link

# A question may get lost; who answers at all does so within milliseconds.
ASKED = 3
ASK_AGAIN_S = 0.25
LISTEN_S = 1.0
READ_BYTES = 2048
MOST = 32

ETH_P_ARP, ARPHRD_ETHER = 0x0806, 1
ARP_REQUEST, ARP_REPLY = 1, 2
LINK_BYTES = 6
EVERYBODY = b"\xff" * LINK_BYTES
# Kinds of hardware and protocol, lengths of their addresses, what it is; then both ends' addresses.
_ARP = struct.Struct("!HHBBH6s4s6s4s")

NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT = 135, 136
SOURCE_LINK, TARGET_LINK = 1, 2
# Type, code, checksum (the kernel's), flags, the address; options follow.
_ND = struct.Struct("!BBHI16s")
# No router forwards these: they must come with the highest hop limit.
HOP_LIMIT = 255


def ask_holders(agent: AgentCore, order: HoldersOrder) -> None:
    """Answer with the link-layer addresses of all who have an address; it takes a second."""
    try:
        HoldersSearch(agent, order).start()
    except OSError as error:
        agent.send(Holders(order.id, [], name_of(error.errno)))


class HoldersSearch:
    """One question to everybody on a network. Raises OSError where the host may not ask it."""

    def __init__(self, agent: AgentCore, order: HoldersOrder) -> None:
        self._agent = agent
        self._id = order.id
        self._found: Dict[str, bool] = {}  # a dict keeps the order of the answers
        is_six = family_of(order.dst) == socket.AF_INET6
        self._way = _NdWay(order) if is_six else _ArpWay(order)

    def start(self) -> None:
        """Ask, and listen; the answer follows."""
        loop = self._agent.loop
        try:
            self._way.ask()
        except OSError:
            self._way.sock.close()
            raise
        loop.watch(self._way.sock.fileno(), looping.READ, self._read_answers)
        for number in range(1, ASKED):
            loop.call_later(number * ASK_AGAIN_S, self._ask_again)
        loop.call_later(LISTEN_S, self._finish)

    def _ask_again(self) -> None:
        try:
            self._way.ask()
        except OSError:
            pass  # it was asked before

    def _read_answers(self, _events: int) -> None:
        while True:
            try:
                data = self._way.sock.recv(READ_BYTES)
            except OSError:
                return
            link = self._way.read(data)
            if link is not None and len(self._found) < MOST:
                self._found[format_link(link)] = True

    def _finish(self) -> None:
        self._agent.loop.unwatch(self._way.sock.fileno())
        self._way.sock.close()
        self._agent.send(Holders(self._id, list(self._found), None))


class _ArpWay:
    """Asks by ARP."""

    def __init__(self, order: HoldersOrder) -> None:
        self._wanted = socket.inet_aton(order.dst)
        self._source = socket.inet_aton(order.src)
        self._device = order.dev
        self._link = _read_link(order.dev)
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ARP))
        self.sock.setblocking(False)
        self.sock.bind((order.dev, ETH_P_ARP))

    def ask(self) -> None:
        """Ask everybody."""
        request = _ARP.pack(
            ARPHRD_ETHER, 0x0800, LINK_BYTES, 4, ARP_REQUEST,
            self._link, self._source, bytes(LINK_BYTES), self._wanted,
        )  # fmt: skip
        to = (self._device, ETH_P_ARP, 0, ARPHRD_ETHER, EVERYBODY)
        self.sock.sendto(request, to)

    def read(self, data: bytes) -> Optional[bytes]:
        """Give the link-layer address of an answer; None of another packet."""
        if len(data) < _ARP.size:
            return None
        _, _, _, _, kind, link, address, _, _ = _ARP.unpack_from(data)
        return bytes(link) if (kind, address) == (ARP_REPLY, self._wanted) else None


class _NdWay:
    """Asks by ND (RFC 4861); the kernel gives raw sockets every advertisement that comes in."""

    def __init__(self, order: HoldersOrder) -> None:
        self._wanted = socket.inet_pton(socket.AF_INET6, order.dst)
        index = socket.if_nametoindex(order.dev)
        # All who have an address listen at a group that its last three bytes name.
        group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13] + self._wanted[13:]
        self._to = (socket.inet_ntop(socket.AF_INET6, group), 0, 0, index)
        self._link = _read_link(order.dev)
        self.sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        self.sock.setblocking(False)
        six = socket.IPPROTO_IPV6
        self.sock.setsockopt(six, socket.IPV6_MULTICAST_HOPS, HOP_LIMIT)
        self.sock.setsockopt(six, socket.IPV6_MULTICAST_IF, index)
        self.sock.bind((order.src, 0, 0, index))

    def ask(self) -> None:
        """Ask all who may have the address."""
        own = struct.pack("!BB", SOURCE_LINK, 1) + self._link
        request = _ND.pack(NEIGHBOUR_SOLICITATION, 0, 0, 0, self._wanted) + own
        self.sock.sendto(request, self._to)

    def read(self, data: bytes) -> Optional[bytes]:
        """Give the link-layer address of an answer; None of another packet."""
        if len(data) < _ND.size or data[0] != NEIGHBOUR_ADVERTISEMENT:
            return None
        if _ND.unpack_from(data)[4] != self._wanted:
            return None
        return dict(_read_options(data[_ND.size :])).get(TARGET_LINK)


def _read_options(data: bytes) -> List[Tuple[int, bytes]]:
    """Read the options of ND: each says its length in units of 8 bytes."""
    found = []
    while len(data) >= 8 and data[1]:
        found.append((data[0], data[2 : 2 + LINK_BYTES]))
        data = data[8 * data[1] :]
    return found


def _read_link(device: str) -> bytes:
    """Read the link-layer address of a device. Raises OSError where it has no usual one."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    try:
        sock.bind((device, 0))
        link = bytes(sock.getsockname()[4])
    finally:
        sock.close()
    if len(link) != LINK_BYTES:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    return link
