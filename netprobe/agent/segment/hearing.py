"""Listens for routers that share virtual addresses: VRRP, CARP and HSRP. Nothing is sent."""

import socket
from typing import Any, Dict, Optional, Tuple

from ..core.agent import AgentCore
from ..host.identity import format_link
from ..net.bpf import ETH_P_IP, ETH_P_IPV6
from ..wire.parts import RouterHeard
from ..wire.segment_messages import SegmentHeard, SegmentHearOrder
from .adverts import HSRP_PORTS, VRRP, Advert, read_advert
from .wire_socket import LINK_BYTES, SegmentWork, hear_group, make_udp_filter

MOST = 64
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
        self._agent.loop.call_later(self._order.window_ms / 1000, self.finish)

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
