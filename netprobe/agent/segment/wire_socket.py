"""Packet sockets on the network segments of this host."""

import socket
import struct
from typing import Any, List, Optional

from ..core import loop as looping
from ..core.agent import AgentCore
from ..net.bpf import (
    ANY_BIT,
    EQUAL,
    IPV6_HEADER,
    LD_BYTE,
    LD_HALF,
    LD_HALF_AT_X,
    LDX_CONSTANT,
    LDX_IP_HEADER,
    RETURN,
    FilterStep,
    assemble_program,
    attach,
)
from ..wire.failures import name_of

SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_MULTICAST = 263, 1, 0
LINK_BYTES = 6
READ_BYTES = 2048
UDP = socket.IPPROTO_UDP
# A later fragment has no transport header.
WHOLE_4: List[FilterStep] = [(LD_HALF, 6, None, None), (ANY_BIT, 0x1FFF, "no", None)]

_MEMBERSHIP = struct.Struct("=iHH8s")


class SegmentWork:
    """What one order does on segments, as long as its packet sockets are open; then it answers."""

    def __init__(self, agent: AgentCore, order: Any) -> None:
        """Begin; where the host may not, answer with the failure."""
        self._agent = agent
        self._order = order
        self._socks: List[socket.socket] = []
        try:
            self.begin()
        except OSError as error:
            self.finish(name_of(error.errno))

    def begin(self) -> None:
        """Open sockets, and see to it that ``finish`` is called. Raises OSError."""

    def read_packet(self, data: bytes, sender: Any) -> None:
        """Read what came; ``sender`` is an address of packet sockets."""

    def make_answer(self, failure: Optional[str]) -> Any:
        """Give the answer to the order."""

    def open_socket(
        self, protocol: int, instructions: bytes, device: Optional[str] = None
    ) -> socket.socket:
        """Open a packet socket for one protocol, at a device or at all. Raises OSError.

        Packets begin with their network header. One that came before the filter may be any.
        """
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(protocol))
        self.keep_socket(sock)
        attach(sock, instructions)
        # Python binds to named devices only.
        if device is not None:
            sock.bind((device, protocol))
        return sock

    def keep_socket(self, sock: socket.socket) -> None:
        """Read a socket until all are closed."""
        sock.setblocking(False)
        self._socks.append(sock)
        self._agent.loop.watch(sock.fileno(), looping.READ, self._read_packets)

    def finish(self, failure: Optional[str] = None) -> None:
        """Close all sockets, and answer."""
        for sock in self._socks:
            self._agent.loop.unwatch(sock.fileno())
            sock.close()
        self._agent.send(self.make_answer(failure))

    def _read_packets(self, _events: int) -> None:
        for sock in self._socks:
            while True:
                try:
                    data, sender = sock.recvfrom(READ_BYTES)
                except OSError:
                    break
                self.read_packet(data, sender)


def hear_group(sock: socket.socket, device: str, link: bytes) -> None:
    """Let a device take in frames to a group, as long as the socket is open; nothing is sent."""
    entry = _MEMBERSHIP.pack(socket.if_nametoindex(device), PACKET_MR_MULTICAST, len(link), link)
    try:
        sock.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, entry)
    except OSError:
        pass  # a device without groups, or one that is down


def make_udp_filter(family: int, port: int, protocol: Optional[int] = None) -> bytes:
    """Give the program that lets through datagrams to a port, and another protocol."""
    begin: List[FilterStep] = WHOLE_4 if family == 4 else []
    also: List[FilterStep] = [] if protocol is None else [(EQUAL, protocol, "yes", None)]
    transport = (LDX_IP_HEADER, 0) if family == 4 else (LDX_CONSTANT, IPV6_HEADER)
    return assemble_program(
        [
            *begin,
            (LD_BYTE, 9 if family == 4 else 6, None, None),
            *also,
            (EQUAL, UDP, None, "no"),
            (transport[0], transport[1], None, None),
            (LD_HALF_AT_X, 2, None, None),
            (EQUAL, port, None, "no"),
            ("yes", 0, None, None),
            (RETURN, READ_BYTES, None, None),
            ("no", 0, None, None),
            (RETURN, 0, None, None),
        ]
    )
