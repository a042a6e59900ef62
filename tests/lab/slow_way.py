"""A way that delays: two tun devices, and a program that carries packets over after a while.

Usage: python slow_way.py MILLISECONDS OTHER_NETNS, within the namespace of the first device.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x1, 0x1000
CLONE_NEWNET = 0x40000000


def open_tun() -> int:
    """A device ``way`` in the namespace of this process."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("=16sH14x", b"way", IFF_TUN | IFF_NO_PI))
    return tun


def main() -> None:
    """Carry packets until the process is ended; none waits for less than it should."""
    delay_s = int(sys.argv[1]) / 1000
    first = open_tun()
    namespace = os.open(f"/run/netns/{sys.argv[2]}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    second = open_tun()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    waiting: deque[tuple[float, int, bytes]] = deque()
    while True:
        rest_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for tun in select.select([first, second], [], [], rest_s)[0]:
            other = second if tun == first else first
            packet = os.read(tun, 70000)
            waiting.append((time.monotonic() + delay_s, other, packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, tun, packet = waiting.popleft()
            with contextlib.suppress(OSError):  # the other end is not up yet
                os.write(tun, packet)


if __name__ == "__main__":
    main()
