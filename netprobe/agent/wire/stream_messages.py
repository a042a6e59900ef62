"""Streams: TCP connections of the agent's host over which the coordinator speaks (TLS, HTTP).

The agent relays bytes and measures; it knows nothing of what is said. An order for a stream that is
over is no error: the two crossed.
"""

from typing import Dict, NamedTuple, Optional

from .parts import IcmpFact, StreamTimes

# Streams that came in at the agent's host have ids from here; the coordinator's are lower.
FIRST_ACCEPTED_ID = 1 << 47


class StreamOpenOrder(NamedTuple):
    """Open a TCP connection over which the coordinator speaks. ``mss`` is set before the connect:
    it caps what we send and what the peer may send us."""

    id: int
    dst: str
    port: int
    src: Optional[str]
    mss: Optional[int]
    timeout_ms: int


class StreamListenOrder(NamedTuple):
    """Listen at a TCP port for so long, and hand each connection over as a stream; at most ``most``
    of them are open at once. ``StreamDropOrder`` ends it and its streams."""

    id: int
    address: str
    port: int
    most: int
    ms: int


class StreamSendOrder(NamedTuple):
    """Send these bytes; at most 64 KiB may wait that were not credited yet."""

    id: int
    data: bytes


class StreamCredit(NamedTuple):
    """So many bytes were taken: as many more may be sent. Both ends say it."""

    id: int
    bytes: int


class StreamAwaitOrder(NamedTuple):
    """Report ``timeout`` once, if neither a byte nor an end comes in this time."""

    id: int
    ms: int


class StreamInfoOrder(NamedTuple):
    """Tell TCP_INFO as it is now."""

    id: int


class StreamDropOrder(NamedTuple):
    """Close now, by a FIN or by a reset; nothing more is said of this stream."""

    id: int
    reset: bool


class StreamOpened(NamedTuple):
    """How a stream opened, always once. ``left`` False: the own kernel sent nothing. ``syns``: of
    silence. ``local``: the own address. ``soft``: an errno's name that ended nothing."""

    id: int
    times: StreamTimes
    failure: Optional[str]
    left: Optional[bool]
    syns: Optional[int]
    rtt_us: Optional[int]
    local: Optional[str]
    icmp: Optional[IcmpFact]
    soft: Optional[str]
    tcp: Dict[str, int]


class StreamListening(NamedTuple):
    """Whether the port is open; else why not."""

    id: int
    failure: Optional[str]


class StreamAccepted(NamedTuple):
    """A connection to the port came in, from this peer. ``stream`` is its id; nothing is read of it
    before the coordinator has given credit."""

    id: int
    stream: int
    remote: str
    remote_port: int


class StreamReceived(NamedTuple):
    """Bytes that came, at most 64 KiB beyond the credit given. ``tcp``: of the first bytes after
    a send, because they are its answer."""

    id: int
    times: StreamTimes
    data: bytes
    tcp: Optional[Dict[str, int]]


class StreamEvent(NamedTuple):
    """``fin``: the peer sent one, our direction is still open. ``reset``: the peer reset the
    connection. ``timeout``: what was awaited did not come, or (with ``failure``) the kernel gave
    up. ``failed``: any other errno. With IP_RECVERR an ICMP error about an open connection is an
    errno; the connection lives on, and ``icmp`` and ``soft`` keep the fact. ``awaits``: how many
    ``StreamAwait`` had come, so that a timeout says whose it is."""

    id: int
    kind: str
    times: StreamTimes
    failure: Optional[str]
    icmp: Optional[IcmpFact]
    soft: Optional[str]
    tcp: Dict[str, int]
    awaits: int


class StreamInfo(NamedTuple):
    """TCP_INFO, as far as this kernel has it; None: the stream is over."""

    id: int
    tcp: Optional[Dict[str, int]]
