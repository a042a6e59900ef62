"""Ports of this machine that only one test process uses at a time.

A socket with an abstract name is the lock: it belongs to the network namespace, as ports do, and
goes with its process.
"""

from __future__ import annotations

import functools
import socket

# Below the ports that Linux gives to clients (32768 and up), so that no client is in the way.
FIRST, SIZE, BLOCKS = 20_000, 1_000, 12


def free_ports(address: str, kind: int, count: int) -> int:
    """Give the first of ``count`` neighbouring ports that no other test process uses."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    begin = _own_block()
    for first in range(begin, begin + SIZE - count, 97):
        socks = [socket.socket(family, kind) for _ in range(count)]
        try:
            for number, sock in enumerate(socks):
                sock.bind((address, first + number))
            return first
        except OSError:
            continue
        finally:
            for sock in socks:
                sock.close()
    raise AssertionError("no free ports")


@functools.cache
def _own_block() -> int:
    for number in range(BLOCKS):
        lock = _try_lock(f"ports-{number}")
        if lock is not None:
            _LOCKS.append(lock)
            return FIRST + number * SIZE
    raise AssertionError(f"{BLOCKS} test processes use ports already")


def _try_lock(name: str) -> socket.socket | None:
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0netprobe-tests-{name}")
    except OSError:
        lock.close()
        return None
    return lock


_LOCKS: list[socket.socket] = []
