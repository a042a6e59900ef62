"""Asks a network segment which DHCP servers there are: one DISCOVER or SOLICIT, and no REQUEST.

Servers answer with what they would lease, and lease nothing (RFC 2131, RFC 8415).
"""

import os
import socket
import struct
from typing import Any, Dict, Optional, Tuple

from ..core.agent import AgentCore
from ..host.identity import format_link
from ..net.bpf import ETH_P_IP, ETH_P_IPV6
from ..net.sockets import read_link_address
from ..wire.parts import DhcpServer
from ..wire.segment_messages import DhcpHeard, DhcpOrder
from .asking import ARPHRD_ETHER, EVERYBODY, pack_any, require_ethernet
from .packets import make_packet, read_packet
from .wire_socket import UDP, SegmentWork, make_udp_filter

MOST = 32
# Servers may look whether an address is in use before they offer it: a dnsmasq that nothing else
# asked took 3.4 s.
LISTEN_S = 6.0
# Ports of clients and servers, by the bytes of an address.
PORTS = {4: (68, 67), 16: (546, 547)}
SERVERS_6, SERVERS_6_LINK = "ff02::1:2", b"\x33\x33\0\1\0\2"
# In front of the transaction: a request of a client with Ethernet. Behind it: answer to all; the
# client's address, and those of others, are none. Then what it is.
BEGIN_4, TO_ALL = b"\1\1\6\0", b"\0\0\x80\0" + bytes(16)
DISCOVER = b"\x63\x82\x53\x63\x35\1\1\xff"
LEAST_BYTES = 300
# The kind of message and the server's own address; where options and the offered address begin.
KIND_4, OFFER, SERVER_4, OPTIONS_4, OFFERED_4 = 53, b"\2", 54, 240, 16
SOLICIT, ADVERTISE = b"\1", b"\2"
# The client by its link-layer address; no time has passed; one address is wanted.
CLIENT_6, NOT_YET, ANY_ADDRESS = b"\0\1\0\x0a\0\3\0\1", b"\0\x08\0\2\0\0", b"\0\3\0\x0c" + bytes(12)
ADDRESSES_6, IN_ADDRESSES_6, ADDRESS_6 = 3, 12, 5

# The server, and the address that it offers.
ServerFound = Optional[Tuple[str, Optional[str]]]


def ask_dhcp(agent: AgentCore, order: DhcpOrder) -> None:
    """Answer with the servers that answered, after all had time to."""
    DhcpQuestion(agent, order)


class DhcpQuestion(SegmentWork):
    """One question, and its answers."""

    _order: DhcpOrder

    def begin(self) -> None:
        """Ask. Raises OSError where the host may not."""
        device, family = self._order.dev, self._order.family
        self._found: Dict[DhcpServer, bool] = {}
        self._transaction = os.urandom(4 if family == 4 else 3)
        link = require_ethernet(read_link_address(device))
        if family == 4:
            kind, to, port = ETH_P_IP, EVERYBODY, PORTS[4][0]
            packet = make_discover(link, self._transaction)
        else:
            kind, to, port = ETH_P_IPV6, SERVERS_6_LINK, PORTS[16][0]
            packet = make_solicit(link, self._transaction, find_link_local(device))
        sock = self.open_socket(kind, make_udp_filter(family, port), device)
        sock.sendto(packet, (device, kind, 0, ARPHRD_ETHER, to))
        self._agent.loop.call_later(LISTEN_S, self.finish)

    def read_packet(self, data: bytes, sender: Any) -> None:
        """Note a server."""
        found = read_answer(data, self._transaction)
        if found is not None and len(self._found) < MOST:
            self._found[DhcpServer(found[0], format_link(bytes(sender[4])), found[1])] = True

    def make_answer(self, failure: Optional[str]) -> DhcpHeard:
        """Give the servers."""
        return DhcpHeard(self._order.id, list(self._found), failure)


def find_link_local(device: str) -> str:
    """Find the address that packets to servers leave from. Raises OSError."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
        sock.connect((SERVERS_6, PORTS[16][1], 0, socket.if_nametoindex(device)))
        return str(sock.getsockname()[0]).partition("%")[0]


def make_discover(link: bytes, transaction: bytes) -> bytes:
    """Give a DISCOVER with its IP header."""
    body = (BEGIN_4 + transaction + TO_ALL + link).ljust(OPTIONS_4 - 4, b"\0") + DISCOVER
    return _make_datagram(bytes(4), EVERYBODY[:4], body.ljust(LEAST_BYTES, b"\0"))


def make_solicit(link: bytes, transaction: bytes, source: str) -> bytes:
    """Give a SOLICIT with its IP header."""
    body = SOLICIT + transaction + CLIENT_6 + link + NOT_YET + ANY_ADDRESS
    return _make_datagram(pack_any(source), pack_any(SERVERS_6), body)


def _make_datagram(source: bytes, to: bytes, body: bytes) -> bytes:
    header = struct.pack("!HHHH", *PORTS[len(to)], 8 + len(body), 0)
    return make_packet(source + to, UDP, 1, header + body, 6)


def read_answer(packet: bytes, transaction: bytes) -> ServerFound:
    """Give the server of an offer or advertisement; None of other packets."""
    try:
        return _read_answer(packet, transaction)
    except (struct.error, LookupError, ValueError, OSError):
        return None  # it ends too soon, or lacks what each has


def _read_answer(packet: bytes, transaction: bytes) -> ServerFound:
    _, _, sender, body = read_packet(packet)
    body = body[8:]
    if ":" in sender:
        options = _read_options(body[4:], "!HH")
        inside = _read_options(options.get(ADDRESSES_6, b"")[IN_ADDRESSES_6:], "!HH")
        offer = inside.get(ADDRESS_6)
        text = None if offer is None else socket.inet_ntop(socket.AF_INET6, offer[:16])
        return (sender, text) if body[:4] == ADVERTISE + transaction else None
    options = _read_options(body[OPTIONS_4:], "!BB")
    if body[4:8] != transaction or options[KIND_4] != OFFER:
        return None
    return socket.inet_ntoa(options[SERVER_4]), socket.inet_ntoa(body[OFFERED_4 : OFFERED_4 + 4])


def _read_options(data: bytes, form: str) -> Dict[int, bytes]:
    found: Dict[int, bytes] = {}
    header = struct.calcsize(form)
    while len(data) > header:
        code, length = struct.unpack_from(form, data)
        found.setdefault(code, data[header : header + length])
        data = data[header + length :]
    return found
