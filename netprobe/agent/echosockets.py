"""The sockets that echo orders share: one a family, interface and source address."""

import socket
from typing import Any, Callable, Dict, Optional, Tuple

from .errqueue import ttl_of
from .icmp import HEADER_BYTES, RAW, EchoSocket, open_echo
from .loop import READ
from .sockets import forbid_fragments, widen
from .sweep import PAYLOAD_BYTES, Sweep

# An IPv4 header with options, an ICMP header, and what of the payload tells a reply from another.
HEARD_BYTES = 60 + HEADER_BYTES + PAYLOAD_BYTES
ANCILLARY_BYTES = 64
# A raw socket takes the kernel milliseconds to close: orders that follow each other share one.
IDLE_S = 1.0

Key = Tuple[int, Optional[str], int, bool]
# whose packet, when it went, and what it carries
Flight = Tuple[Sweep, int, float, bytes]
# a packet, where its ICMP header is, who sent it, its TTL
Heard = Tuple[bytes, int, bytes, Optional[int]]


class Shared:
    """A socket and how many orders use it; ``flights`` finds a packet by its sequence number."""

    def __init__(self, opened):
        # type: (EchoSocket) -> None
        self.sock, kind, self.number = opened
        raw = kind == RAW and self.sock.family == socket.AF_INET
        self.hear = self._hear_raw if raw else self._hear  # type: Callable[[], Heard]
        self.users = 0
        self.flights = {}  # type: Dict[int, Flight]
        self.next = 0

    def _hear_raw(self):
        # type: () -> Heard
        """A raw IPv4 socket passes the header on, which has the sender and the TTL."""
        data = self.sock.recv(HEARD_BYTES)
        return data, (data[0] & 15) * 4, data[12:16], data[8]

    def _hear(self):
        # type: () -> Heard
        data, ancillary, _, name = self.sock.recvmsg(HEARD_BYTES, ANCILLARY_BYTES)
        sender = socket.inet_pton(self.sock.family, name[0].partition("%")[0])
        return data, 0, sender, ttl_of(ancillary)


class Sockets:
    """Opens them when they are needed; ``ready(shared)`` is called when one has something."""

    def __init__(self, loop, ready):
        # type: (Any, Callable[[Shared], None]) -> None
        self._loop = loop
        self._ready = ready
        self._shared = {}  # type: Dict[Key, Shared]

    def all(self):
        # type: () -> Tuple[Shared, ...]
        """Every one that is open."""
        return tuple(self._shared.values())

    def share(self, sweep):
        # type: (Sweep) -> None
        """Give an order its share. Raises OSError."""
        key = _key(sweep)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = Shared(open_echo(sweep.target))
            widen(shared.sock)
            if sweep.size is not None:
                forbid_fragments(shared.sock)
            opened = shared
            self._loop.watch(shared.sock.fileno(), READ, lambda events: self._ready(opened))
        shared.users += 1
        sweep.shared = shared

    def release(self, sweep):
        # type: (Sweep) -> None
        """The order needs it no more; it may have had none."""
        shared, sweep.shared = sweep.shared, None
        if shared is None:
            return
        shared.users -= 1
        if not shared.users:
            key = _key(sweep)
            self._loop.call_later(IDLE_S, lambda: self._close_idle(key))

    def close(self):
        # type: () -> None
        """Close all."""
        for key in list(self._shared):
            self._close(key)

    def _close_idle(self, key):
        # type: (Key) -> None
        shared = self._shared.get(key)
        if shared is not None and not shared.users:
            self._close(key)

    def _close(self, key):
        # type: (Key) -> None
        shared = self._shared.pop(key)
        self._loop.unwatch(shared.sock.fileno())
        shared.sock.close()


def _key(sweep):
    # type: (Sweep) -> Key
    target = sweep.target
    return (target.family, target.source, target.scope, sweep.size is not None)
