"""The names of failures, and the only place that knows errno.

A failure is what an operation of the kernel reported, not what it means: the judge says that.
The coordinator imports ``FAILURES``, so that its tables can be checked for completeness.
"""

import errno
from typing import Any, Iterator, List, Optional

# Nothing at all came back: no errno says this, the engines do, after the last look.
NO_ANSWER = "no-answer"
# Nothing came back, and the host stood still for so long in the look, and in the one that repeated
# it, that an answer could have been missed.
STOOD_STILL = "stood-still"
# This process may not open the socket that the probe needs (raw, ICMP). Never the same as silence.
NO_PERMISSION = "no-permission"
# An answer that is no errno of ours: ``unknown-`` and the errno's own name.
UNKNOWN_PREFIX = "unknown-"

# TCP: a reset during connect, or ICMP port-unreachable; UDP: ICMP port-unreachable. The error queue
# tells a reset (no ICMP) from an ICMP error, and who sent it.
REFUSED = "refused"
# The kernel itself gave up (all its SYNs, or a keepalive); our own looks usually end before.
TIMED_OUT = "timed-out"
# ICMP 3/1, 3/10, 3/13 and time-exceeded, a dead neighbour, or an ``unreachable`` route of our own.
HOST_UNREACHABLE = "host-unreachable"
# ICMP 3/0, 3/9 ..., or our own routing table has no route.
NETWORK_UNREACHABLE = "network-unreachable"
# A ``prohibit`` route of our own, IPv6 1/1, 1/5, 1/6, or a privileged port at bind().
ACCESS_DENIED = "access-denied"
# A ``blackhole`` route of our own makes connect() and send() fail with EINVAL.
INVALID_ROUTE = "invalid-route"
# ICMP 3/2: the host (or a reject rule) does not take this protocol.
PROTOCOL_UNREACHABLE = "protocol-unreachable"
# EPERM from send or connect: our own OUTPUT firewall dropped the packet (or a cgroup program did).
NOT_PERMITTED = "not-permitted"
# bind(): the address is not of this host; connect(): no free source port for a long time.
ADDRESS_NOT_AVAILABLE = "address-not-available"
# bind(): somebody else holds the port.
ADDRESS_IN_USE = "address-in-use"
# The packet is larger than the path's or the device's MTU and may not be fragmented.
MESSAGE_TOO_LONG = "message-too-long"
# The peer reset a connection that was open.
RESET = "reset"
# The peer closed a connection that was open, and we still wrote.
BROKEN_PIPE = "broken-pipe"
# ICMP parameter problem (12, IPv6 4/0 and 4/1): a host on the way did not understand the header.
PROTOCOL_ERROR = "protocol-error"
# ICMP 3/7 (host unknown), 3/8 (host isolated), 3/5 (source route failed): historic, some rejects.
HOST_DOWN = "host-down"
HOST_ISOLATED = "host-isolated"
NOT_SUPPORTED = "not-supported"
# A device that is down, or that went away.
NETWORK_DOWN = "network-down"
NO_DEVICE = "no-device"
# This kernel lacks the address family or the protocol (IPv6 switched off ...).
FAMILY_NOT_SUPPORTED = "family-not-supported"
# Our own host ran out of descriptors or of socket memory, and stayed so.
TOO_MANY_FILES = "too-many-files"
NO_BUFFERS = "no-buffers"

ERRNO_NAMES = {
    errno.ECONNREFUSED: REFUSED,
    errno.ETIMEDOUT: TIMED_OUT,
    errno.EHOSTUNREACH: HOST_UNREACHABLE,
    errno.ENETUNREACH: NETWORK_UNREACHABLE,
    errno.EACCES: ACCESS_DENIED,
    errno.EINVAL: INVALID_ROUTE,
    errno.ENOPROTOOPT: PROTOCOL_UNREACHABLE,
    errno.EPERM: NOT_PERMITTED,
    errno.EADDRNOTAVAIL: ADDRESS_NOT_AVAILABLE,
    errno.EADDRINUSE: ADDRESS_IN_USE,
    errno.EMSGSIZE: MESSAGE_TOO_LONG,
    errno.ECONNRESET: RESET,
    errno.EPIPE: BROKEN_PIPE,
    errno.EPROTO: PROTOCOL_ERROR,
    errno.EHOSTDOWN: HOST_DOWN,
    errno.ENONET: HOST_ISOLATED,
    errno.EOPNOTSUPP: NOT_SUPPORTED,
    errno.ENETDOWN: NETWORK_DOWN,
    errno.ENODEV: NO_DEVICE,
    errno.ENXIO: NO_DEVICE,
    errno.EAFNOSUPPORT: FAMILY_NOT_SUPPORTED,
    errno.EPROTONOSUPPORT: FAMILY_NOT_SUPPORTED,
    errno.EMFILE: TOO_MANY_FILES,
    errno.ENFILE: TOO_MANY_FILES,
    errno.ENOBUFS: NO_BUFFERS,
    errno.ENOMEM: NO_BUFFERS,
}

# What an answer meets on a connection whose peer has ended it: nothing was sent.
HUNG_UP = frozenset((RESET, BROKEN_PIPE))

# Every name that an agent can report, apart from the open end ``unknown-...``.
FAILURES = tuple(sorted(set(ERRNO_NAMES.values()) | {NO_ANSWER, STOOD_STILL, NO_PERMISSION}))

# A non-blocking connect() that is on its way, or has been since the last time we asked.
IN_PROGRESS = frozenset((errno.EINPROGRESS, errno.EALREADY))
# The connection was open, and then the peer ended it before we looked: that port is open.
ENDED_AFTER_OPEN = frozenset((errno.ECONNRESET, errno.EPIPE))
# No free source port just now; it says nothing about the destination.
NO_SOURCE_PORT = frozenset((errno.EADDRNOTAVAIL, errno.EAGAIN, errno.EADDRINUSE))
# Our own host is short of something just now; it says nothing about the destination.
SHORT_OF = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
# Opening a raw or ICMP socket without the right to (EPROTONOSUPPORT: no such ICMP socket here).
PERMISSION = frozenset((errno.EPERM, errno.EACCES))


def name_of(number: Optional[int]) -> str:
    """Give the failure that an errno stands for; what we do not know keeps the errno's own name."""
    known = ERRNO_NAMES.get(number)  # type: ignore[arg-type]  # None is no key and is unknown
    if known is not None:
        return known
    return UNKNOWN_PREFIX + errno.errorcode.get(number or 0, str(number))


def is_transient(number: Optional[int]) -> bool:
    """Tell whether an errno only says that our own host is short of something just now."""
    return number in SHORT_OF or number == errno.EAGAIN


def until_error(results: Iterator[Any]) -> List[Any]:
    """Tell what an iterator gives before it raises OSError: ``map`` of a system call, say."""
    done: List[Any] = []
    try:
        for each in results:
            done.append(each)
    except OSError:
        pass
    return done


# What a process or its host has no more of, for a reader.
SHORTAGES = {
    errno.EMFILE: "file descriptors (ulimit -n)",
    errno.ENFILE: "file descriptors",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "memory for packets",
    errno.EADDRNOTAVAIL: "ports",
    errno.EAGAIN: "processes or threads (ulimit -u)",
}


# What Python says where neither an errno nor a class tells.
NO_THREAD = "can't start new thread"


def find_shortage(error: "Optional[BaseException]") -> Optional[str]:
    """Tell of what an exception says that there is no more; None where it says something else."""
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, RuntimeError) and str(error) == NO_THREAD:
        return "memory or threads (ulimit -v, -u)"
    return SHORTAGES.get(error.errno or 0) if isinstance(error, OSError) else None
