"""A capture: which probes reach this host's wire, before its firewall sees them."""

import socket
import struct
from typing import Dict, List, Optional, Tuple

from ..core import loop as looping
from ..core.agent import AgentCore
from ..core.ranges import PortSet, each
from ..net.bpf import ETH_P_IPV6, IPV6_HEADER, Wanted, attach, program
from ..wire.answers import Captured, Capturing
from ..wire.failures import NO_PERMISSION, PERMISSION, name_of
from ..wire.orders import CaptureOrder, StopCaptureOrder
from ..wire.parts import CapturedProbe
from ..wire.templates import read_nonce

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_STATISTICS = 6
RECEIVE_BYTES = 4 * 1024 * 1024
READ_BATCH = 256
MAX_PACKET = 65535
MAX_ITEMS = 4096
UDP_HEADER = 8
MORE_FRAGMENTS = 0x20
# Where the addresses stand in the header, and how long they are.
ADDRESSES = {4: (12, 4), 6: (8, 16)}

# source, source port, destination port, order, device
CaptureKey = Tuple[str, int, int, Optional[int], str]


class PacketCapture:
    """One running capture. Raises OSError where packet sockets are not permitted."""

    def __init__(self, agent: AgentCore, order: CaptureOrder) -> None:
        self._agent = agent
        self._proto = order.proto
        self._ports = PortSet(each(order.ports))
        self._to = frozenset(order.addresses)
        self._counts: Dict[CaptureKey, int] = {}
        self._truncated = False
        self._answers = order.answers
        wanted = Wanted(order.proto, order.number, order.ports, order.answers, order.outgoing)
        # On all interfaces at once: Python can bind a packet socket to a named one only.
        protocol = socket.htons(ETH_P_ALL)
        self._sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, protocol)
        try:
            attach(self._sock, program(wanted))
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
            self._sock.setblocking(False)
            self._discard_early()
        except OSError:
            self._sock.close()
            raise
        agent.loop.watch(self._sock.fileno(), looping.READ, self._read_packets)

    def finish(self) -> Tuple[List[CapturedProbe], bool]:
        """Stop, and give the items and whether some are missing."""
        self._read_packets(0)
        lost = self._count_lost()
        self.close()
        return self._list_items(), self._truncated or lost > 0

    def close(self) -> None:
        """Stop without a word."""
        self._agent.loop.unwatch(self._sock.fileno())
        self._sock.close()

    def _count_lost(self) -> int:
        """Tell how many packets the kernel had no room for since this was last asked."""
        counts = self._sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", counts)[1])

    def _discard_early(self) -> None:
        """Forget the packets of any kind that came in before the filter was there."""
        try:
            while True:
                self._sock.recvfrom(1)
        except OSError:
            self._count_lost()

    def _list_items(self) -> List[CapturedProbe]:
        # A packet shows on a bond and on its port, on a bridge and on its uplink: it is one packet.
        most: Dict[Tuple[str, int, int, Optional[int]], int] = {}
        devices: Dict[Tuple[str, int, int, Optional[int]], List[str]] = {}
        for key, count in sorted(self._counts.items(), key=lambda item: item[0][4]):
            most[key[:4]] = max(count, most.get(key[:4], 0))
            devices.setdefault(key[:4], []).append(key[4])
        ordered = sorted(most, key=lambda packet: (packet[:3], packet[3] or 0))
        return [
            CapturedProbe(*packet[:3], most[packet], packet[3], devices[packet])
            for packet in ordered
        ]

    def _read_packets(self, _events: int) -> None:
        try:
            for _ in range(READ_BATCH):
                data, about = self._sock.recvfrom(MAX_PACKET)
                self._note_packet(data, 6 if about[1] == ETH_P_IPV6 else 4, about[0])
        except OSError:
            return  # nothing more to read now

    def _note_packet(self, data: bytes, version: int, device: str) -> None:
        start, length = ADDRESSES[version]
        header = IPV6_HEADER if version == 6 else (data[0] & 15) * 4
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        if len(data) < header + 4:
            return
        if self._answers and version == 4 and data[6] & MORE_FRAGMENTS:
            # A piece of an answer: that it came does not say that all of it did.
            self._truncated = True
            return
        source = socket.inet_ntop(family, data[start : start + length])
        target = socket.inet_ntop(family, data[start + length : start + 2 * length])
        sport, dport, order = self._read_transport(data[header:])
        if self._answers:
            # Told from the probe's side, as requests are: who asked, and which port was asked.
            source, sport, target, dport = target, dport, source, sport
        if (self._to and target not in self._to) or (self._ports and dport not in self._ports):
            return
        key = (source, sport, dport, order, device)
        if key in self._counts or len(self._counts) < MAX_ITEMS:
            self._counts[key] = self._counts.get(key, 0) + 1
        else:
            self._truncated = True

    def _read_transport(self, data: bytes) -> Tuple[int, int, Optional[int]]:
        if self._proto == "tcp":
            return struct.unpack_from("!H", data)[0], struct.unpack_from("!H", data, 2)[0], None
        if self._proto == "udp":
            ports = struct.unpack_from("!HH", data)
            return ports[0], ports[1], self._find_order(data[UDP_HEADER:])
        return 0, 0, self._find_order(data) if self._proto == "ipproto" else None

    def _find_order(self, payload: bytes) -> Optional[int]:
        for template in self._agent.templates.values():
            nonce = template.recognise(self._agent.key, payload)
            if nonce is not None:
                return read_nonce(nonce).order
        return None


class PacketCaptures:
    """Starts and stops captures. No permission is an answer, not an error."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._running: Dict[int, PacketCapture] = {}
        self._failures: Dict[int, str] = {}

    def start(self, order: CaptureOrder) -> None:
        """Start one."""
        try:
            self._running[order.id] = PacketCapture(self._agent, order)
        except OSError as error:
            denied = error.errno in PERMISSION
            self._failures[order.id] = NO_PERMISSION if denied else name_of(error.errno)
        self._agent.send(Capturing(order.id, self._failures.get(order.id)))

    def stop(self, order: StopCaptureOrder) -> None:
        """Stop one, and tell what it saw."""
        items: List[CapturedProbe] = []
        truncated = False
        running = self._running.pop(order.id, None)
        if running is not None:
            items, truncated = running.finish()
        failure = self._failures.pop(order.id, None)
        self._agent.send(Captured(order.id, failure, items, truncated))

    def close(self) -> None:
        """Stop all."""
        for running in self._running.values():
            running.close()
        self._running.clear()
