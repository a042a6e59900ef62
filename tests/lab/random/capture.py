"""tcpdump in every namespace, and its files read: what was seen where, and of which try."""

from __future__ import annotations

import re
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.netlab import Namespace

TOKEN = re.compile(rb"([QABC])([0-9a-f]{15})")
OUTGOING = 4
LOOPBACK = 1  # the index of lo in every namespace
# Of 4 kB the last segment is smaller than this, all before it are full.
FULL_BYTES = 1300


@dataclass(frozen=True)
class Seen:
    """One packet on one interface of one machine.

    ``kind``: syn, syn-ack, reset, Q, A, B, C (the token's letter), error, ask or tell (ARP and
    neighbour discovery), or other. ``token`` and ``sequence`` say of which try; an error has those
    of the packet that it quotes.
    """

    machine: str
    device: int
    out: bool
    time: float
    kind: str
    source: str
    destination: str
    ttl: int = 0
    sport: int = 0
    dport: int = 0
    token: str = ""
    sequence: int = -1
    size: int = 0
    words: str = ""

    @property
    def wire(self) -> bool:
        """Whether it was on an interface that has a cable."""
        return self.device != LOOPBACK


@dataclass
class Captures:
    """All packets of one test, in the order of time."""

    packets: list[Seen] = field(default_factory=list)


@contextmanager
def capture(machines: list[Namespace], folder: Path) -> Iterator[Captures]:
    """Capture on every interface of these machines while the block runs."""
    processes = []
    for machine in machines:
        path = folder / f"{machine.name}.pcap"
        process = machine.spawn(
            "tcpdump", "-i", "any", "-y", "LINUX_SLL2", "-U", "-n", "-Z", "root",
            "--immediate-mode", "-B", "8192", "-s", "300", "-w", str(path), stderr=subprocess.PIPE,
        )  # fmt: skip
        processes.append((machine, path, process))
    for _, _, process in processes:
        assert process.stderr is not None
        while b"listening on" not in (line := process.stderr.readline()):
            assert line, "tcpdump ended"
    found = Captures()
    yield found
    for machine, path, process in processes:
        process.send_signal(signal.SIGINT)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()
        machine.processes.remove(process)
        found.packets += read(machine.name, path.read_bytes())
    found.packets.sort(key=lambda seen: seen.time)


def read(machine: str, data: bytes) -> Iterator[Seen]:
    """The packets of a pcap file of link type SLL2, as tcpdump writes it."""
    offset = 24
    while offset + 16 <= len(data):
        seconds, micros, length, _ = struct.unpack_from("<IIII", data, offset)
        frame = data[offset + 16 : offset + 16 + length]
        offset += 16 + length
        protocol, _, device, _, direction = struct.unpack_from(">HHIHB", frame)
        if direction == 3:
            continue  # for another host of the segment
        where = (machine, device, direction == OUTGOING, seconds + micros / 1e6)
        made = _packet(where, protocol, frame[20:])
        if made is not None:
            yield made


def _packet(where: tuple[str, int, bool, float], protocol: int, packet: bytes) -> Seen | None:
    if protocol == 0x0806:
        words = {1: "ask", 2: "tell"}.get(packet[7], "other")
        mine, asked = (socket.inet_ntoa(packet[at : at + 4]) for at in (14, 24))
        return Seen(*where, words, mine, asked)
    if protocol == 0x0800:
        head, kind, ttl = (packet[0] & 15) * 4, packet[9], packet[8]
        ends = [socket.inet_ntop(socket.AF_INET, packet[at : at + 4]) for at in (12, 16)]
        size = int.from_bytes(packet[2:4], "big") - head
    elif protocol == 0x86DD:
        head, kind, ttl = 40, packet[6], packet[7]
        ends = [socket.inet_ntop(socket.AF_INET6, packet[at : at + 16]) for at in (8, 24)]
        size = int.from_bytes(packet[4:6], "big")
    else:
        return None
    rest = packet[head:]
    if kind == socket.IPPROTO_TCP:
        return _tcp(where, ends, ttl, rest, size)
    if kind == socket.IPPROTO_UDP:
        sport, dport = struct.unpack_from(">HH", rest)
        letter, token = _token(rest)
        return Seen(*where, letter, ends[0], ends[1], ttl, sport, dport, token)
    if kind in (socket.IPPROTO_ICMP, socket.IPPROTO_ICMPV6):
        return _icmp(where, ends, ttl, rest, six=kind == socket.IPPROTO_ICMPV6)
    return None


def _token(payload: bytes) -> tuple[str, str]:
    found = TOKEN.search(payload)
    return (found[1].decode(), found[2].decode()) if found else ("other", "")


def _tcp(
    where: tuple[str, int, bool, float], ends: list[str], ttl: int, segment: bytes, size: int
) -> Seen:
    sport, dport, number, acked = struct.unpack_from(">HHII", segment)
    flags, head = segment[13], (segment[12] >> 4) * 4
    kind, token = _token(segment[head:])
    if kind == "other":
        kind = "reset" if flags & 4 else {2: "syn", 18: "syn-ack"}.get(flags & 18, "other")
    # The client's own number: an answer acknowledges it. Resets by a firewall do so as well.
    sequence = {
        "syn": number,
        "syn-ack": acked - 1,
        "reset": acked - 1 if flags & 16 else number - 1,
    }
    return Seen(*where, kind, ends[0], ends[1], ttl, sport, dport, token,
                sequence.get(kind, -1) & 0xFFFFFFFF, size - head)  # fmt: skip


def _icmp(
    where: tuple[str, int, bool, float], ends: list[str], ttl: int, rest: bytes, *, six: bool
) -> Seen | None:
    kind, code = rest[0], rest[1]
    if kind in ((128, 129) if six else (8, 0)):
        # The pattern of ping is read at any place of it, so it is turned until it begins with Q.
        token = _pattern(rest[8:])
        return Seen(*where, "Q" if kind in (8, 128) else "A", ends[0], ends[1], ttl, token=token)
    if six and kind in (135, 136):
        asked = socket.inet_ntop(socket.AF_INET6, rest[8:24])
        return Seen(*where, "ask" if kind == 135 else "tell", *_said(ends[0], asked, kind))
    if kind in ((1, 2, 3, 4) if six else (3, 11, 12)):
        return _error(where, ends, ttl, rest[8:], f"{kind}/{code}", six=six)
    return None


def _said(sender: str, asked: str, kind: int) -> tuple[str, str]:
    """As ARP has it: who speaks, and for an answer whose address it is."""
    return (sender, asked) if kind == 135 else (asked, "")


def _pattern(payload: bytes) -> str:
    found = TOKEN.search(payload)
    return found[2].decode() if found else ""


def _error(
    where: tuple[str, int, bool, float], ends: list[str], ttl: int, quoted: bytes, words: str,
    *, six: bool,
) -> Seen:  # fmt: skip
    head = 40 if six else (quoted[0] & 15) * 4
    protocol = quoted[6] if six else quoted[9]
    rest = quoted[head:]
    token, sequence = _token(rest)[1], -1
    if protocol == socket.IPPROTO_TCP and len(rest) >= 8:
        sequence = struct.unpack_from(">I", rest, 4)[0]
    sport, dport = struct.unpack_from(">HH", rest) if len(rest) >= 4 else (0, 0)
    return Seen(*where, "error", ends[0], ends[1], ttl, sport, dport, token, sequence, 0, words)
