"""Records the packets of the run's probes at this host's devices, before and after its firewall.

A packet socket sees what comes in before the netfilter hooks, and what goes out after them
(net/core/dev.c: deliver_skb in __netif_receive_skb_core, dev_queue_xmit_nit). So what an INPUT rule
drops is seen, and what an OUTPUT rule drops is not.
"""

import struct
from collections import defaultdict, deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from ..core import loop as looping
from ..core.agent import AgentCore
from ..host.identity import filtered_devices
from ..net.bpf import ACK, PACKET_OUTGOING, RST
from ..net.bpf import SYN as SYN_FLAG
from ..wire.answers import PacketsKept, StoryTold
from ..wire.failures import NO_PERMISSION, PERMISSION, name_of
from ..wire.orders import KeptOrder, RecordOrder, StoryOrder
from .filter import make_filter
from .ring import (
    DATAGRAM,
    ECHO_REPLY,
    ECHO_REQUEST,
    ERROR,
    FRAME_BYTES,
    ICMP,
    ICMP6,
    NONCE,
    PACKET_BYTES,
    RESET,
    ROW,
    SYN,
    SYN_ACK,
    TCP,
    UDP,
    Frame,
    PacketRing,
    read_frames,
)
from .story import StoryReader, find_nonce, pack_address

# TCP segments by these flags; the filter lets others pass only with a nonce.
KIND_FLAGS = SYN_FLAG | RST | ACK
KINDS = {SYN_FLAG: SYN, SYN_FLAG | ACK: SYN_ACK, ACK: NONCE, 0: NONCE}
ECHO_KINDS = {0: ECHO_REPLY, 8: ECHO_REQUEST, 129: ECHO_REPLY, 128: ECHO_REQUEST}
WORD = 0xFFFFFFFF

# first byte, TTL, protocol, addresses; then the ports, both numbers and the flags of TCP.
_IP4 = struct.Struct("!B7xBB2x4s4sHHIIxB")
_IP6 = struct.Struct("!B5xBB16s16sHHIIxB")
_TCP = struct.Struct("!HHIIxB")
_PORT = struct.Struct("!H")
_PORTS = struct.Struct("!HHH")
_ORDER = struct.Struct("!I")
# Where the order stands: behind the magic word of a nonce, and in front of an echo's payload.
NONCE_AT = ECHO_PAYLOAD_AT = 8
# 24 bytes a packet: about 40 MB at most, a run of 800,000 connects.
MOST_ROWS = 1600000
MOST_PAYLOADS = 100000
# So many frames of the ring wait for somebody who asks about them: 16 MB, read in 0.1 s.
MOST_WAITING = 1 << 16
# An echo's header, nonce and token.
ECHO_BYTES = 8 + 24
# How long packets gather in the ring before all are read at once. The ring has room for three times
# as much of a scan at full speed. Where agents share a kernel, all of them turn for each packet.
GATHER_S = 0.1

Rows = Dict[bytes, bytearray]


class Recorder:
    """Empties the ring. Who asks of packets makes rows of them, by the addresses that they went
    from and to: of flows that pass nobody asks."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._ring: Optional[PacketRing] = None
        self._forget_run()

    def _forget_run(self) -> None:
        self._reading: Optional[looping.Timer] = None
        self._failure: Optional[str] = None
        self._lost = 0
        # Copied frames that are no rows yet, how many they are, and those that are being read.
        self._waiting: Deque[bytes] = deque()
        self._waiting_count = 0
        self._data = b""
        # Rows by source and destination address, as they stand in the packet, one after the other.
        self.rows: Rows = defaultdict(bytearray)
        # The same for errors, by the addresses of the packet that they quote.
        self.errors: Rows = defaultdict(bytearray)
        self.payloads: List[bytes] = []
        self._count = 0
        self._filtered: Optional[List[int]] = None
        self._known_templates = 0
        self._beginnings: Tuple[bytes, ...] = ()
        self._keeper: Any = None
        self._agent.own_ports = None

    def start(self, order: RecordOrder) -> None:
        """Begin, and forget all that was recorded; without the right to packet sockets nothing is
        recorded."""
        self.close()
        self._forget_run()
        if order.keep is not None:
            from .keeper import Keeper

            self._keeper = Keeper(self._agent, order.keep)
        try:
            self._ring = PacketRing(make_filter(order.datagrams, order.numbers, PACKET_BYTES))
        except OSError as error:
            denied = error.errno in PERMISSION
            self._failure = NO_PERMISSION if denied else name_of(error.errno)
            return
        self._agent.loop.watch(self._ring.sock.fileno(), looping.READ, self._read_soon)

    def tell_kept(self, order: KeptOrder) -> None:
        """Give what was kept of these probes, or at least which ports they were sent from."""
        told = PacketsKept(order.id, [], [], 0, [], sure=False)
        asker, target = pack_address(order.asker), pack_address(order.target)
        if self._keeper is not None and self._ring is None:
            told = told._replace(own_ports=self._keeper.list_own_ports(order, target))
        elif self._keeper is not None:
            self._take_packets()
            heard = any(pair.startswith(asker) for pair in self.rows)
            sure = heard and not self._lost and not self._is_full()
            told = self._keeper.tell(order, asker, target, sure=sure)
        self._agent.send(told)

    def tell_story(self, order: StoryOrder) -> None:
        """Answer what was seen of these probes."""
        told = StoryTold(order.id, False, self._failure, [], [], [], False, False, 0, False)
        if self._ring is not None:
            self._take_packets()
            if order.ports or order.proto not in ("tcp", "udp"):
                self._read_packets()  # else only how the recorder fares is asked
            told = StoryReader(self, order, self._agent).read_story()
            told = told._replace(lost=self._lost, full=self._is_full())
        self._agent.send(told)

    def find_filtered(self) -> List[int]:
        """Find the devices with an XDP program; it is looked up once."""
        if self._filtered is None:
            self._filtered = filtered_devices()
        return self._filtered

    def close(self) -> None:
        """Stop."""
        if self._reading is not None:
            self._reading.cancel()
        if self._ring is not None:
            self._agent.loop.unwatch(self._ring.sock.fileno())
            self._ring.close()
            self._ring = None

    def _is_full(self) -> bool:
        return self._count >= MOST_ROWS or len(self.payloads) >= MOST_PAYLOADS

    def _read_soon(self, _events: int) -> None:
        """Packets come in bursts: one turn of the loop a burst, not one a packet."""
        assert self._ring is not None
        self._agent.loop.unwatch(self._ring.sock.fileno())
        self._reading = self._agent.loop.call_later(GATHER_S, self._read_and_watch)

    def _read_and_watch(self) -> None:
        assert self._ring is not None
        self._take_packets()
        self._agent.loop.watch(self._ring.sock.fileno(), looping.READ, self._read_soon)

    def _take_packets(self) -> None:
        """Empty the ring. A keeper reads at once, because it chooses by what it knows now."""
        assert self._ring is not None
        for _ in range(2):  # up to the ring's end, and from its beginning on
            data = self._ring.take_frames()
            if data:
                self._waiting.append(data)
                self._waiting_count += len(data) // FRAME_BYTES
        self._lost += self._ring.count_lost()
        self._read_packets(0 if self._keeper is not None else MOST_WAITING)

    def _read_packets(self, rest: int = 0) -> None:
        """Turn the oldest packets into rows, until about so many are left."""
        while self._waiting and self._waiting_count > rest:
            self._data = self._waiting.popleft()
            self._waiting_count -= len(self._data) // FRAME_BYTES
            self._read_data()
        self._data = b""

    def _read_data(self) -> None:  # noqa: C901  # one turn a packet, without calls
        memory, rows, pack = self._data, self.rows, ROW.pack
        read4, read6 = _IP4.unpack_from, _IP6.unpack_from
        for frame in read_frames(memory):
            time_ns, device, about, is_6, at = frame
            self._count += 1
            if self._count >= MOST_ROWS:
                continue
            fields = read6(memory, at) if is_6 else read4(memory, at)
            first, ttl, proto, source, target, sport, dport, number, acked, flags = fields
            header = (first & 15) * 4
            if is_6:  # the next header comes before the hop limit
                proto, ttl, header = ttl, proto, 40
            if proto != TCP:
                self._note_other(frame, (ttl, proto, source, target), header)
                continue
            if header != 20 and not is_6:  # IPv4 with options
                sport, dport, number, acked, flags = _TCP.unpack_from(memory, at + header)
            kind = KINDS.get(flags & KIND_FLAGS, RESET)
            if kind == NONCE:
                number = self._read_order(at + header)
            elif flags & ACK:
                number = (acked - 1) & WORD
            out = about == PACKET_OUTGOING
            row = pack(time_ns, kind, ttl, out, device, sport, dport, number)
            rows[source + target] += row
            if self._keeper is not None and kind != NONCE:
                self._keep_connect(frame, header, source + target, (sport, dport, kind, number))

    def _read_order(self, at: int) -> int:
        """Read the order of the nonce that a TCP segment carries."""
        memory = self._data
        data_at = at + (memory[at + 12] >> 4) * 4
        return int(_ORDER.unpack_from(memory, data_at + NONCE_AT)[0])

    def _keep_connect(self, frame: Frame, header: int, pair: bytes, row: Any) -> None:
        """Keep the headers of a SYN, a SYN-ACK or a reset; ``header``: how long that of IP is."""
        words = self._data[frame[4] + header + 12] >> 4
        self._keeper.note_tcp(self._cut_packet(frame, header + words * 4), pair, row[:2], row[2:])

    def _cut_packet(self, frame: Frame, end: int = PACKET_BYTES) -> Any:
        """Give a packet up to there for the keeper; the rest of a frame is of older ones."""
        time_ns, device, about, is_6, at = frame
        memory = self._data
        length = _PORT.unpack_from(memory, at + (4 if is_6 else 2))[0] + (40 if is_6 else 0)
        data = bytes(memory[at : at + min(length, end, PACKET_BYTES)])
        return time_ns, device, about == PACKET_OUTGOING, length, data

    def _note_other(  # noqa: PLR0915  # one branch a kind of packet
        self, frame: Frame, fields: Tuple[Any, ...], header: int
    ) -> None:
        """Note an echo, an error or a datagram."""
        memory = self._data
        time_ns, device, about, _, at = frame
        ttl, proto, source, target = fields
        out = about == PACKET_OUTGOING
        at += header
        if proto not in (ICMP, ICMP6):
            sport = dport = 0
            end = self._find_end(frame)
            if proto == UDP:
                sport, dport, length = _PORTS.unpack_from(memory, at)
                end = min(end, at + length)
                at += 8
            payload = memory[at:end]
            # What begins as no request and no answer of the run is other traffic; an empty one may
            # be of the run.
            ours = not payload or payload.startswith(self._list_beginnings())
            if ours and len(self.payloads) < MOST_PAYLOADS:
                row = ROW.pack(
                    time_ns, DATAGRAM, ttl, out, device, sport, dport, len(self.payloads)
                )
                self.payloads.append(payload)
                self.rows[source + target] += row
            if self._keeper is not None:
                nonce = find_nonce(self._agent, payload)
                kept = self._cut_packet(frame)
                pair = source + target
                self._keeper.note_datagram(kept, pair, (sport, dport), nonce, at - frame[4])
            return
        kind, code = memory[at], memory[at + 1]
        if kind in ECHO_KINDS:
            (number,) = _ORDER.unpack_from(memory, at + ECHO_PAYLOAD_AT)
            row = ROW.pack(time_ns, ECHO_KINDS[kind], ttl, out, device, 0, 0, number)
            self.rows[source + target] += row
            if self._keeper is not None:
                is_reply = ECHO_KINDS[kind] == ECHO_REPLY
                kept = self._cut_packet(frame, header + ECHO_BYTES)
                payload = memory[at + 8 : frame[4] + PACKET_BYTES]
                self._keeper.note_echo(kept, source + target, is_reply, payload)
            return
        pair, quoted, port = self._read_quote(at + 8, proto == ICMP6, self._find_end(frame))
        row = ERROR.pack(time_ns, kind, code, ttl, out, device, quoted, port, source)
        self.errors[pair] += row
        if self._keeper is not None:
            kept = self._cut_packet(frame)
            quote = header + 8 + (40 if proto == ICMP6 else (memory[at + 8] & 15) * 4)
            self._keeper.note_error(kept, pair, quoted, port, kept[4][quote:])

    def _find_end(self, frame: Frame) -> int:
        """Find where the packet ends, or what was kept of it: an older one may be behind that."""
        is_6, at = frame[3:]
        (length,) = _PORT.unpack_from(self._data, at + (4 if is_6 else 2))
        return at + min(int(length) + (40 if is_6 else 0), PACKET_BYTES)

    def _read_quote(self, at: int, is_6: bool, end: int) -> Tuple[bytes, int, int]:
        """Read the packet that an error quotes: its addresses, protocol and destination port."""
        memory = self._data
        if is_6:
            proto, header, pair = memory[at + 6], 40, memory[at + 8 : at + 40]
        else:
            proto, header, pair = memory[at + 9], (memory[at] & 15) * 4, memory[at + 12 : at + 20]
        has_port = proto in (TCP, UDP) and at + header + 4 <= end
        port = _PORT.unpack_from(memory, at + header + 2)[0] if has_port else 0
        return pair, proto, port

    def _list_beginnings(self) -> Tuple[bytes, ...]:
        """Give the first bytes of every request and answer of the run, as far as they are known."""
        templates = self._agent.templates
        if len(templates) != self._known_templates:
            self._known_templates = len(templates)
            self._beginnings = tuple(
                beginning
                for template in templates.values()
                for beginning in (template.request[: template.nonce_at], template.answer_begin())
            )
        return self._beginnings
