"""The recorder's filter, run by a small machine for classic BPF over packets made by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from netprobe.agent.net import bpf
from netprobe.agent.recorder.filter import ERRORS_4, ERRORS_6, MOST_RANGES, make_filter
from netprobe.protocols.packets.plain import ANSWER_MAGIC, MARK

TCP, UDP, ICMP, ICMP6, IPIP, GRE = 6, 17, 1, 58, 4, 47
SYN, SYN_ACK, RST, ACK, FIN = 0x02, 0x12, 0x04, 0x10, 0x01
PORTS = [(7000, 7009), (7100, 7100)]
KEEP = 176
HOST = 0
LOADS = {
    bpf.LD_WORD: 4, bpf.LD_HALF: 2, bpf.LD_BYTE: 1,
    bpf.LD_WORD_AT_X: 4, bpf.LD_HALF_AT_X: 2, bpf.LD_BYTE_AT_X: 1,
}  # fmt: skip
AT_X = (bpf.LD_WORD_AT_X, bpf.LD_HALF_AT_X, bpf.LD_BYTE_AT_X)
PLACES: dict[int, Callable[[int, int, bytes], int]] = {
    bpf.LDX_CONSTANT: lambda a, k, packet: k,
    bpf.LDX_IP_HEADER: lambda a, k, packet: (packet[k] & 15) * 4,
    bpf.TO_X: lambda a, k, packet: a,
}
CHANGES: dict[int, Callable[[int, int, int], int]] = {
    bpf.AND: lambda a, k, x: a & k,
    bpf.SHIFT_RIGHT: lambda a, k, x: a >> k,
    bpf.ADD_X: lambda a, k, x: a + x,
}


def takes(instructions: bytes, packet: bytes, kind: int = HOST, version: int | None = None) -> bool:
    """Whether the filter lets a packet (from its network header on) pass."""
    version = version or (bpf.ETH_P_IPV6 if packet[0] >> 4 == 6 else bpf.ETH_P_IP)
    facts = {bpf.ABOUT_PROTOCOL: version, bpf.ABOUT_PACKET_TYPE: kind}
    code = list(struct.iter_unpack("=HBBI", instructions))
    at = a = x = 0
    while True:
        opcode, true, false, k = code[at]
        at += 1
        if opcode == bpf.RETURN:
            return bool(k)
        if opcode in LOADS and k not in facts and is_short(opcode, packet, k, x):
            return False  # as the kernel does
        if opcode in PLACES:
            x = PLACES[opcode](a, k, packet)
        elif opcode in LOADS:
            a = facts[k] if k in facts else load(opcode, packet, k, x)
        elif opcode in CHANGES:
            a = CHANGES[opcode](a, k, x)
        else:
            tests = {
                bpf.EQUAL: a == k, bpf.GREATER: a > k, bpf.GREATER_EQUAL: a >= k,
                bpf.ANY_BIT: bool(a & k),
            }  # fmt: skip
            at += true if tests[opcode] else false


def is_short(opcode: int, packet: bytes, k: int, x: int) -> bool:
    return len(packet) < k + LOADS[opcode] + (x if opcode in AT_X else 0)


def load(opcode: int, packet: bytes, k: int, x: int) -> int:
    start = k + x if opcode in AT_X else k
    return int.from_bytes(packet[start : start + LOADS[opcode]], "big")


def packet(family: int, number: int, payload: bytes, *, options: int = 0, offset: int = 0) -> bytes:
    if family == 6:
        return struct.pack("!IHBB32x", 6 << 28, len(payload), number, 64) + payload
    header = struct.pack("!BBHHHBBH8x", 0x45 + options, 0, 0, 0, offset, 64, number, 0)
    return header + b"\0" * 4 * options + payload


def segment(sport: int, dport: int, flags: int = SYN, data: bytes = b"", options: int = 0) -> bytes:
    header = struct.pack("!HH8xBB6x", sport, dport, 0x50 + (options << 4), flags)
    return header + b"\1" * 4 * options + data


def datagram(sport: int, dport: int) -> bytes:
    return struct.pack("!HHHH", sport, dport, 8, 0)


FILTER = make_filter(PORTS, [IPIP], KEEP)


@pytest.mark.parametrize("kind", [HOST, bpf.PACKET_OUTGOING])
@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(
    ("flags", "taken"),
    [
        (SYN, True), (SYN_ACK, True), (RST, True), (RST | ACK, True), (SYN | 0xC0, True),
        (ACK, False), (ACK | 0x08, False), (FIN | ACK, False), (0, False),
    ],
)  # fmt: skip
def test_connections_begin_and_end_in_it(kind: int, family: int, flags: int, taken: bool) -> None:
    """SYNs, SYN-ACKs and resets of any port, coming and going; streams stay in the kernel."""
    assert takes(FILTER, packet(family, TCP, segment(61000, 9, flags)), kind) is taken


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("options", [0, 3])
@pytest.mark.parametrize(
    ("data", "taken"),
    [(MARK, True), (ANSWER_MAGIC, True), (b"GET / HTTP/1.1", False), (b"NET", False), (b"", False)],
)
def test_of_streams_only_the_nonces_are_taken(
    family: int, options: int, data: bytes, taken: bool
) -> None:
    """Whatever options the TCP header has; other programs' data stay in the kernel."""
    pushed = segment(61000, 9, ACK | 0x08, data, options)
    assert takes(FILTER, packet(family, TCP, pushed)) is taken


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(
    ("port", "taken"), [(6999, False), (7000, True), (7009, True), (7010, False), (7100, True)]
)
def test_datagrams_are_told_by_either_port(family: int, port: int, taken: bool) -> None:
    """Requests go to a port of the run, answers come from it."""
    assert takes(FILTER, packet(family, UDP, datagram(61000, port))) is taken
    assert takes(FILTER, packet(family, UDP, datagram(port, 61000))) is taken


def test_without_ports_there_are_no_datagrams() -> None:
    """A run of TCP alone takes none."""
    assert not takes(make_filter([], [], KEEP), packet(4, UDP, datagram(61000, 7000)))


@pytest.mark.parametrize(("family", "number"), [(4, ICMP), (6, ICMP6)])
def test_errors_and_echoes_are_taken(family: int, number: int) -> None:
    """Redirects, neighbour discovery, router advertisements and timestamps are not."""
    echoes = (0, 8) if family == 4 else (128, 129)
    wanted = {*echoes, *(ERRORS_4 if family == 4 else ERRORS_6)}

    for kind in range(256):
        some = packet(family, number, bytes([kind, 0, 0, 0]))
        assert takes(FILTER, some) is (kind in wanted)


@pytest.mark.parametrize("family", [4, 6])
def test_raw_protocols_are_told_by_their_number(family: int) -> None:
    """Those of the run, and no others."""
    assert takes(FILTER, packet(family, IPIP, bytes(20)))
    assert not takes(FILTER, packet(family, GRE, bytes(20)))


def test_frames_for_other_hosts_stay_out() -> None:
    """A device in promiscuous mode takes them in, and so does a bridge."""
    syn = packet(4, TCP, segment(61000, 7000))

    assert takes(FILTER, syn, HOST)
    assert not takes(FILTER, syn, bpf.PACKET_OTHERHOST)


@pytest.mark.parametrize("options", [1, 3, 5, 10])
def test_options_move_the_ports(options: int) -> None:
    """A header may be longer than 20 bytes."""
    assert takes(FILTER, packet(4, UDP, datagram(61000, 7000), options=options))
    assert not takes(FILTER, packet(4, UDP, datagram(61000, 6999), options=options))
    assert takes(FILTER, packet(4, TCP, segment(61000, 7000), options=options))
    assert not takes(FILTER, packet(4, TCP, segment(61000, 7000, ACK), options=options))


def test_later_fragments_stay_out() -> None:
    """Behind the first fragment there is no transport header at all."""
    assert takes(FILTER, packet(4, TCP, segment(61000, 7000), offset=0x2000))
    assert not takes(FILTER, packet(4, TCP, segment(61000, 7000), offset=185))


def test_no_other_protocol_of_the_link_is_taken() -> None:
    """ARP has no network header."""
    assert not takes(FILTER, packet(4, TCP, segment(61000, 7000)), version=0x0806)


@pytest.mark.parametrize("count", [MOST_RANGES, MOST_RANGES + 1, 500])
def test_many_ranges_become_fewer_that_hold_them_all(count: int) -> None:
    """The filter stays small enough for its jumps; what it takes too much, the reader drops."""
    ranges = [(1000 + 100 * number, 1000 + 100 * number + 3) for number in range(count)]
    # The two nearest ones are joined first.
    ranges[1] = (1010, 1013)
    program = make_filter(ranges, [IPIP, GRE], KEEP)

    assert len(program) // 8 <= 255
    for first, last in ranges:
        for port in (first, last):
            assert takes(program, packet(4, UDP, datagram(61000, port)))
    for port in (999, ranges[-1][1] + 1):
        assert not takes(program, packet(4, UDP, datagram(64999, port)))
    between = packet(4, UDP, datagram(64999, 1007))
    assert takes(program, between) is (count > MOST_RANGES)


def test_as_much_of_a_packet_is_kept_as_its_frame_holds() -> None:
    """The rest of a datagram is of no use."""
    *_, last = struct.iter_unpack("=HBBI", FILTER)
    assert last == (bpf.RETURN, 0, 0, KEEP)
