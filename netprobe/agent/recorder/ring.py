"""A packet socket with a ring: the kernel puts the packets where this process reads them.

Sources: Documentation/networking/packet_mmap.rst and include/uapi/linux/if_packet.h of Linux.
"""

import mmap
import socket
import struct
from typing import Iterator, Tuple

from ..net.bpf import attach

SOL_PACKET = 263
PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 5, 6, 10
TPACKET_V2 = 1
ETH_P_ALL = 3
STATUS_KERNEL = b"\0\0\0\0"

# Room for 65,536 packets: a scan at full speed for a third of a second, while nobody reads.
FRAME_BYTES = 256
BLOCK_BYTES = 1 << 16
RING_BYTES = 1 << 24
FRAMES = RING_BYTES // FRAME_BYTES

# struct tpacket2_hdr, then struct sockaddr_ll: status, length kept, seconds, nanoseconds,
# protocol (in network order), device, packet type.
_HEADER = struct.Struct("=I4xI4xII8x2x2si2xB")
# In a frame of TPACKET_V2 and SOCK_DGRAM the packet begins here.
PACKET_AT = 80
PACKET_BYTES = FRAME_BYTES - PACKET_AT

# time in ns of this host's clock, device number, packet type, "is IPv6", where the packet begins
Frame = Tuple[int, int, int, bool, int]


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
            self.memory = mmap.mmap(self.sock.fileno(), RING_BYTES)
            self.count_lost()
        except OSError:
            self.sock.close()
            raise
        self._next = 0

    def take_frames(self) -> Iterator[Frame]:
        """Give the frames that there are; each belongs to the caller until the next is asked for.

        Ends after one turn of the ring at most.
        """
        memory = self.memory
        read, size = _HEADER.unpack_from, FRAME_BYTES
        for _ in range(FRAMES):
            at = self._next * size
            status, _kept, seconds, nanoseconds, protocol, device, kind = read(memory, at)
            if not status & 1:
                return
            yield (
                seconds * 1000000000 + nanoseconds,
                device,
                kind,
                protocol == b"\x86\xdd",
                at + PACKET_AT,
            )
            memory[at : at + 4] = STATUS_KERNEL
            self._next = (self._next + 1) % FRAMES

    def count_lost(self) -> int:
        """Tell how many packets the kernel had no room for since this was last asked."""
        counts = self.sock.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)
        return int(struct.unpack("=II", counts)[1])

    def close(self) -> None:
        """Give the memory back."""
        self.memory.close()
        self.sock.close()
