"""The recorder's rows: one packet or ICMP error each, in a few bytes."""

import array
import socket
import struct
from typing import List

# time in ns, kind, TTL, "it went out", device, source and destination port, number: of SYNs their
# first sequence number, of SYN-ACKs and resets the one that they answer, of nonces on connections
# and of echoes the order that they belong to, of datagrams the place of their payload.
ROW = struct.Struct("=QBB?xiHHI")
# A row in words of 4 bytes, and which of them is its number.
ROW_WORDS, NUMBER_AT = 6, 5
# time, type, code, TTL, "it went out", device, the quoted packet's protocol and destination port,
# the sender.
ERROR = struct.Struct("=QBBB?iBH16s")

# Kinds of rows.
SYN, SYN_ACK, RESET, DATAGRAM, ECHO_REQUEST, ECHO_REPLY, NONCE = range(7)
TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58


def list_numbers(rows: bytes) -> List[int]:
    """Give the numbers of all rows, much faster than row by row."""
    words = array.array("I", bytes(rows))
    return words[NUMBER_AT::ROW_WORDS].tolist()


def find_loopback() -> int:
    """Find the number of the loopback device; every network namespace has one."""
    return socket.if_nametoindex("lo")


def name_device(number: int) -> str:
    """Name a network device; one that is gone by then has its number for a name."""
    try:
        return socket.if_indextoname(number)
    except OSError:
        return str(number)
