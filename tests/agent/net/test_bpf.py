"""The capture's filter, run by a small machine for classic BPF over packets made by hand."""

from __future__ import annotations

import socket
import struct

import pytest

from netprobe.agent.net import bpf
from netprobe.agent.net.bpf import Wanted, program

TCP, UDP, ICMP, ICMP6, IPIP = 6, 17, 1, 58, 4
SYN, SYN_ACK, RST = 0x02, 0x12, 0x04
PORTS = [(7000, 7009), (7100, 7100)]


def takes(instructions: bytes, packet: bytes, kind: int = bpf.PACKET_HOST) -> bool:
    """Whether the filter lets a packet (from its network header on) pass."""
    version = bpf.ETH_P_IPV6 if packet[0] >> 4 == 6 else bpf.ETH_P_IP
    facts = {bpf.ABOUT_PROTOCOL: version, bpf.ABOUT_PACKET_TYPE: kind}
    code = list(struct.iter_unpack("=HBBI", instructions))
    at = a = x = 0
    while True:
        opcode, true, false, k = code[at]
        at += 1
        if opcode == bpf.RETURN:
            return bool(k)
        if opcode == bpf.LDX_CONSTANT:
            x = k
        elif opcode == bpf.LDX_IP_HEADER:
            x = (packet[k] & 15) * 4
        elif opcode == bpf.AND:
            a &= k
        elif opcode in (bpf.LD_WORD, bpf.LD_BYTE, bpf.LD_HALF, bpf.LD_HALF_AT_X, bpf.LD_BYTE_AT_X):
            a = facts[k] if k in facts else load(opcode, packet, k, x)
        else:
            tests = {
                bpf.EQUAL: a == k, bpf.GREATER: a > k, bpf.GREATER_EQUAL: a >= k,
                bpf.ANY_BIT: bool(a & k),
            }  # fmt: skip
            at += true if tests[opcode] else false


def load(opcode: int, packet: bytes, k: int, x: int) -> int:
    start = k + x if opcode in (bpf.LD_HALF_AT_X, bpf.LD_BYTE_AT_X) else k
    size = 1 if opcode in (bpf.LD_BYTE, bpf.LD_BYTE_AT_X) else 2
    return int.from_bytes(packet[start : start + size], "big")


def packet(family: int, number: int, payload: bytes, *, options: int = 0, offset: int = 0) -> bytes:
    if family == 6:
        return struct.pack("!IHBB32x", 6 << 28, len(payload), number, 64) + payload
    header = struct.pack("!BBHHHBBH8x", 0x45 + options, 0, 0, 0, offset, 64, number, 0)
    return header + b"\0" * 4 * options + payload


def segment(sport: int, dport: int, flags: int = SYN) -> bytes:
    return struct.pack("!HH8xBB6x", sport, dport, 0x50, flags)


def wanted(proto: str, *, answers: bool = False, outgoing: bool = False, **rest: int) -> bytes:
    ports = [] if proto in ("icmp", "ipproto") else PORTS
    return program(Wanted(proto, rest.get("number"), ports, answers, outgoing))


@pytest.mark.parametrize("family", [4, 6])
def test_syns_are_requests_and_syn_acks_and_resets_are_answers(family: int) -> None:
    """Each by the port that was asked, to its ends."""
    requests, answers = wanted("tcp"), wanted("tcp", answers=True)

    for port, inside in ((6999, False), (7000, True), (7100, True), (7101, False)):
        syn = packet(family, TCP, segment(61000, port, SYN))
        assert takes(requests, syn) is inside
        assert not takes(answers, syn)
        for flags in (SYN_ACK, RST, RST | 0x10):
            answer = packet(family, TCP, segment(port, 61000, flags))
            assert takes(answers, answer) is inside
            assert not takes(requests, answer)
    assert not takes(requests, packet(family, TCP, segment(61000, 7000, 0x10)))


@pytest.mark.parametrize("family", [4, 6])
def test_a_protocol_is_not_another(family: int) -> None:
    """UDP on the same ports is no TCP, and echo is told by its type."""
    datagram = packet(family, UDP, struct.pack("!HHHH", 61000, 7000, 8, 0))
    numbers = (ICMP, 8, 0) if family == 4 else (ICMP6, 128, 129)
    request, reply = (packet(family, numbers[0], bytes([kind, 0, 0, 0])) for kind in numbers[1:])

    assert takes(wanted("udp"), datagram)
    assert not takes(wanted("tcp"), datagram)
    assert takes(wanted("icmp"), request)
    assert not takes(wanted("icmp"), reply)
    assert takes(wanted("icmp", answers=True), reply)
    tunnel = packet(family, IPIP, b"\0" * 20)
    assert takes(wanted("ipproto", number=IPIP), tunnel)
    assert not takes(wanted("ipproto", number=socket.IPPROTO_GRE), tunnel)


def test_what_is_sent_and_what_is_received_are_apart() -> None:
    """The kernel says of each packet which it is."""
    syn = packet(4, TCP, segment(61000, 7000))

    assert takes(wanted("tcp", outgoing=True), syn, bpf.PACKET_OUTGOING)
    assert not takes(wanted("tcp", outgoing=True), syn)
    assert not takes(wanted("tcp"), syn, bpf.PACKET_OUTGOING)


def test_options_move_the_ports_and_later_fragments_have_none() -> None:
    """A header may be longer than 20 bytes; behind the first fragment there is no header at all."""
    assert takes(wanted("tcp"), packet(4, TCP, segment(61000, 7000), options=3))
    assert not takes(wanted("tcp"), packet(4, TCP, segment(61000, 7000), offset=185))
