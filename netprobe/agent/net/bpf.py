"""Classic BPF: the coarse part of a capture; a busy host's other packets stay in the kernel."""

import array
import socket
import struct
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

from ..wire.parts import Ranges

SO_ATTACH_FILTER = 26

LD_WORD, LD_BYTE = 0x20, 0x30
LD_HALF, LD_HALF_AT_X, LD_BYTE_AT_X = 0x28, 0x48, 0x50
LDX_CONSTANT, LDX_IP_HEADER = 0x01, 0xB1
AND, RETURN = 0x54, 0x06
EQUAL, GREATER, GREATER_EQUAL, ANY_BIT = 0x15, 0x25, 0x35, 0x45

# Offsets that mean facts about the packet instead of its bytes (linux/filter.h).
ABOUT_PROTOCOL = 0xFFFFF000
ABOUT_PACKET_TYPE = 0xFFFFF000 + 4

PACKET_HOST, PACKET_OUTGOING = 0, 4
ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86DD
IPV6_HEADER = 40
SYN, RST, ACK = 0x02, 0x04, 0x10
ECHO_REQUEST, ECHO_REQUEST_V6 = 8, 128
ECHO_REPLY, ECHO_REPLY_V6 = 0, 129
WHOLE_PACKET = 0xFFFF

# (opcode, constant, where to go if true, if false; None: to the next instruction), or a label,
# which has a name in place of the opcode.
FilterStep = Tuple[Union[int, str], int, Optional[str], Optional[str]]


class Wanted(NamedTuple):
    """What a capture is about.

    Requests are SYNs, datagrams, echo requests or packets of protocol N, told by their destination
    port; ``answers`` are SYN-ACKs, datagrams or echo replies, told by their source port. Received
    packets, or those that this host sends (``outgoing``).
    """

    proto: str
    number: Optional[int]
    ports: Ranges
    answers: bool
    outgoing: bool


def program(wanted: Wanted) -> bytes:
    """Give the filter. The packet starts at its network header (SOCK_DGRAM).

    Ports are held against their outermost ends only; the exact look is Python's.
    """
    v4, v6 = _list_numbers(wanted.proto, wanted.number)
    steps: List[FilterStep] = [
        (LD_WORD, ABOUT_PACKET_TYPE, None, None),
        (EQUAL, PACKET_OUTGOING if wanted.outgoing else PACKET_HOST, None, "no"),
        (LD_WORD, ABOUT_PROTOCOL, None, None),
        (EQUAL, ETH_P_IPV6, "v6", None),
        (EQUAL, ETH_P_IP, None, "no"),
        (LD_BYTE, 9, None, None),
        (EQUAL, v4, None, "no"),
        (LD_HALF, 6, None, None),
        (ANY_BIT, 0x1FFF, "no", None),
        (LDX_IP_HEADER, 0, None, None),
        # Always true: the only jump that all kernels and both branches share.
        (GREATER_EQUAL, 0, "transport", None),
        ("v6", 0, None, None),
        (LD_BYTE, 6, None, None),
        (EQUAL, v6, None, "no"),
        (LDX_CONSTANT, IPV6_HEADER, None, None),
        ("transport", 0, None, None),
    ]
    steps += _match_transport(wanted)
    steps += [(RETURN, WHOLE_PACKET, None, None), ("no", 0, None, None), (RETURN, 0, None, None)]
    return assemble_program(steps)


def _list_numbers(proto: str, number: Optional[int]) -> Tuple[int, int]:
    if proto == "icmp":
        return socket.IPPROTO_ICMP, socket.IPPROTO_ICMPV6
    known = {"tcp": socket.IPPROTO_TCP, "udp": socket.IPPROTO_UDP, "ipproto": number or 0}[proto]
    return known, known


def _match_transport(wanted: Wanted) -> List[FilterStep]:
    steps: List[FilterStep] = []
    if wanted.proto == "icmp":
        steps = [
            (LD_BYTE_AT_X, 0, None, None),
            (EQUAL, ECHO_REPLY if wanted.answers else ECHO_REQUEST, "echo", None),
            (EQUAL, ECHO_REPLY_V6 if wanted.answers else ECHO_REQUEST_V6, None, "no"),
            ("echo", 0, None, None),
        ]
    if wanted.proto == "tcp":
        steps = [
            (LD_BYTE_AT_X, 13, None, None),
            # A closed port answers with a reset.
            (ANY_BIT, RST if wanted.answers else 0, "tcp", None),
            (AND, SYN | ACK, None, None),
            (EQUAL, SYN | ACK if wanted.answers else SYN, None, "no"),
            ("tcp", 0, None, None),
        ]
    if wanted.ports:
        steps += [
            (LD_HALF_AT_X, 0 if wanted.answers else 2, None, None),
            (GREATER_EQUAL, min(first for first, _last in wanted.ports), None, "no"),
            (GREATER, max(last for _first, last in wanted.ports), "no", None),
        ]
    return steps


def assemble_program(steps: List[FilterStep]) -> bytes:
    places: Dict[str, int] = {}
    code: List[FilterStep] = []
    for step in steps:
        if isinstance(step[0], str):
            places[step[0]] = len(code)
        else:
            code.append(step)
    out = b""
    for at, (opcode, constant, true, false) in enumerate(code):
        jumps = [places[to] - at - 1 if to is not None else 0 for to in (true, false)]
        out += struct.pack("=HBBI", opcode, jumps[0], jumps[1], constant)
    return out


def attach(sock: socket.socket, instructions: bytes) -> None:
    """Put a filter on a socket; the kernel copies it, so the array need not live longer."""
    memory = array.array("B", instructions)
    address, length = memory.buffer_info()
    sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", length // 8, address))
