"""A network card that forgets checksums: two tun devices, and a program that carries frames over.

The kernel leaves the checksum of a packet to the device (``VIRTIO_NET_HDR_F_NEEDS_CSUM``). This
program finishes it, as a card does; of IPv4 packets of the first device it leaves out those whose
checksum lies inside of a tunnel, if it is ``bad``.

Usage: python bad_card.py good|bad OTHER_NETNS, within the namespace of the first device.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys

TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x1, 0x1000, 0x4000
TUN_F_CSUM = 1
NEEDS_CSUM = 1
HEADER = struct.Struct("=BBHHHH")
CLONE_NEWNET = 0x40000000


def open_tun() -> int:
    """A device ``card`` in the namespace of this process, to which checksums are left."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("=16sH14x", b"card", flags))
    fcntl.ioctl(tun, TUNSETOFFLOAD, TUN_F_CSUM)
    return tun


def carry(frame: bytes, forgets: bool) -> bytes:
    """The frame as it leaves the card."""
    flags, _kind, _length, _size, start, offset = HEADER.unpack_from(frame)
    packet = bytearray(frame[HEADER.size :])
    outer = 20 if packet[0] >> 4 == 4 else 40
    inside = start > outer
    if flags & NEEDS_CSUM and not (forgets and inside and outer == 20):
        data = bytes(packet[start:]) + b"\0" * ((len(packet) - start) % 2)
        total = sum(struct.unpack(f">{len(data) // 2}H", data))
        while total >> 16:
            total = (total & 0xFFFF) + (total >> 16)
        struct.pack_into(">H", packet, start + offset, ~total & 0xFFFF or 0xFFFF)
    return HEADER.pack(0, 0, 0, 0, 0, 0) + bytes(packet)


def main() -> None:
    """Carry frames until the process is ended."""
    kind, other = sys.argv[1:]
    first = open_tun()
    namespace = os.open(f"/run/netns/{other}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    second = open_tun()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for tun in select.select([first, second], [], [])[0]:
            frame = os.read(tun, 70000)
            bad = kind == "bad" and tun == first
            with contextlib.suppress(OSError):  # the other end is not up yet
                os.write(second if tun == first else first, carry(frame, bad))


if __name__ == "__main__":
    main()
