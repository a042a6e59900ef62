"""A packet socket with a ring: the kernel puts the packets where this process reads them.

Sources: Documentation/networking/packet_mmap.rst and include/uapi/linux/if_packet.h of Linux.

The recorder's rows: one packet or ICMP error each, in a few bytes.
"""

import array
import mmap
import socket
import struct
from typing import Iterator, List, Tuple

from ..net.bpf import attach

SOL_PACKET = 263
PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 5, 6, 10
TPACKET_V2 = 1
ETH_P_ALL = 3

# Room for 65,536 packets: a scan at full speed for a third of a second, while nobody reads.
FRAME_BYTES = 256
BLOCK_BYTES = 1 << 16
RING_BYTES = 1 << 24
FRAMES = RING_BYTES // FRAME_BYTES

# The status of a frame is its first word of 32 bits; 0: the kernel may fill it.
FRAME_WORDS = FRAME_BYTES // 4
# struct tpacket2_hdr, then struct sockaddr_ll: seconds, nanoseconds, protocol (in network order),
# device, packet type.
_HEADER = struct.Struct("=16xII8x2x2si2xB")
# In a frame of TPACKET_V2 and SOCK_DGRAM the packet begins here.
PACKET_AT = 80
PACKET_BYTES = FRAME_BYTES - PACKET_AT

# time in ns of this host's clock, device number, packet type, "is IPv6", where the packet begins
Frame = Tuple[int, int, int, bool, int]

# time in ns, kind, TTL, "it went out", device, source and destination port, number: of SYNs their
# first sequence number, of SYN-ACKs and resets the one that they answer, of nonces on connections
# and of echoes the order that they belong to, of datagrams the place of their payload.
ROW = struct.Struct("=QBB?xiHHI")
TIME, KIND, TTL, OUT, DEVICE, SPORT, DPORT, NUMBER = range(8)
# A row in words of 4 bytes, and which of them is its number.
ROW_WORDS, NUMBER_AT = 6, 5
# time, type, code, TTL, "it went out", device, the quoted packet's protocol and destination port,
# the sender.
ERROR = struct.Struct("=QBBB?iBH16s")

# Kinds of rows.
SYN, SYN_ACK, RESET, DATAGRAM, ECHO_REQUEST, ECHO_REPLY, NONCE = range(7)
TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58


class PacketRing:
    """An open ring. Raises OSError where packet sockets are not permitted, or without memory."""

    def __init__(self, instructions: bytes) -> None:
        # It is bound to all devices from its beginning, because Python binds to named ones only.
        # What came in before the filter was there goes when the ring is made (packet_set_ring).
        protocol = socket.htons(ETH_P_ALL)
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, protocol)
        try:
            attach(self.sock, instructions)
            self.sock.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            blocks = RING_BYTES // BLOCK_BYTES
            wanted = struct.pack("=IIII", BLOCK_BYTES, blocks, FRAME_BYTES, FRAMES)
            self.sock.setsockopt(SOL_PACKET, PACKET_RX_RING, wanted)
            self._memory = mmap.mmap(self.sock.fileno(), RING_BYTES)
            self._words = memoryview(self._memory).cast("I")
            self.count_lost()
        except OSError:
            self.sock.close()
            raise
        self._next = 0

    def take_frames(self) -> bytes:
        """Copy the frames that there are up to the end of the ring, for ``read_frames``, and give
        them back to the kernel; empty: there are none."""
        count = 0
        for status in self._words[self._next * FRAME_WORDS :: FRAME_WORDS]:
            if not status & 1:
                break
            count += 1
        end = self._next + count
        data = self._memory[self._next * FRAME_BYTES : end * FRAME_BYTES]
        statuses = slice(self._next * FRAME_WORDS, end * FRAME_WORDS, FRAME_WORDS)
        self._words[statuses] = memoryview(bytes(4 * count)).cast("I")
        self._next = end % FRAMES
        return data

    def count_lost(self) -> int:
        """Tell how many packets the kernel had no room for since this was last asked."""
        counts = self.sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", counts)[1])

    def close(self) -> None:
        """Give the memory back."""
        self._words.release()
        self._memory.close()
        self.sock.close()


def read_frames(data: bytes) -> Iterator[Frame]:
    """Read the headers of copied frames."""
    read = _HEADER.unpack_from
    for at in range(0, len(data), FRAME_BYTES):
        seconds, nanoseconds, protocol, device, kind = read(data, at)
        time_ns = seconds * 1000000000 + nanoseconds
        yield time_ns, device, kind, protocol == b"\x86\xdd", at + PACKET_AT


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
