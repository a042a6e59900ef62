"""What the recorder wants to see: the beginnings and ends of connections, the nonces on them,
errors, echoes, and the datagrams of the run's ports. Other traffic stays in the kernel."""

import socket
from typing import List, Sequence

from ..net.bpf import (
    ABOUT_PACKET_TYPE,
    ABOUT_PROTOCOL,
    ADD_X,
    AND,
    ANY_BIT,
    EQUAL,
    ETH_P_IP,
    ETH_P_IPV6,
    GREATER,
    GREATER_EQUAL,
    IPV6_HEADER,
    LD_BYTE,
    LD_BYTE_AT_X,
    LD_HALF,
    LD_HALF_AT_X,
    LD_WORD,
    LD_WORD_AT_X,
    LDX_CONSTANT,
    LDX_IP_HEADER,
    PACKET_OTHERHOST,
    PSH,
    RETURN,
    RST,
    SHIFT_RIGHT,
    SYN,
    TO_X,
    FilterStep,
    assemble_program,
)
from ..wire.parts import Ranges

# Unreachable, source quench is no more, time exceeded, parameter problem; echoes.
ERRORS_4, ERRORS_6 = (3, 11, 12), (1, 2, 3, 4)
ECHOES_4, ECHOES_6 = (0, 8), (128, 129)
# What requests and answers with a nonce begin with (netprobe/protocols/packets/plain.py).
MAGIC = 0x4E455450
# A filter compares one range after the other, for each datagram of the host.
MOST_RANGES = 32


def make_filter(datagrams: Ranges, numbers: Sequence[int], keep_bytes: int) -> bytes:
    """Give the filter's program. ``datagrams``: the run's UDP ports; ``numbers``: its IP protocols.

    It keeps the first bytes of a packet, from its network header (SOCK_DGRAM).
    """
    steps: List[FilterStep] = [
        (LD_WORD, ABOUT_PACKET_TYPE, None, None),
        # A device in promiscuous mode takes in frames for other hosts.
        (EQUAL, PACKET_OTHERHOST, "no", None),
        (LD_WORD, ABOUT_PROTOCOL, None, None),
        (EQUAL, ETH_P_IPV6, "v6", None),
        (EQUAL, ETH_P_IP, None, "no"),
        # A later fragment has no transport header.
        (LD_HALF, 6, None, None),
        (ANY_BIT, 0x1FFF, "no", None),
        (LDX_IP_HEADER, 0, None, None),
        (LD_BYTE, 9, None, None),
        (EQUAL, socket.IPPROTO_ICMP, "icmp4", "protocol"),
        ("v6", 0, None, None),
        (LDX_CONSTANT, IPV6_HEADER, None, None),
        (LD_BYTE, 6, None, None),
        (EQUAL, socket.IPPROTO_ICMPV6, "icmp6", None),
        ("protocol", 0, None, None),
        (EQUAL, socket.IPPROTO_TCP, "tcp", None),
        (EQUAL, socket.IPPROTO_UDP, "udp", None),
    ]
    steps += [(EQUAL, number, "yes", None) for number in numbers]
    steps += [(GREATER_EQUAL, 0, "no", None), ("tcp", 0, None, None)]
    steps += [(LD_BYTE_AT_X, 13, None, None), (ANY_BIT, SYN | RST, "yes", None)]
    # The data begins where the header's upper half byte says, in words.
    steps += [(ANY_BIT, PSH, None, "no"), (LD_BYTE_AT_X, 12, None, None)]
    steps += [(AND, 0xF0, None, None), (SHIFT_RIGHT, 2, None, None), (ADD_X, 0, None, None)]
    steps += [(TO_X, 0, None, None), (LD_WORD_AT_X, 0, None, None), (EQUAL, MAGIC, "yes", "no")]
    for label, kinds in (("icmp4", ERRORS_4 + ECHOES_4), ("icmp6", ERRORS_6 + ECHOES_6)):
        steps += [(label, 0, None, None), (LD_BYTE_AT_X, 0, None, None)]
        steps += [(EQUAL, kind, "yes", None) for kind in kinds]
        steps.append((GREATER_EQUAL, 0, "no", None))
    steps.append(("udp", 0, None, None))
    for offset in (0, 2):
        steps.append((LD_HALF_AT_X, offset, None, None))
        for number, (first, last) in enumerate(_merge_ranges(datagrams)):
            after = "after %d %d" % (offset, number)
            steps += [
                (GREATER_EQUAL, first, None, after),
                (GREATER, last, None, "yes"),
                (after, 0, None, None),
            ]
    steps += [("no", 0, None, None), (RETURN, 0, None, None)]
    steps += [("yes", 0, None, None), (RETURN, keep_bytes, None, None)]
    return assemble_program(steps)


def _merge_ranges(ranges: Ranges) -> Ranges:
    """Give at most MOST_RANGES ranges that hold all of these; the smallest gaps go first."""
    merged = sorted(ranges)
    while len(merged) > MOST_RANGES:
        gaps = [merged[at + 1][0] - merged[at][1] for at in range(len(merged) - 1)]
        at = gaps.index(min(gaps))
        merged[at : at + 2] = [(merged[at][0], max(merged[at][1], merged[at + 1][1]))]
    return merged
