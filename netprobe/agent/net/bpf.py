"""Classic BPF: the words of a packet filter, put together and given to a socket."""

import array
import socket
import struct
from typing import Dict, List, Optional, Tuple, Union

SO_ATTACH_FILTER = 26

LD_WORD, LD_BYTE = 0x20, 0x30
LD_HALF, LD_HALF_AT_X, LD_BYTE_AT_X, LD_WORD_AT_X = 0x28, 0x48, 0x50, 0x40
LDX_CONSTANT, LDX_IP_HEADER = 0x01, 0xB1
RETURN = 0x06
EQUAL, GREATER, GREATER_EQUAL, ANY_BIT = 0x15, 0x25, 0x35, 0x45
# What changes the loaded value, and the last one adds it to the place that "at X" means.
AND, SHIFT_RIGHT, ADD_X, TO_X = 0x54, 0x74, 0x0C, 0x07

# Offsets that mean facts about the packet instead of its bytes (linux/filter.h).
ABOUT_PROTOCOL = 0xFFFFF000
ABOUT_PACKET_TYPE = 0xFFFFF000 + 4

PACKET_OTHERHOST, PACKET_OUTGOING = 3, 4
ETH_P_IP, ETH_P_IPV6 = 0x0800, 0x86DD
IPV6_HEADER = 40
SYN, RST, PSH, ACK = 0x02, 0x04, 0x08, 0x10

# (opcode, constant, where to go if true, if false; None: to the next instruction), or a label,
# which has a name in place of the opcode.
FilterStep = Tuple[Union[int, str], int, Optional[str], Optional[str]]


def assemble_program(steps: List[FilterStep]) -> bytes:
    """Give the program's bytes: labels become distances. Raises struct.error above 255 steps."""
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
