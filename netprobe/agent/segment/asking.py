"""Asks a network segment who has addresses, by ARP and ND: all who answer, not the first alone.

Without a source nobody learns anything from it: ARP probes have no sender address (RFC 5227), and
neighbour solicitations come from ``::`` (RFC 4862): who hears one answers if it has the address,
and notes nothing of who asked.
"""

import errno
import socket
import struct
from collections import deque
from typing import Any, Deque, Dict, Optional, Tuple

from ..core.agent import AgentCore
from ..host.identity import format_link
from ..net.bpf import EQUAL, ETH_P_IPV6, IPV6_HEADER, LD_BYTE, RETURN, assemble_program
from ..net.sockets import read_link_address
from ..wire.parts import AddressAnswer
from ..wire.segment_messages import SegmentAnswers, SegmentAskOrder
from .packets import make_packet, read_packet
from .wire_socket import LINK_BYTES, READ_BYTES, SegmentWork, hear_group

LISTEN_S = 1.0
MOST = 256

ETH_P_ARP, ARPHRD_ETHER = 0x0806, 1
EVERYBODY = b"\xff" * LINK_BYTES
# Ethernet and IPv4, and the lengths of their addresses; then what it is.
ARP_BEGIN, ARP_REQUEST, ARP_REPLY = b"\0\1\x08\0\6\4", b"\0\1", b"\0\2"
NOBODY_4, NOBODY_6 = bytes(4), bytes(16)
ICMP6, HOP_LIMIT = 58, 255
SOLICITATION, ADVERTISEMENT = 135, 136
SOURCE_LINK, TARGET_LINK = b"\1\1", b"\2\1"
# Answers to who has no address go to all hosts.
ALL_HOSTS_LINK = b"\x33\x33\0\0\0\1"
GROUP_BEGIN = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13]

ALL = assemble_program([(RETURN, READ_BYTES, None, None)])
ADVERTISEMENTS = assemble_program(
    [
        (LD_BYTE, 6, None, None),
        (EQUAL, ICMP6, None, "no"),
        (LD_BYTE, IPV6_HEADER, None, None),
        (EQUAL, ADVERTISEMENT, None, "no"),
        (RETURN, READ_BYTES, None, None),
        ("no", 0, None, None),
        (RETURN, 0, None, None),
    ]
)

Found = Optional[Tuple[bytes, bytes]]


def ask_addresses(agent: AgentCore, order: SegmentAskOrder) -> None:
    """Answer with all who have one of these addresses, a second after the last question."""
    SegmentQuestions(agent, order)


class SegmentQuestions(SegmentWork):
    """The questions of one order."""

    _order: SegmentAskOrder

    def begin(self) -> None:
        """Ask one address after the other. Raises OSError where the host may not."""
        order = self._order
        self._left: Deque[str] = deque(order.dsts)
        self._texts = {pack_any(text): text for text in order.dsts}
        self._found: Dict[AddressAnswer, bool] = {}  # a dict keeps the order of the answers
        self._source = None if order.src is None else pack_any(order.src)
        self._link = require_ethernet(read_link_address(order.dev))
        self._arp = self.open_socket(ETH_P_ARP, ALL, order.dev)
        self._nd = self.open_socket(ETH_P_IPV6, ADVERTISEMENTS, order.dev)
        hear_group(self._nd, order.dev, ALL_HOSTS_LINK)
        self._ask_next()

    def _ask_next(self) -> None:
        self._ask_address(self._left.popleft())
        later = self._agent.loop.call_later
        if self._left:
            later(self._order.gap_ms / 1000, self._ask_next)
        else:
            later(LISTEN_S, self.finish)

    def _ask_address(self, text: str) -> None:
        wanted, source = pack_any(text), self._source
        sock, kind, to = self._arp, ETH_P_ARP, EVERYBODY
        if len(wanted) > len(NOBODY_4):
            sock, kind, to = self._nd, ETH_P_IPV6, b"\x33\x33\xff" + wanted[13:]
            frame = make_solicitation(self._link, wanted, source or NOBODY_6)
        else:
            frame = make_arp_request(self._link, wanted, source or NOBODY_4)
        try:
            sock.sendto(frame, (self._order.dev, kind, 0, ARPHRD_ETHER, to))
        except OSError:
            pass  # the cable is out: nobody answers

    def read_packet(self, data: bytes, sender: Any) -> None:
        """Note who answers. An ARP packet begins with the kind of device, never with a 6."""
        read = read_advertisement if data[:1] >= b"\x60" else read_arp
        found = read(data, bytes(sender[4]))
        if found is not None and found[0] in self._texts and len(self._found) < MOST:
            self._found[AddressAnswer(self._texts[found[0]], format_link(found[1]))] = True

    def make_answer(self, failure: Optional[str]) -> SegmentAnswers:
        """Give all who answered."""
        found = [] if failure is not None else list(self._found)
        return SegmentAnswers(self._order.id, found, failure)


def require_ethernet(link: bytes) -> bytes:
    """Give the link-layer address of a device. Raises OSError if that is no Ethernet."""
    if len(link) != LINK_BYTES:
        raise OSError(errno.EOPNOTSUPP, "no Ethernet")
    return link


def pack_any(text: str) -> bytes:
    """Give the bytes of an address of either family."""
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def make_arp_request(link: bytes, wanted: bytes, source: bytes) -> bytes:
    """Give an ARP request; without a sender address it is a probe."""
    return ARP_BEGIN + ARP_REQUEST + link + source + bytes(LINK_BYTES) + wanted


def make_solicitation(link: bytes, wanted: bytes, source: bytes) -> bytes:
    """Give a neighbour solicitation with its IPv6 header; from ``::`` it says no link."""
    to = GROUP_BEGIN + wanted[13:]
    body = struct.pack("!BBHI", SOLICITATION, 0, 0, 0) + wanted
    if source != NOBODY_6:
        body += SOURCE_LINK + link
    return make_packet(source + to, ICMP6, HOP_LIMIT, body, 2)


def read_arp(data: bytes, _sender: bytes) -> Found:
    """Give who answers for an address; None of other packets."""
    is_reply = data[:8] == ARP_BEGIN + ARP_REPLY and len(data) >= 28
    return (data[14:18], data[8:14]) if is_reply else None


def read_advertisement(data: bytes, sender: bytes) -> Found:
    """Give who advertises an address; None of other packets."""
    try:
        protocol, ttl, _, body = read_packet(data)
    except (struct.error, ValueError):
        return None
    is_one = (protocol, ttl, body[:1]) == (ICMP6, HOP_LIMIT, bytes([ADVERTISEMENT]))
    if not is_one or len(body) < 24:
        return None
    link = body[26:32] if body[24:26] == TARGET_LINK and len(body) >= 32 else sender
    return (body[8:24], link) if len(link) == LINK_BYTES else None
