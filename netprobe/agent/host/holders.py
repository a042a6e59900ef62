"""Who has an address on this host's own network: all who answer ARP, or ND, for it.

The kernel keeps one neighbour for an address, whoever answered first. Where two machines have it,
both answer a request that is sent to all.
"""

import socket
from typing import Dict, Optional

from ..core import loop as looping
from ..core.agent import AgentCore
from ..net.binding import family_of
from ..net.sockets import read_link_address
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
LINK_BYTES = 6
EVERYBODY = b"\xff" * LINK_BYTES
# Ethernet and IPv4, the lengths of their addresses, and what it is; then the sender's link and
# address, and the target's.
ARP_REQUEST, ARP_REPLY = b"\0\1\x08\0\6\4\0\1", b"\0\1\x08\0\6\4\0\2"
# Type, code, checksum (the kernel's) and flags; then the address, and a link as an option.
SOLICITATION, ADVERTISEMENT = b"\x87" + bytes(7), b"\x88"
SOURCE_LINK, TARGET_LINK = b"\1\1", b"\2\1"
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
        loop.call_later(LISTEN_S, self._send_answer)

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

    def _send_answer(self) -> None:
        self._agent.loop.unwatch(self._way.sock.fileno())
        self._way.sock.close()
        self._agent.send(Holders(self._id, list(self._found), None))


class _ArpWay:
    """Asks by ARP."""

    def __init__(self, order: HoldersOrder) -> None:
        self._wanted = socket.inet_aton(order.dst)
        self._source = socket.inet_aton(order.src)
        self._device = order.dev
        self._link = read_link_address(order.dev)
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ARP))
        self.sock.setblocking(False)
        self.sock.bind((order.dev, ETH_P_ARP))

    def ask(self) -> None:
        """Ask everybody."""
        request = ARP_REQUEST + self._link + self._source + bytes(LINK_BYTES) + self._wanted
        self.sock.sendto(request, (self._device, ETH_P_ARP, 0, ARPHRD_ETHER, EVERYBODY))

    def read(self, data: bytes) -> Optional[bytes]:
        """Give the link-layer address of an answer; None of another packet."""
        return data[8:14] if data[:8] == ARP_REPLY and data[14:18] == self._wanted else None


class _NdWay:
    """Asks by ND (RFC 4861); the kernel gives raw sockets every advertisement that comes in."""

    def __init__(self, order: HoldersOrder) -> None:
        self._wanted = socket.inet_pton(socket.AF_INET6, order.dst)
        index = socket.if_nametoindex(order.dev)
        # All who have an address listen at a group that its last three bytes name.
        group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13] + self._wanted[13:]
        self._to = (socket.inet_ntop(socket.AF_INET6, group), 0, 0, index)
        self._link = read_link_address(order.dev)
        self.sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        self.sock.setblocking(False)
        six = socket.IPPROTO_IPV6
        self.sock.setsockopt(six, socket.IPV6_MULTICAST_HOPS, HOP_LIMIT)
        self.sock.setsockopt(six, socket.IPV6_MULTICAST_IF, index)
        self.sock.bind((order.src, 0, 0, index))

    def ask(self) -> None:
        """Ask all who may have the address."""
        self.sock.sendto(SOLICITATION + self._wanted + SOURCE_LINK + self._link, self._to)

    def read(self, data: bytes) -> Optional[bytes]:
        """Give the link-layer address of an answer; None of another packet."""
        told = data[:1] == ADVERTISEMENT and data[8:24] == self._wanted
        return data[26:32] if told and data[24:26] == TARGET_LINK else None
