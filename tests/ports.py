"""Ports of this machine that only one test process uses at a time.

A socket with an abstract name is the lock: it belongs to the network namespace, as ports do, and
goes with its process. Nobody else is given them: neither another test process, nor a client (whose
ports Linux takes from 32768 up), as happens to a port that "was free a moment ago".
"""

from __future__ import annotations

import functools
import itertools
import os
import socket
from typing import NamedTuple

from tests.open_files import keeping_files


class Grid(NamedTuple):
    """Blocks of ports, one behind the other; a process has one of them at most."""

    first: int
    size: int
    blocks: int


# Most test processes want few ports. Enough for several suites side by side on one machine.
GRIDS = (Grid(4_000, 100, 60), Grid(10_000, 300, 24), Grid(17_200, 700, 20))
# Tests in a row get other ports: what one of them left behind is no matter for the next.
STEP = 37
_PLACES = itertools.count(0, STEP)


def free_port(address: str = "127.0.0.1", kind: int = socket.SOCK_STREAM) -> int:
    """Give a port that no other test process uses; nor is the next one used."""
    return free_ports(address, kind, 2)


def free_ports(address: str, kind: int, count: int) -> int:
    """Give the first of ``count`` neighbouring ports that no other test process uses."""
    # In a block of few more ports, one that is not free yet would leave no room.
    grid = next((one for one in GRIDS if 3 * count <= one.size), GRIDS[-1])
    block = _own_block(grid)
    for place in itertools.islice(_PLACES, grid.size):
        first = block + place % (grid.size - count + 1)
        if are_free(address, kind, range(first, first + count)):
            return first
    raise AssertionError("no free ports")


def are_free(address: str, kind: int, ports: range) -> bool:
    """Tell whether nobody uses these ports, at any address of both families."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    socks = [socket.socket(family, kind) for _ in ports]
    try:
        for sock, port in zip(socks, ports, strict=True):
            # An agent binds it at all addresses. A connection that was just closed still holds it.
            sock.bind(("", port))
    except OSError:
        return False
    finally:
        for sock in socks:
            sock.close()
    return True


def _own_block(grid: Grid) -> int:
    # In the namespace of a lab nobody else is.
    return _lock_block(grid) if _find_namespace() == _HOME else grid.first


def _find_namespace() -> int:
    return os.stat("/proc/thread-self/ns/net").st_ino


@functools.cache
def _lock_block(grid: Grid) -> int:
    for first in range(grid.first, grid.first + grid.size * grid.blocks, grid.size):
        with keeping_files():
            lock = _try_lock(f"ports-{first}")
        if lock is not None:
            _LOCKS.append(lock)
            return first
    raise AssertionError(f"{grid.blocks} test processes use ports already")


def _try_lock(name: str) -> socket.socket | None:
    lock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0netprobe-tests-{name}")
    except OSError:
        lock.close()
        return None
    return lock


_LOCKS: list[socket.socket] = []
_HOME = _find_namespace()
