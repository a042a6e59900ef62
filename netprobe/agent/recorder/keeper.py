"""Keeps a few packets of the run's own probes, for ``--evidence``: never those of others.

A packet is kept only if it is a probe of this run, an answer to one, or an error that quotes one:
connects by the ports that this agent took for them or by the first sequence number that the
coordinator asks for, datagrams and echoes by their nonces. Of any other payload nothing is kept.
"""

import struct
from array import array
from collections import OrderedDict, defaultdict
from hashlib import shake_128
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..core.agent import AgentCore
from ..core.ranges import each
from ..wire.answers import PacketsKept
from ..wire.orders import KeptOrder
from ..wire.parts import KeptPacket, Ranges
from ..wire.templates import NONCE_BYTES, pack_nonce, read_nonce
from .ring import ICMP, SYN, SYN_ACK, TCP, UDP, name_device

# Of all packets of this host, and what the lists around each packet cost.
MOST_BYTES = 1 << 20
PACKET_COST = 120
# The first and the last connects (or datagrams) of each port, and packets each way of each of them.
FEW_FLOWS = 8
FEW_PACKETS = 5
# Of one flow that is asked about.
MOST_OWN_PORTS = 1024
# Nonces of walks have an id that other agents' may have too, and a place above all attempts.
MOST_ATTEMPTS = 0xFF
# A token is the hash's output at its destination's place.
MOST_PLACE = 4096
TOKEN_BYTES = 16
TRANSPORT_BYTES = 8

_TOKEN_SEED = struct.Struct(">IH")
_NUMBER = struct.Struct("!I")

PacketKey = Tuple[Any, ...]
# time, device, "it went out", the whole length, the bytes
Kept = Tuple[int, int, bool, int, bytes]


class KeptFlow:
    """The packets of one connect, datagram or echo, with its answers and errors."""

    __slots__ = ("number", "own_port", "packets", "pair", "port", "proto")

    def __init__(self, pair: bytes, proto: int, port: int, number: int, own_port: int = 0) -> None:
        # Where the request went from and to, and what proves that it is one of this run: the first
        # sequence number of a connect, the order of a datagram's nonce, that and the place of an
        # echo's. 0: it has none, as what is sent to a service without a nonce.
        self.pair = pair
        self.proto = proto
        self.port = port
        self.number = number
        # Where a connect came from.
        self.own_port = own_port
        self.packets: List[Kept] = []


class Keeper:
    """``ports``: the TCP ports that the run asks; a connect to another one is none of it."""

    def __init__(self, agent: AgentCore, ports: Ranges) -> None:
        self._agent = agent
        self._own_ports: Set[Tuple[bytes, int, int]] = set()
        agent.own_ports = self._own_ports
        self._ports = frozenset(each(ports))
        self._flows: "OrderedDict[PacketKey, KeptFlow]" = OrderedDict()
        # Those that were answered go first where there is no room.
        self._answered: "OrderedDict[PacketKey, None]" = OrderedDict()
        # The keys of datagrams, by what an error quotes.
        self._quoted: Dict[PacketKey, PacketKey] = {}
        self._bytes = 0
        # Which flows there was no room for, by protocol: 8 bytes each.
        self._forgotten: "Dict[int, array[int]]" = defaultdict(lambda: array("Q"))

    def note_tcp(
        self, kept: Kept, pair: bytes, ports: Tuple[int, int], row: Tuple[int, int]
    ) -> None:
        """Note a SYN, a SYN-ACK or a reset; ``row`` is its kind and the number that it is about."""
        kind, number = row
        key: PacketKey = (TCP, number)
        if kind == SYN and key not in self._flows:
            half = len(pair) // 2
            sent = kept[2]
            mine = (pair[half:], ports[1], ports[0]) in self._own_ports
            if not (mine if sent else ports[1] in self._ports):
                return
            self._flows[key] = KeptFlow(pair, TCP, ports[1], number, ports[0])
        if key in self._flows:
            self._add_packet(key, kept, is_answer=kind == SYN_ACK)

    def note_datagram(
        self, kept: Kept, pair: bytes, ports: Tuple[int, int], nonce: Optional[bytes], header: int
    ) -> None:
        """Note a datagram or a packet of an IP protocol; ``nonce`` None: it has none of ours."""
        sport, dport = ports
        if nonce is not None:
            said = read_nonce(nonce)
            key: PacketKey = (UDP, said.order, said.port, said.attempt)
            number = said.order
            if said.attempt > MOST_ATTEMPTS:
                half = len(pair) // 2
                key, number = (*key, frozenset((pair[:half], pair[half:]))), 0
            if key not in self._flows:
                self._flows[key] = KeptFlow(pair, UDP, said.port, number)
                self._quoted[(pair, dport)] = key
        else:
            # Other payload than ours stays where it is, also where it answers our socket.
            kept = (*kept[:4], kept[4][:header])
            half = len(pair) // 2
            if (pair[half:], dport, sport) in self._own_ports:
                key = (UDP, pair, sport, dport)
                self._flows.setdefault(key, KeptFlow(pair, UDP, dport, 0))
                self._quoted[(pair, dport)] = key
            else:
                key = (UDP, pair[half:] + pair[:half], dport, sport)
        if key in self._flows:
            self._add_packet(key, kept, is_answer=pair != self._flows[key].pair)

    def note_echo(self, kept: Kept, pair: bytes, is_reply: bool, payload: bytes) -> None:
        """Note an echo whose token is of this run."""
        nonce = payload[:NONCE_BYTES]
        if len(nonce) < NONCE_BYTES or not self._is_token(nonce, payload[NONCE_BYTES:]):
            return
        key: PacketKey = (ICMP, nonce)
        if key not in self._flows and not is_reply:
            said = read_nonce(nonce)
            number = said.order * (MOST_PLACE + 1) + said.port
            self._flows[key] = KeptFlow(pair, ICMP, 0, number)
            self._quoted[(pair, 0)] = key
        if key in self._flows:
            self._add_packet(key, kept, is_answer=is_reply)

    def note_error(self, kept: Kept, pair: bytes, proto: int, port: int, quote: bytes) -> None:
        """Note an error that quotes a kept packet; ``quote`` begins with its transport header."""
        key = self._quoted.get((pair, port))
        if proto == TCP:
            key = (TCP, _NUMBER.unpack_from(quote, 4)[0]) if len(quote) >= 8 else None
        if key is not None and key in self._flows:
            # The quote may go on with payload: what is not ours is not kept.
            end = len(kept[4]) - len(quote) + TRANSPORT_BYTES
            self._add_packet(key, (*kept[:4], kept[4][:end]), is_answer=False)

    def tell(self, order: KeptOrder, asker: bytes, target: bytes, *, sure: bool) -> PacketsKept:
        """Give the first and the last packets of each of these ports, in each direction."""
        by_port: Dict[int, List[KeptFlow]] = {}
        for flow in self._select_flows(order, asker + target):
            by_port.setdefault(flow.port, []).append(flow)
        flows = [flow for some in by_port.values() for flow in _cut_middle(some, FEW_FLOWS)]
        told = [
            KeptPacket(flow.port, time_ns, name_device(device), out, length, data)
            for flow in flows
            for way in (True, False)
            for time_ns, device, out, length, data in _cut_middle(
                [kept for kept in flow.packets if kept[2] == way], FEW_PACKETS
            )
        ]
        known = sum(len(flow.packets) for some in by_port.values() for flow in some)
        numbers = sorted({flow.number for flow in flows if flow.number})
        # What was left out here is no packet that did not come. The numbers of connects name each
        # of them: the other end tells of no other ones.
        whole = order.proto == "tcp" or len(flows) == sum(map(len, by_port.values()))
        sure = sure and whole and not self._has_forgotten(order, asker + target)
        return PacketsKept(order.id, told, numbers, known - len(told), [], sure)

    def list_own_ports(self, order: KeptOrder, target: bytes) -> List[int]:
        """List the ports that this agent asked these ports of ``target`` from."""
        ports = frozenset(each(order.ports))
        own = (one[2] for one in self._own_ports if one[0] == target and one[1] in ports)
        return sorted(own)[:MOST_OWN_PORTS]

    def _select_flows(self, order: KeptOrder, pair: bytes) -> Iterator[KeptFlow]:
        """Select flows: at the source by their addresses, at the destination by their numbers."""
        proto = {"tcp": TCP, "icmp": ICMP}.get(order.proto, UDP)
        ports = frozenset(each(order.ports))
        for flow in self._flows.values():
            if flow.proto == proto and (not order.ports or flow.port in ports):
                named = flow.number != 0 and flow.number in order.numbers
                # What this host itself sent is no request that came to it.
                sent = flow.packets[0][2]
                own = order.sent or proto != TCP or flow.own_port in order.own_ports
                if sent == order.sent and (named or (flow.pair == pair and own)):
                    yield flow

    def _has_forgotten(self, order: KeptOrder, pair: bytes) -> bool:
        """Tell whether there was no room for one of these flows."""
        proto = {"tcp": TCP, "icmp": ICMP}.get(order.proto, UDP)
        ports = tuple(each(order.ports)) or (0,)
        asked = {_mark_flow(proto, port, number) for port in ports for number in order.numbers}
        if proto == ICMP:
            asked.add(_mark_pair(pair))
        return not asked.isdisjoint(self._forgotten[proto])

    def _add_packet(self, key: PacketKey, kept: Kept, *, is_answer: bool) -> None:
        flow = self._flows[key]
        flow.packets.append(kept)
        if is_answer:
            self._answered[key] = None
        self._bytes += len(kept[4]) + PACKET_COST
        while self._bytes > MOST_BYTES:
            oldest, _ = self._answered.popitem(last=False) if self._answered else (None, None)
            self._forget_flow(oldest if oldest is not None else next(iter(self._flows)))

    def _forget_flow(self, key: PacketKey) -> None:
        flow = self._flows.pop(key, None)
        self._answered.pop(key, None)
        if flow is not None:
            self._forgotten[flow.proto].append(_mark_flow(flow.proto, flow.port, flow.number))
            if flow.proto == ICMP:
                self._forgotten[ICMP].append(_mark_pair(flow.pair))
            self._bytes -= sum(len(kept[4]) + PACKET_COST for kept in flow.packets)
            self._quoted.pop((flow.pair, flow.port), None)

    def _is_token(self, nonce: bytes, rest: bytes) -> bool:
        """Tell whether an echo's payload is one that this run's agents make (``probers/echo``)."""
        said = read_nonce(nonce)
        if not 0 < said.port <= MOST_PLACE or pack_nonce(*said) != nonce:
            return False
        seed = self._agent.key + b"e" + _TOKEN_SEED.pack(said.order, said.attempt)
        end = TOKEN_BYTES * said.port
        return shake_128(seed).digest(end)[end - TOKEN_BYTES :] == rest[:TOKEN_BYTES]


def _cut_middle(some: List[Any], few: int) -> List[Any]:
    """Give the first and the last ones."""
    return some if len(some) <= 2 * few else some[:few] + some[-few:]


def _mark_flow(proto: int, port: int, number: int) -> int:
    """Give a number below 2**64 for a flow, by what an order for its packets says of it."""
    # One order's nonce goes to many ports; a connect has a number of its own.
    return number << 16 | port if proto == UDP else number


def _mark_pair(pair: bytes) -> int:
    return hash(pair) & 0xFFFFFFFFFFFFFFFF
