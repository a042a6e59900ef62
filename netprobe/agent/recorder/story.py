"""Reads the story of some probes out of the recorder's rows: runs of ports that went alike."""

import socket
from collections import Counter
from functools import lru_cache
from typing import Any, Dict, List, Optional, Tuple

from ..core.agent import AgentCore
from ..core.ranges import PortSet, each
from ..host.route import holder, look_up_route
from ..wire.answers import StoryTold
from ..wire.host_messages import RouteOrder
from ..wire.orders import StoryOrder
from ..wire.parts import SeenError, SeenPackets, SeenRun, TranslatedRun
from ..wire.templates import NONCE_BYTES, Template, read_nonce
from .ring import (
    DATAGRAM,
    DEVICE,
    DPORT,
    ECHO_REPLY,
    ECHO_REQUEST,
    ERROR,
    ICMP,
    ICMP6,
    KIND,
    NONCE,
    NUMBER,
    OUT,
    RESET,
    ROW,
    SPORT,
    SYN,
    SYN_ACK,
    TCP,
    TIME,
    TTL,
    UDP,
    find_loopback,
    list_numbers,
    name_device,
)

NUMBERS = {"tcp": (TCP,), "tcp-nonce": (TCP,), "udp": (UDP,), "icmp": (ICMP, ICMP6)}
# Requests, answers and resets.
KINDS = {
    "tcp": (SYN, SYN_ACK, RESET),
    "tcp-nonce": (NONCE, NONCE, None),
    "udp": (DATAGRAM, DATAGRAM, None),
    "ipproto": (DATAGRAM, DATAGRAM, None),
    "icmp": (ECHO_REQUEST, ECHO_REPLY, None),
}
# How many first sequence numbers stand for a run of ports.
MOST_NUMBERS = 64
MOST_TRANSLATED = 1024


class SeenPorts:
    """Packets of one kind, by port; ``at``: where a row has its port."""

    def __init__(self, rows: List[Tuple[Any, ...]], at: int) -> None:
        self.firsts = {row[at]: row for row in reversed(rows)}
        # What ports must have in common to be told together: the TTL, and the devices in the order
        # in which they saw a packet.
        self.traits: Dict[int, Tuple[int, ...]] = {
            port: (row[TTL], row[DEVICE]) for port, row in self.firsts.items()
        }
        # How many packets each port had, if any had several: a bond and its port see the same one.
        self.counts: Dict[int, int] = {}
        if len(self.firsts) < len(rows):
            for (port, device), count in Counter((row[at], row[DEVICE]) for row in rows).items():
                self.counts[port] = max(count, self.counts.get(port, 0))
                if device not in self.traits[port][1:]:
                    self.traits[port] += (device,)


class StoryReader:
    """Reads one story. ``recorder`` has the rows."""

    def __init__(self, recorder: Any, order: StoryOrder, agent: AgentCore) -> None:
        self._recorder = recorder
        self._order = order
        self._agent = agent
        # Each port with the place of its range: what is asked apart is told apart.
        ranges = order.ports or [(0, 0)]
        self._ports = {port: at for at, pair in enumerate(ranges) for port in each((pair,))}
        self._request, *self._answers = KINDS[order.proto]
        self._asker = pack_address(order.asker)
        self._target = pack_address(order.target)
        # Hundreds of runs have the same few devices, and each name is a question to the kernel.
        self._name_device = lru_cache(maxsize=None)(name_device)

    def read_story(self) -> StoryTold:
        """Give what was seen; the caller knows whether packets were lost."""
        there, back = self._asker + self._target, self._target + self._asker
        requests = self._collect_packets(there, self._request, is_request=True)
        found = [self._collect_packets(back, kind, is_request=False) for kind in self._answers]
        return StoryTold(
            self._order.id,
            running=True,
            failure=None,
            runs=self._make_runs(requests, *found),
            errors=self._read_errors(there),
            translated=self._find_translated(there),
            heard=self._has_heard(self._asker),
            awake=not self._order.sent and self._has_heard(b""),
            lost=0,
            full=False,
        )

    def _collect_packets(
        self, pair: bytes, wanted: Optional[int], *, is_request: bool
    ) -> SeenPorts:
        """Collect the packets of one kind between two addresses, in the right direction."""
        # Requests go out at the source, answers at the destination.
        outgoing = is_request == self._order.sent
        ports = self._ports
        at, own_at = (DPORT, SPORT) if is_request else (SPORT, DPORT)
        # A rule of this host that resets its own connects does so over the loopback device.
        unwanted = 0 if self._asker == self._target else find_loopback()
        rows = [
            row
            for row in ROW.iter_unpack(self._recorder.rows.get(pair, b""))
            if row[KIND] == wanted
            and row[OUT] == outgoing
            and row[DEVICE] != unwanted
            and row[at] in ports
        ]
        if wanted == DATAGRAM:
            own_ports = self._order.own_ports
            rows = [row for row in rows if row[own_at] in own_ports or self._is_ours(row[NUMBER])]
        elif wanted == NONCE:
            rows = [row for row in rows if row[NUMBER] in self._order.numbers]
        return SeenPorts(rows, at)

    def _is_ours(self, place: int) -> bool:
        """Tell whether a datagram carries the nonce of an order that is asked about."""
        return self._find_order(place) in self._order.numbers

    def _find_order(self, place: int) -> Optional[int]:
        """Find the order whose nonce a datagram carries, as a request or as an answer."""
        nonce = find_nonce(self._agent, self._recorder.payloads[place])
        return None if nonce is None else read_nonce(nonce).order

    def _make_runs(
        self, requests: SeenPorts, answers: SeenPorts, resets: SeenPorts
    ) -> List[SeenRun]:
        groups: Dict[Any, List[int]] = {}
        ports = sorted({*requests.firsts, *answers.firsts, *resets.firsts})
        traits = [map(seen.traits.get, ports) for seen in (requests, answers, resets)]
        for port, likeness in zip(ports, zip(map(self._ports.get, ports), *traits)):
            groups.setdefault(likeness, []).append(port)
        sent = self._order.sent
        return [
            SeenRun(
                PortSet(some).pairs(),
                self._join_packets(requests, some, sent),
                self._join_packets(answers, some, not sent),
                self._join_packets(resets, some, not sent),
                # Of ports from all of the run: a translation may begin in its middle.
                [
                    requests.firsts[port][NUMBER]
                    for port in some[:: len(some) // MOST_NUMBERS + 1]
                    if port in requests.firsts
                ],
            )
            for some in groups.values()
        ]

    def _join_packets(self, seen: SeenPorts, ports: List[int], out: bool) -> Optional[SeenPackets]:
        """Give what several ports have in common; they are alike."""
        if ports[0] not in seen.firsts:
            return None
        counts = [seen.counts.get(port, 1) for port in ports] if seen.counts else [1]
        ttl, *devices = seen.traits[ports[0]]
        # The device nearest to the network sees what comes first, and what goes out last.
        outermost = self._name_device(devices[-1] if out else devices[0])
        begin = min(map(seen.firsts.__getitem__, ports))[TIME]
        return SeenPackets(min(counts), max(counts), begin, ttl, outermost)

    def _read_errors(self, pair: bytes) -> List[SeenError]:
        """Read the errors about these probes, by sender and kind."""
        found: Dict[Any, List[Tuple[int, int]]] = {}
        number = self._order.number
        wanted = NUMBERS[self._order.proto] if number is None else (number,)
        loopback = find_loopback()
        for row in ERROR.iter_unpack(self._recorder.errors.get(pair, b"")):
            first_ns, kind, code, ttl, out, device, proto, port, sender = row
            # The own firewall's error goes out at the loopback device, and comes in there.
            twice = out and device == loopback
            if proto in wanted and port in self._ports and not twice:
                key = (sender[: len(pair) // 2], kind, code, ttl, out, device)
                found.setdefault(key, []).append((port, first_ns))
        return [
            SeenError(
                PortSet(sorted({port for port, _ in packets})).pairs(),
                _print_address(sender),
                kind,
                code,
                ttl,
                out,
                device == loopback,
                len(packets),
                packets[0][1],
            )
            for (sender, kind, code, ttl, out, device), packets in found.items()
        ]

    def _find_translated(self, there: bytes) -> List[TranslatedRun]:
        """Find requests with the asked numbers under other addresses."""
        wanted = frozenset(self._order.numbers)
        found: Dict[bytes, List[int]] = {}
        others = self._recorder.rows.items() if wanted else ()
        for pair, rows in others:
            if pair == there or len(pair) != len(there):
                continue
            if self._request != DATAGRAM and wanted.isdisjoint(list_numbers(rows)):
                continue
            for _, kind, _, out, _, _, port, number in ROW.iter_unpack(rows):
                if kind != self._request or out != self._order.sent:
                    continue
                known = self._find_order(number) if kind == DATAGRAM else number
                if known in wanted:
                    found.setdefault(pair, []).append(port)
        half = len(self._asker)
        return [
            TranslatedRun(
                _print_address(pair[:half]),
                _print_address(pair[half:]),
                PortSet(sorted(set(ports))).pairs(),
                len(ports),
            )
            for pair, ports in list(found.items())[:MOST_TRANSLATED]
        ]

    def _has_heard(self, asker: bytes) -> bool:
        """Tell whether these devices take packets of the asker, or (empty) of anybody.

        Those are the devices that its packets to the target pass, and the one that they should
        pass. An XDP program drops packets before this recorder sees them.
        """
        sent, pair, rows = self._order.sent, self._asker + self._target, self._recorder.rows
        if not sent and self._recorder.find_filtered():
            return False
        device = self._find_device()
        return any(
            row[3] == sent and (row[4] == device or other == pair)
            for other, some in rows.items()
            if not asker or (len(other) == len(pair) and other.startswith(asker))
            for row in ROW.iter_unpack(some)
        )

    def _find_device(self) -> Optional[int]:
        """Find the device by which packets to the target should leave, or should come in."""
        sent, asker, target = self._order.sent, self._order.asker, self._order.target
        try:
            name = look_up_route(RouteOrder(0, target, asker)).dev if sent else holder(target)
            if not sent and name == "lo" and asker != target:
                # An address of the loopback device is reached by others, as answers leave.
                name = look_up_route(RouteOrder(0, asker, target)).dev
            device = socket.if_nametoindex(name) if name else None
        except OSError:
            return None
        return device if asker == target or device != find_loopback() else None


def _recognise_start(template: Template, key: bytes, payload: bytes) -> Optional[bytes]:
    """Give the nonce of a genuine request, of which the end may be cut off; else None."""
    at = template.nonce_at
    if at is None or len(payload) < at + NONCE_BYTES:
        return None
    nonce = payload[at : at + NONCE_BYTES]
    request = template.fill(key, nonce)
    return nonce if request[: len(payload)] == payload[: len(request)] else None


def _print_address(address: bytes) -> str:
    family = socket.AF_INET if len(address) == 4 else socket.AF_INET6
    return socket.inet_ntop(family, address)


def pack_address(text: str) -> bytes:
    """Give an address as it stands in a packet."""
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def find_nonce(agent: AgentCore, payload: bytes) -> Optional[bytes]:
    """Find the genuine nonce of this run that a datagram carries, as a request or an answer."""
    for template in agent.templates.values():
        nonce = _recognise_start(template, agent.key, payload)
        if nonce is None and template.answer is not None:
            at = template.answer_nonce_at
            nonce = payload[at : at + NONCE_BYTES]
            if template.answering_host(agent.key, nonce, payload) is None:
                nonce = None
        if nonce is not None:
            return nonce
    return None
