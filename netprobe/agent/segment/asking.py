"""Asks a network segment who has addresses, so that no neighbour learns anything from it.

ARP probes have no sender address (RFC 5227), and neighbour solicitations come from ``::`` (RFC
4862): who hears one answers if it has the address, and notes nothing of who asked.
"""

import errno
import socket
import struct
from collections import deque
from typing import Deque, Dict, Optional, Tuple

from ..core import loop as looping
from ..core.agent import AgentCore
from ..host.identity import format_link
from ..net.bpf import EQUAL, ETH_P_IPV6, IPV6_HEADER, LD_BYTE, RETURN, assemble_program
from ..net.sockets import read_link_address
from ..wire.failures import name_of
from ..wire.parts import AddressAnswer
from ..wire.segment_messages import SegmentAnswers, SegmentAskOrder
from .wire_socket import LINK_BYTES, hear_group, open_segment

LISTEN_S = 1.0
READ_BYTES = 2048
MOST = 256

ETH_P_ARP, ARPHRD_ETHER = 0x0806, 1
EVERYBODY = b"\xff" * LINK_BYTES
# Ethernet and IPv4, and the lengths of their addresses; then what it is.
ARP_BEGIN, ARP_REQUEST, ARP_REPLY = b"\0\1\x08\0\6\4", b"\0\1", b"\0\2"
NOBODY_4, NOBODY_6 = bytes(4), bytes(16)
ICMP6, HOP_LIMIT = 58, 255
SOLICITATION, ADVERTISEMENT, TARGET_LINK = 135, 136, b"\2\1"
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
    try:
        SegmentQuestions(agent, order).start()
    except OSError as error:
        agent.send(SegmentAnswers(order.id, [], name_of(error.errno)))


class SegmentQuestions:
    """The questions of one order. Raises OSError where the host may not ask them."""

    def __init__(self, agent: AgentCore, order: SegmentAskOrder) -> None:
        self._agent = agent
        self._order = order
        self._left: Deque[str] = deque(order.dsts)
        self._texts = {pack_any(text): text for text in order.dsts}
        self._found: Dict[AddressAnswer, bool] = {}  # a dict keeps the order of the answers
        self._link = read_link_address(order.dev)
        if len(self._link) != LINK_BYTES:
            raise OSError(errno.EOPNOTSUPP, "no Ethernet")
        self._arp = open_segment(ETH_P_ARP, ALL, order.dev)
        try:
            self._nd = open_segment(ETH_P_IPV6, ADVERTISEMENTS, order.dev)
        except OSError:
            self._arp.close()
            raise
        hear_group(self._nd, order.dev, ALL_HOSTS_LINK)

    def start(self) -> None:
        """Ask one address after the other; the answer follows."""
        for sock in (self._arp, self._nd):
            self._agent.loop.watch(sock.fileno(), looping.READ, self._read_answers)
        self._ask_next()

    def _ask_next(self) -> None:
        if not self._left:
            self._agent.loop.call_later(LISTEN_S, self._send_answer)
            return
        self._ask_address(self._left.popleft())
        self._agent.loop.call_later(self._order.gap_ms / 1000, self._ask_next)

    def _ask_address(self, text: str) -> None:
        wanted = pack_any(text)
        sock, frame, kind, to = self._arp, make_arp_probe(self._link, wanted), ETH_P_ARP, EVERYBODY
        if len(wanted) > len(NOBODY_4):
            sock, frame, kind = self._nd, make_solicitation(wanted), ETH_P_IPV6
            to = b"\x33\x33\xff" + wanted[13:]
        try:
            sock.sendto(frame, (self._order.dev, kind, 0, ARPHRD_ETHER, to))
        except OSError:
            pass  # the cable is out: nobody answers

    def _read_answers(self, _events: int) -> None:
        for sock, read in ((self._arp, read_arp), (self._nd, read_advertisement)):
            while True:
                try:
                    data, sender = sock.recvfrom(READ_BYTES)
                except OSError:
                    break
                self._note_answer(read(data, bytes(sender[4])))

    def _note_answer(self, found: Found) -> None:
        if found is not None and found[0] in self._texts and len(self._found) < MOST:
            self._found[AddressAnswer(self._texts[found[0]], format_link(found[1]))] = True

    def _send_answer(self) -> None:
        for sock in (self._arp, self._nd):
            self._agent.loop.unwatch(sock.fileno())
            sock.close()
        self._agent.send(SegmentAnswers(self._order.id, list(self._found), None))


def pack_any(text: str) -> bytes:
    """Give the bytes of an address of either family."""
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def make_arp_probe(link: bytes, wanted: bytes) -> bytes:
    """Give an ARP request without a sender address."""
    return ARP_BEGIN + ARP_REQUEST + link + NOBODY_4 + bytes(LINK_BYTES) + wanted


def make_solicitation(wanted: bytes) -> bytes:
    """Give a neighbour solicitation from ``::``, with its IPv6 header."""
    to = GROUP_BEGIN + wanted[13:]
    body = struct.pack("!BBHI", SOLICITATION, 0, 0, 0) + wanted
    pseudo = NOBODY_6 + to + struct.pack("!II", len(body), ICMP6) + body
    total = sum(struct.unpack("!%dH" % (len(pseudo) // 2), pseudo))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~(total + (total >> 16)) & 0xFFFF
    body = body[:2] + struct.pack("!H", checksum) + body[4:]
    header = struct.pack("!IHBB", 6 << 28, len(body), ICMP6, HOP_LIMIT)
    return header + NOBODY_6 + to + body


def read_arp(data: bytes, _sender: bytes) -> Found:
    """Give who answers for an address; None of other packets."""
    is_reply = data[:8] == ARP_BEGIN + ARP_REPLY and len(data) >= 28
    return (data[14:18], data[8:14]) if is_reply else None


def read_advertisement(data: bytes, sender: bytes) -> Found:
    """Give who advertises an address; None of other packets."""
    told = bytearray(data[: IPV6_HEADER + 1])
    if len(data) < IPV6_HEADER + 24 or (told[6], told[7], told[40]) != (
        ICMP6, HOP_LIMIT, ADVERTISEMENT,
    ):  # fmt: skip
        return None
    link = data[66:72] if data[64:66] == TARGET_LINK and len(data) >= 72 else sender
    return (data[48:64], link) if len(link) == LINK_BYTES else None
