"""The sockets that echo orders share: one a family, interface and source address."""

import socket
import struct
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ...core.loop import READ
from ...net.errqueue import ttl_of
from ...net.icmp import HEADER_BYTES, RAW, EchoSocket, open_echo
from ...net.sockets import forbid_fragments, widen
from .orders import PAYLOAD_BYTES, Sweep, Volley

# An IPv4 header with options, an ICMP header, and what of the payload tells a reply from another.
HEARD_BYTES = 60 + HEADER_BYTES + PAYLOAD_BYTES
ANCILLARY_BYTES = 64
# For fewer destinations it does not pay to load what serves many in one system call.
MANY = 1024
# How many such a call serves: they go about as fast as half as many by themselves.
WIDE_CHUNK = 64
# A raw socket takes the kernel milliseconds to close: orders that follow each other share one.
IDLE_S = 1.0

Key = Tuple[int, Optional[str], int, bool, bool]
# a packet's TTL, who sent it, its ICMP type, sequence number and payload
Heard = Tuple[Optional[int], bytes, int, int, bytes]

_ICMP = struct.Struct(">B5xH%ds" % PAYLOAD_BYTES)
# The same behind an IPv4 header without options, which begins with this byte.
_IP_HEADER_BYTES = 20
_IP_ICMP = struct.Struct(">8xB3x4s4xB5xH%ds" % PAYLOAD_BYTES)
_NO_OPTIONS = 0x45


class Shared:
    """A socket and how many orders use it; it knows its packets by their sequence numbers."""

    def __init__(self, opened: EchoSocket, many: bool) -> None:
        self.sock, kind, self.number = opened
        raw = kind == RAW and self.sock.family == socket.AF_INET
        # Reads all there is; False where it ended at an error.
        self.hear: Callable[[List[Heard]], bool] = self._hear_raw if raw else self._hear
        # A ``mmsg.Mmsg`` that serves whole chunks, or None.
        self.mmsg: Any = _mmsg(self.sock) if many and raw else None
        self.users = 0
        self.volleys: List[Volley] = []
        self._next = 0

    def numbers(self, many: int) -> int:
        """The first of so many sequence numbers in a row."""
        first = self._next if self._next + many <= 1 << 16 else 0
        self._next = first + many
        return first

    def send(self, volley: Volley) -> int:
        """How many of these were sent before there was an error, maybe that of another packet."""
        if self.mmsg is not None and isinstance(volley.places, range):
            sent: int = self.mmsg.send(volley)
            volley.whole = sent == len(volley.places)
            return sent
        sent = 0
        try:
            for _ in map(self.sock.sendto, volley.packets(), volley.sweep.sockaddrs(volley.places)):
                sent += 1
        except OSError:
            pass
        return sent

    def note(self, volley: Volley) -> None:
        """Know the answers to these packets."""
        count = len(volley.places)
        self.volleys[volley.first : volley.first + count] = [volley] * count

    def volley_of(self, sequence: int) -> Optional[Volley]:
        """What the packet with this number went with; None where none had it."""
        return self.volleys[sequence] if sequence < len(self.volleys) else None

    def _hear_raw(self, heard: List[Heard]) -> bool:
        """A raw IPv4 socket passes the header on, which has the sender and the TTL."""
        receive = self.sock.recv
        packets: List[bytes] = []
        try:
            while True:
                packets.append(receive(HEARD_BYTES))
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            heard += read_raw(packets)

    def _hear(self, heard: List[Heard]) -> bool:
        family, receive = self.sock.family, self.sock.recvmsg
        beside: List[Tuple[int, int, bytes]] = []
        ttl: Optional[int] = None
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


def read_raw(packets: List[bytes]) -> Iterator[Heard]:
    """What packets with IPv4 headers say, as far as they can be echo replies of ours."""
    for packet in packets:
        bare = packet
        if packet[0] != _NO_OPTIONS:
            bare = packet[:_IP_HEADER_BYTES] + packet[(packet[0] & 15) * 4 :]
        if len(bare) >= _IP_ICMP.size:
            yield _IP_ICMP.unpack_from(bare)


def _mmsg(sock: socket.socket) -> Any:
    """A ``Mmsg``, or None without ctypes, which some distributions split off."""
    try:
        from .mmsg import Mmsg

        return Mmsg(sock)
    except (ImportError, OSError, AttributeError):
        return None


class Sockets:
    """Opens them when they are needed; ``ready(shared)`` is called when one has something."""

    def __init__(self, loop: Any, ready: Callable[[Shared], None]) -> None:
        self._loop = loop
        self._ready = ready
        self._shared: Dict[Key, Shared] = {}

    def all(self) -> Tuple[Shared, ...]:
        """Every one that is open."""
        return tuple(self._shared.values())

    def share(self, sweep: Sweep) -> None:
        """Give an order its share. Raises OSError."""
        key = _key(sweep)
        shared = self._shared.get(key)
        if shared is None:
            many = key[-1]
            shared = self._shared[key] = Shared(open_echo(sweep.target, many), many)
            widen(shared.sock)
            if sweep.size is not None:
                forbid_fragments(shared.sock)
            opened = shared
            self._loop.watch(shared.sock.fileno(), READ, lambda events: self._ready(opened))
        shared.users += 1
        sweep.shared = shared

    def release(self, sweep: Sweep) -> None:
        """The order needs it no more; it may have had none."""
        shared, sweep.shared = sweep.shared, None
        if shared is None:
            return
        shared.users -= 1
        if not shared.users:
            key = _key(sweep)
            self._loop.call_later(IDLE_S, lambda: self._close_idle(key))

    def close(self) -> None:
        """Close all."""
        for key in list(self._shared):
            self._close(key)

    def _close_idle(self, key: Key) -> None:
        shared = self._shared.get(key)
        if shared is not None and not shared.users:
            self._close(key)

    def _close(self, key: Key) -> None:
        shared = self._shared.pop(key)
        self._loop.unwatch(shared.sock.fileno())
        shared.sock.close()


def _key(sweep: Sweep) -> Key:
    target, sized = sweep.target, sweep.size is not None
    many = len(sweep.addresses) >= MANY and target.family == socket.AF_INET and not sized
    return (target.family, target.source, target.scope, sized, many)
