"""Opening probe sockets: source address, error queue, TTLs; and how many may be open."""

import errno
import os
import resource
import socket
import struct
import sys
from functools import lru_cache
from itertools import repeat
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from .errqueue import listen_for_errors, set_ip_option

# linux/in.h, linux/in6.h: numbers that the socket module of Python 3.6 does not name.
IP_MINTTL = 21
IP_BIND_ADDRESS_NO_PORT = 24
IPV6_MINHOPCOUNT = 73
IP_MTU_DISCOVER = 10
IPV6_MTU_DISCOVER = 23
PMTUDISC_PROBE = 3
IP_HEADER: Dict[int, int] = {socket.AF_INET: 20, socket.AF_INET6: 40}
UDP_HEADER = 8
# The most that TCP_SYNCNT takes: the kernel gives up after the look, whatever tcp_syn_retries is.
MOST_SYNS = 127

# The listeners of this agent, its pipes and the other engines need descriptors as well.
TCP_SHARE = 0.75
RESERVED_FILES = 64
LEAST_FILES = 16
MOST_FILES = 24000
RECEIVE_BYTES = 1024 * 1024
MOST_OWN_PORTS = 500000

_LINGER_RESET = struct.pack("=ii", 1, 0)
_U32 = struct.Struct("=I")
# struct sockaddr with family 0 (AF_UNSPEC), at least as long as a sockaddr_in.
_NOWHERE = bytes(16)


class ProbeTarget(NamedTuple):
    """Where an order goes: family, the destination as the kernel prints it, and the source."""

    family: int
    address: str
    scope: int
    source: Optional[str]

    def sockaddr(self, port: int) -> Tuple[Any, ...]:
        """Give the address of one port, as the socket module wants it."""
        if self.family == socket.AF_INET6:
            return (self.address, port, 0, self.scope)
        return (self.address, port)

    def source_sockaddr(self, port: int) -> Tuple[Any, ...]:
        """Give the source address with a port of our own; 0: any."""
        if self.family == socket.AF_INET6:
            return (self.source, port, 0, self.scope)
        return (self.source, port)

    def addresses(self, ports: Sequence[int]) -> List[Tuple[Any, ...]]:
        """Give the addresses of many ports."""
        if self.family == socket.AF_INET6:
            return list(zip(repeat(self.address), ports, repeat(0), repeat(self.scope)))
        return list(zip(repeat(self.address), ports))


def target_of(destination: str, source: Optional[str]) -> ProbeTarget:
    """Give the target of literal addresses; raises OSError where one is none."""
    # As bytes: for text Python would first load its IDNA tables.
    literal = destination.encode("ascii")
    found = socket.getaddrinfo(literal, 0, 0, socket.SOCK_DGRAM, 0, socket.AI_NUMERICHOST)
    family, _, _, _, sockaddr = found[0]
    scope = sockaddr[3] if len(sockaddr) == 4 else 0
    return ProbeTarget(int(family), str(sockaddr[0]).partition("%")[0], int(scope), source)


def open_probe(
    target: ProbeTarget, kind: int, protocol: int = 0, min_ttl: Optional[int] = None, port: int = 0
) -> socket.socket:
    """A non-blocking socket with an error queue, bound to the source address where one is given.

    ``port``: our own port, which the socket then keeps; 0: each connect gets one.

    Raises OSError; the caller tells a bind failure by ``bind`` being the only call that may fail
    with an address error.
    """
    # The class in C beneath socket.socket, whose wrappers (enums, close) cost as much as the calls.
    sock: Any = socket.SocketType(target.family, kind | socket.SOCK_NONBLOCK, protocol)
    try:
        listen_for_errors(sock)
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, MOST_SYNS)
        if min_ttl is not None:
            # The kernel ignores segments that arrive with a lower TTL: a reset from farther away.
            set_ip_option(sock, IP_MINTTL, IPV6_MINHOPCOUNT, min_ttl)
        if target.source is not None:
            bind_source(sock, target, port)
        elif port:
            sock.bind(("", port))
    except OSError:
        sock.close()
        raise
    return sock  # type: ignore[no-any-return]


def is_own(target: ProbeTarget) -> bool:
    """Tell whether the destination is an address of this host; True where that is not certain."""
    try:
        sock: Any = socket.SocketType(target.family, socket.SOCK_DGRAM)
    except OSError:
        return True  # no descriptor is left to find out with
    try:
        sock.bind(target.sockaddr(0))
    except OSError as error:
        return error.errno != errno.EADDRNOTAVAIL
    finally:
        sock.close()
    return True


def bind_source(sock: socket.socket, target: ProbeTarget, port: int = 0) -> None:
    """Bind the source address, and the port or leave that to connect(): then none is used up."""
    if sock.type & socket.SOCK_STREAM and not port:
        try:
            sock.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        except OSError:
            pass  # before Linux 4.2 bind() takes a port for each socket, which is only dearer
    sock.bind(target.source_sockaddr(port))


def forbid_fragments(sock: socket.socket) -> None:
    """Set DF, and ignore what the kernel believes of the path's MTU (docs/network-facts.md, section
    8)."""
    set_ip_option(sock, IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_PROBE)


def padded(request: bytes, family: int, size: int, header: int) -> bytes:
    """Give the request with zeros behind it, so that the IP packet has ``size`` bytes in all."""
    return request + bytes(max(0, size - IP_HEADER[family] - header - len(request)))


def note_own_ports(
    known: Set[Tuple[bytes, int, int]],
    target: ProbeTarget,
    ports: Sequence[int],
    socks: Sequence[socket.socket],
) -> None:
    """Note where packets of these sockets come from, so that a recorder knows them for our own."""
    address = socket.inet_pton(target.family, target.address)
    if len(known) < MOST_OWN_PORTS:
        known.update((address, port, sock.getsockname()[1]) for port, sock in zip(ports, socks))


def forget_own_port(
    known: Set[Tuple[bytes, int, int]], target: ProbeTarget, port: int, sock: socket.socket
) -> None:
    """Forget a port that a socket uses again for packets that a recorder must not keep."""
    address = socket.inet_pton(target.family, target.address)
    known.discard((address, port, sock.getsockname()[1]))


def set_ttl(sock: socket.socket, ttl: int) -> None:
    """Tell how many routers the packets of this socket may pass."""
    set_ip_option(sock, socket.IP_TTL, socket.IPV6_UNICAST_HOPS, ttl)


def close_with_reset(sock: socket.socket) -> None:
    """Close a connection by a reset: no TIME_WAIT stays on either end."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
    except OSError:
        pass  # it is closed below in any case
    sock.close()


def tcp_socket_limit() -> int:
    """Tell how many sockets the TCP engine may hold, out of the soft limit as it is now."""
    limit = file_limit()
    share = min(MOST_FILES, int((limit - RESERVED_FILES) * TCP_SHARE))
    # Of a few dozen files listeners and the connections that they accept need the most.
    return max(min(LEAST_FILES, limit // 4), share)


def file_limit() -> int:
    """Give the soft limit of open files as it is now."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


class SynState(NamedTuple):
    """What TCP_INFO says of a connect that has not been answered.

    ``timeouts``: how often the kernel's SYN timer ran out. ``asked``: SYNs that the kernel tried to
    send in all. ``left``: True where at least one retransmission got out of this host, False where
    the timer ran out and none did (our own OUTPUT firewall), None while the timer never ran out.
    """

    timeouts: int
    asked: int
    left: Optional[bool]


def syn_state(sock: socket.socket) -> SynState:
    """Read TCP_INFO of a connecting socket.

    tcpi_total_retrans counts before the packet is handed down, so it also grows while our own
    firewall drops every SYN; tcpi_retrans counts only what was really transmitted.
    """
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    timeouts = info[2]
    (retransmitted,) = _U32.unpack_from(info, 36)
    total = _U32.unpack_from(info, 100)[0] if len(info) >= 104 else timeouts
    left = None if not timeouts else retransmitted > 0
    return SynState(timeouts, 1 + total, left)


def opening_of(sock: socket.socket, rtt_s: float) -> Tuple[Optional[int], float]:
    """Give the SYNs of a connection that opened late, and its round trip in seconds.

    ``rtt_s``: from the first SYN on. None, where that one was answered: the way is as slow. Without
    timestamps the kernel measures no round trip after a repeated SYN.
    """
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    measured_s = _U32.unpack_from(info, 68)[0] / 1e6
    syns = syn_state(sock).asked
    return (syns if syns > 1 > measured_s else None), measured_s or rtt_s


def disconnect(fds: List[int]) -> List[int]:
    """Reset connections by connect(AF_UNSPEC): 0 for each socket that can then connect again.

    The socket module cannot say AF_UNSPEC, so this needs ctypes; where that is missing (some
    distributions split it off) no socket can, and the caller closes it instead.
    """
    connect = _load_connect()
    if connect is None:
        return [-1] * len(fds)
    # A live connection leaves ECONNRESET pending on the socket; the next connect() clears it.
    return list(map(connect, fds, repeat(_NOWHERE), repeat(len(_NOWHERE))))


@lru_cache(maxsize=None)
def _load_connect() -> Any:
    try:
        import ctypes

        return ctypes.CDLL(None).connect
    except (ImportError, OSError, AttributeError):
        return None


@lru_cache(maxsize=None)
def disconnect_is_thorough() -> bool:
    """Whether ``disconnect`` makes a socket forget its retransmissions too: since Linux 5.6."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return [int(number) if number.isdigit() else 0 for number in numbers] >= [5, 6]


def widen(sock: socket.socket) -> None:
    """Make room for the answers and errors of a whole window; the kernel caps it at rmem_max."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    except OSError:
        pass  # the default does for all but the fastest answers


def read_link_address(device: str) -> bytes:
    """Read the link-layer address of a device. Raises OSError."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
    try:
        sock.bind((device, 0))
        return bytes(sock.getsockname()[4])
    finally:
        sock.close()
