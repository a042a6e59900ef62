"""Sockets that keep their source port and address from connect to connect.

Otherwise the kernel looks for both at every connect, which is a seventh of a scan's work. A socket
is bound only to the address that the kernel would choose, and only where the route stays the same.
IPv4 looks for the route again when it has chosen an address. IPv6 does not, so a rule for that
address would apply to bound sockets only; there the kernel chooses for each connect.
"""

import socket
import struct
from typing import Any, Optional, Set

from ...net.netlink import attributes, dump
from ...net.sockets import ProbeTarget, open_probe
from ..orders import RunningOrder

# Binding does not pay for an order of fewer ports.
FROM_PORTS = 256
# So many source ports at most, and at most this share of the host's: other programs connect too.
MOST_PORTS = 512
SHARE = 0.05
PORT_RANGE = "/proc/sys/net/ipv4/ip_local_port_range"
HASH_POLICY = "/proc/sys/net/ipv4/fib_multipath_hash_policy"
BY_ADDRESS = "0"

# linux/rtnetlink.h, linux/fib_rules.h: what makes a rule depend on protocol or ports.
RTM_GETRULE = 34
_FIB_RULE = struct.Struct("=BBBBBBBBI")
_BY_PORT = frozenset((22, 23, 24, 28, 29))
# Any port; no packet is sent.
_DISCARD = 9


class BoundSockets:
    """Opens bound sockets, and counts them."""

    def __init__(self) -> None:
        self._room = 0
        self._fds: Set[int] = set()
        self._plain: Optional[bool] = None

    def measure(self) -> None:
        """Look at the host's settings as they are now."""
        self._room = _count_ports()
        self._plain = None

    def target(self, order: RunningOrder) -> Optional[ProbeTarget]:
        """Where an order goes, with the source address that its sockets may be bound to."""
        target = order.target
        if order.pending < FROM_PORTS:
            return None
        if target.source is not None:
            return target
        if target.family == socket.AF_INET6:
            return None
        if self._plain is None:
            self._plain = _is_plain()
        source = _find_source(target) if self._plain else None
        # A connect to an own address starts from that address, and might meet its own socket.
        return None if source in (None, target.address) else target._replace(source=source)

    def open(self, target: ProbeTarget, min_ttl: Optional[int]) -> Optional[socket.socket]:
        """Open a bound socket; None where there is no port for it."""
        if len(self._fds) >= self._room:
            return None
        try:
            sock = open_probe(target, socket.SOCK_STREAM, 0, min_ttl, _find_free_port(target))
        except OSError:
            return None  # the host is short of ports; unbound sockets may share them
        self._fds.add(sock.fileno())
        return sock

    def has(self, sock: socket.socket) -> bool:
        """Tell whether this is one of them."""
        return sock.fileno() in self._fds

    def forget(self, sock: socket.socket) -> None:
        """Forget a socket that is about to be closed; it need not be one of them."""
        self._fds.discard(sock.fileno())


def _find_free_port(target: ProbeTarget) -> int:
    """Find a free port, chosen by the kernel. A socket keeps only a port that bind() names."""
    scout: Any = socket.SocketType(target.family, socket.SOCK_STREAM)
    try:
        scout.bind(target.source_sockaddr(0))
        return int(scout.getsockname()[1])
    finally:
        scout.close()


def _find_source(target: ProbeTarget) -> Optional[str]:
    """Find the address that a connect to this target would have."""
    try:
        sock: Any = socket.SocketType(target.family, socket.SOCK_DGRAM)
    except OSError:
        return None
    try:
        sock.connect(target.sockaddr(_DISCARD))
        return str(sock.getsockname()[0]).partition("%")[0]
    except OSError:
        return None  # no route: the connects will say so
    finally:
        sock.close()


def _is_plain() -> bool:
    """Whether an IPv4 connect's source address depends on nothing but its destination's address."""
    try:
        with open(HASH_POLICY) as file:
            if file.read().strip() != BY_ADDRESS:
                return False
        body = _FIB_RULE.pack(socket.AF_INET, 0, 0, 0, 0, 0, 0, 0, 0)
        rules = [dict(attributes(rule[_FIB_RULE.size :])) for rule in dump(RTM_GETRULE, body)]
    except OSError:
        return False
    return not any(_BY_PORT.intersection(rule) for rule in rules)


def _count_ports() -> int:
    try:
        with open(PORT_RANGE) as file:
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return min(MOST_PORTS, int((last - first + 1) * SHARE))
