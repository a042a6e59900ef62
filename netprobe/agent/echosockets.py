"""The sockets that echo orders share: one a family, interface and source address."""

import socket
import struct
from itertools import count, repeat
from operator import itemgetter
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

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
# who was asked, what the packet carries, whose it is, when it went
Flight = Tuple[bytes, bytes, Sweep, int, float]
# a packet's TTL, who sent it, its ICMP type, sequence number and payload
Heard = Tuple[Optional[int], bytes, int, int, bytes]

# What of a packet tells its reply from any other: nonce and token.
_CARRIED = slice(HEADER_BYTES, HEADER_BYTES + PAYLOAD_BYTES)
_ICMP = struct.Struct(">B5xH%ds" % PAYLOAD_BYTES)
# The same behind an IPv4 header without options, which begins with this byte.
_IP_HEADER_BYTES = 20
_IP_ICMP = struct.Struct(">8xB3x4s4xB5xH%ds" % PAYLOAD_BYTES)
_NO_OPTIONS = 0x45


class Shared:
    """A socket and how many orders use it; ``flights`` finds a packet by its sequence number."""

    def __init__(self, opened):
        # type: (EchoSocket) -> None
        self.sock, kind, self.number = opened
        raw = kind == RAW and self.sock.family == socket.AF_INET
        # Reads all there is; False where it ended at an error.
        self.hear = self._hear_raw if raw else self._hear  # type: Callable[[List[Heard]], bool]
        self.users = 0
        self.flights = {}  # type: Dict[int, Flight]
        self._next = 0

    def numbers(self, many):
        # type: (int) -> int
        """The first of so many sequence numbers in a row."""
        first = self._next if self._next + many <= 1 << 16 else 0
        self._next = first + many
        return first

    def note(self, sweep, first, places, packets, times):
        # type: (Sweep, int, Sequence[int], Sequence[bytes], Sequence[float]) -> None
        """Know the answers to these packets, numbered from ``first``, that went at these times."""
        senders = map(sweep.packed.__getitem__, places)
        carried = map(itemgetter(_CARRIED), packets)
        self.flights.update(zip(count(first), zip(senders, carried, repeat(sweep), places, times)))

    def _hear_raw(self, heard):
        # type: (List[Heard]) -> bool
        """A raw IPv4 socket passes the header on, which has the sender and the TTL."""
        receive, unpack, add = self.sock.recv, _IP_ICMP.unpack_from, heard.append
        try:
            while True:
                data = receive(HEARD_BYTES)
                if data[0] != _NO_OPTIONS:
                    data = data[:_IP_HEADER_BYTES] + data[(data[0] & 15) * 4 :]
                if len(data) >= _IP_ICMP.size:
                    add(unpack(data))
        except BlockingIOError:
            return True
        except OSError:
            return False

    def _hear(self, heard):
        # type: (List[Heard]) -> bool
        family, receive = self.sock.family, self.sock.recvmsg
        beside, ttl = [], None  # type: List[Tuple[int, int, bytes]], Optional[int]
        try:
            while True:
                data, ancillary, _, name = receive(HEARD_BYTES, ANCILLARY_BYTES)
                if len(data) >= _ICMP.size:
                    if ancillary != beside:
                        # Mostly it says the same as that of the packet before.
                        beside, ttl = ancillary, ttl_of(ancillary)
                    sender = socket.inet_pton(family, name[0].partition("%")[0])
                    kind, sequence, payload = _ICMP.unpack_from(data)
                    heard.append((ttl, sender, kind, sequence, payload))
        except BlockingIOError:
            return True
        except OSError:
            return False


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
