"""Listens for routers that share virtual addresses: VRRP, CARP and HSRP.

Where it is ordered to, it sends what such a router would, of an id that none has.
"""

import socket
import struct
from typing import Any, Dict, Optional, Tuple

from ..core.agent import AgentCore
from ..host.identity import format_link
from ..net.bpf import ETH_P_IP, ETH_P_IPV6
from ..wire.parts import RouterHeard
from ..wire.segment_messages import SegmentHeard, SegmentHearOrder
from .adverts import HSRP_PORTS, TTL, VRRP, Advert, read_advert
from .asking import ARPHRD_ETHER, pack_any
from .packets import make_packet
from .wire_socket import LINK_BYTES, SegmentWork, hear_group, make_udp_filter

MOST = 64
# How often what a router would say is sent while this host listens.
SENT = 3
# Version 3, an advertisement; an id that no router has, the least priority, one address, and one
# second between packets; then the checksum.
OURS = b"\x31\0\1\1\0\x64\0\0"
VRRP_GROUPS = ("224.0.0.18", "ff02::12")
LOOPBACK = "lo"
# The groups of VRRP and CARP, HSRP, HSRPv2; and of VRRP and HSRP over IPv6.
GROUPS_4 = tuple(b"\x01\0\x5e\0\0" + last for last in (b"\x12", b"\x02", b"\x66"))
GROUPS_6 = tuple(b"\x33\x33\0\0\0" + last for last in (b"\x12", b"\x66"))


def hear_routers(agent: AgentCore, order: SegmentHearOrder) -> None:
    """Listen as long as the order says; the answer follows."""
    Hearing(agent, order)


class Hearing(SegmentWork):
    """One time of listening."""

    _order: SegmentHearOrder

    def begin(self) -> None:
        """Listen. Raises OSError where the host may not."""
        # The last priority of each; a dict keeps the order in which they were heard.
        self._heard: Dict[Tuple[str, str, int, str], RouterHeard] = {}
        for protocol, family, groups in ((ETH_P_IP, 4, GROUPS_4), (ETH_P_IPV6, 6, GROUPS_6)):
            _hear_groups(
                self.open_socket(protocol, make_udp_filter(family, HSRP_PORTS[family], VRRP)),
                groups,
            )
        window_s = self._order.window_ms / 1000
        self._agent.loop.call_later(window_s, self.finish)
        if self._order.senders:
            self._join_groups()
            for part in range(1, 1 + SENT):
                self._agent.loop.call_later(window_s * part / (1 + SENT), self._send_adverts)

    def _join_groups(self) -> None:
        """Join the group as routers do: switches may hand it on to none but those that did."""
        for device, text in self._order.senders:
            is_6, index = ":" in text, struct.pack("=I", socket.if_nametoindex(device))
            sock = socket.socket(socket.AF_INET6 if is_6 else socket.AF_INET, socket.SOCK_DGRAM)
            self.keep_socket(sock)
            group = pack_any(VRRP_GROUPS[is_6])
            if is_6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group + index)
            else:
                entry = group + bytes(4) + index
                sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, entry)

    def _send_adverts(self) -> None:
        for device, text in self._order.senders:
            is_6, source = ":" in text, pack_any(text)
            packet = make_packet(source + pack_any(VRRP_GROUPS[is_6]), VRRP, TTL, OURS + source, 6)
            kind, to = (ETH_P_IPV6, GROUPS_6[0]) if is_6 else (ETH_P_IP, GROUPS_4[0])
            try:
                self._socks[is_6].sendto(packet, (device, kind, 0, ARPHRD_ETHER, to))
            except OSError:
                pass  # the cable is out: nobody hears it

    def read_packet(self, data: bytes, sender: Any) -> None:
        """Note an advertisement."""
        found = read_advert(data)
        if found is not None:
            self._note_advert(found, sender[0], bytes(sender[4]))

    def _note_advert(self, found: Advert, device: str, link: bytes) -> None:
        key = (device, found.speaks, found.group, found.sender)
        if len(link) == LINK_BYTES and (key in self._heard or len(self._heard) < MOST):
            self._heard[key] = RouterHeard(
                found.speaks, found.group, found.priority, found.sender, format_link(link), device
            )

    def make_answer(self, failure: Optional[str]) -> SegmentHeard:
        """Give all routers that were heard."""
        return SegmentHeard(self._order.id, list(self._heard.values()), failure)


def _hear_groups(sock: socket.socket, groups: Tuple[bytes, ...]) -> None:
    for _, device in socket.if_nameindex():
        if device != LOOPBACK:
            for link in groups:
                hear_group(sock, device, link)
