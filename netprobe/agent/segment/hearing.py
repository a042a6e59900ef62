"""Listens for routers that share virtual addresses: VRRP, CARP and HSRP. Nothing is sent."""

import socket
from typing import Dict, List, Tuple

from ..core import loop as looping
from ..core.agent import AgentCore
from ..host.identity import format_link
from ..net.bpf import (
    ANY_BIT,
    EQUAL,
    ETH_P_IP,
    ETH_P_IPV6,
    GREATER_EQUAL,
    IPV6_HEADER,
    LD_BYTE,
    LD_HALF,
    LD_HALF_AT_X,
    LDX_CONSTANT,
    LDX_IP_HEADER,
    RETURN,
    FilterStep,
    assemble_program,
)
from ..wire.failures import name_of
from ..wire.parts import RouterHeard
from ..wire.segment_messages import SegmentHeard, SegmentHearOrder
from .adverts import HSRP_PORTS, UDP, VRRP, Advert, read_advert
from .wire_socket import LINK_BYTES, hear_group, open_segment

READ_BYTES = 2048
MOST = 64
LOOPBACK = "lo"
# The groups of VRRP and CARP, HSRP, HSRPv2; and of VRRP and HSRP over IPv6.
GROUPS_4 = tuple(b"\x01\0\x5e\0\0" + last for last in (b"\x12", b"\x02", b"\x66"))
GROUPS_6 = tuple(b"\x33\x33\0\0\0" + last for last in (b"\x12", b"\x66"))
# A later fragment has no transport header.
WHOLE_4: List[FilterStep] = [(LD_HALF, 6, None, None), (ANY_BIT, 0x1FFF, "no", None)]


def hear_routers(agent: AgentCore, order: SegmentHearOrder) -> None:
    """Listen as long as the order says; the answer follows."""
    try:
        Hearing(agent, order).start()
    except OSError as error:
        agent.send(SegmentHeard(order.id, [], name_of(error.errno)))


class Hearing:
    """One time of listening. Raises OSError where the host may not."""

    def __init__(self, agent: AgentCore, order: SegmentHearOrder) -> None:
        self._agent = agent
        self._order = order
        # The last priority of each; a dict keeps the order in which they were heard.
        self._heard: Dict[Tuple[str, str, int, str], RouterHeard] = {}
        self._socks: List[socket.socket] = []

    def start(self) -> None:
        """Listen; the answer follows."""
        try:
            for protocol, family, groups in ((ETH_P_IP, 4, GROUPS_4), (ETH_P_IPV6, 6, GROUPS_6)):
                self._socks.append(open_segment(protocol, make_filter(family)))
                _hear_groups(self._socks[-1], groups)
        except OSError:
            self._close_sockets()
            raise
        for sock in self._socks:
            self._agent.loop.watch(sock.fileno(), looping.READ, self._read_packets)
        self._agent.loop.call_later(self._order.window_ms / 1000, self._send_answer)

    def _read_packets(self, _events: int) -> None:
        for sock in self._socks:
            while True:
                try:
                    data, sender = sock.recvfrom(READ_BYTES)
                except OSError:
                    break
                found = read_advert(data)
                if found is not None:
                    self._note_advert(found, sender[0], bytes(sender[4]))

    def _note_advert(self, found: Advert, device: str, link: bytes) -> None:
        key = (device, found.speaks, found.group, found.sender)
        if len(link) == LINK_BYTES and (key in self._heard or len(self._heard) < MOST):
            self._heard[key] = RouterHeard(
                found.speaks, found.group, found.priority, found.sender, format_link(link), device
            )

    def _send_answer(self) -> None:
        for sock in self._socks:
            self._agent.loop.unwatch(sock.fileno())
        self._close_sockets()
        self._agent.send(SegmentHeard(self._order.id, list(self._heard.values()), None))

    def _close_sockets(self) -> None:
        for sock in self._socks:
            sock.close()


def _hear_groups(sock: socket.socket, groups: Tuple[bytes, ...]) -> None:
    for _, device in socket.if_nameindex():
        if device != LOOPBACK:
            for link in groups:
                hear_group(sock, device, link)


def make_filter(family: int) -> bytes:
    """Give the program that lets through what may be an advertisement."""
    begin: List[FilterStep] = WHOLE_4 if family == 4 else []
    transport = (LDX_IP_HEADER, 0) if family == 4 else (LDX_CONSTANT, IPV6_HEADER)
    return assemble_program(
        [
            *begin,
            (LD_BYTE, 9 if family == 4 else 6, None, None),
            (EQUAL, VRRP, "yes", None),
            (EQUAL, UDP, None, "no"),
            (transport[0], transport[1], None, None),
            (LD_HALF_AT_X, 2, None, None),
            (EQUAL, HSRP_PORTS[family], "yes", None),
            (GREATER_EQUAL, 0, "no", None),
            ("yes", 0, None, None),
            (RETURN, READ_BYTES, None, None),
            ("no", 0, None, None),
            (RETURN, 0, None, None),
        ]
    )
