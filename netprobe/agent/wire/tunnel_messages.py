"""A tunnel that two agents play for a moment: one order and one answer for each step."""

from typing import NamedTuple, Optional


class TunnelOpenOrder(NamedTuple):
    """Make a VXLAN device of the kernel in a namespace that only this agent holds.

    Its packets go from ``local`` to ``remote``, UDP ``port``, with the network id ``network``.
    ``first``: this end sends in a trial; the other one answers.
    """

    id: int
    tunnel: int
    local: Optional[str]
    remote: str
    port: int
    network: int
    mtu: int
    first: bool


class TunnelOpened(NamedTuple):
    """Why there is no device (a word, and ``words``); the host's interface that carries the tunnel,
    and its driver as the kernel has it."""

    id: int
    failure: Optional[str]
    words: str
    dev: Optional[str]
    driver: Optional[str]


class TunnelTryOrder(NamedTuple):
    """Send echo requests and a TCP connection through a tunnel. ``tcp_only``: no echo requests."""

    id: int
    tunnel: int
    bytes: int
    tcp_only: bool


class TunnelTried(NamedTuple):
    """What passed: an echo (``echo``; None: not asked), a connection with a few bytes each way
    (``opened``), one segment of full size each way (``full``), and a transfer of so many bytes
    there and back in so many microseconds. ``failure``: why this host could not try it."""

    id: int
    echo: Optional[bool]
    opened: bool
    full: bool
    bytes: int
    took_us: int
    failure: Optional[str]


class TunnelChecksumsOrder(NamedTuple):
    """Let the CPU make the checksums of what goes into a tunnel (``by_cpu``), or the device that
    carries it; a setting of the tunnel's own device alone."""

    id: int
    tunnel: int
    by_cpu: bool


class TunnelChecksums(NamedTuple):
    """Why that is not so."""

    id: int
    failure: Optional[str]


class TunnelCloseOrder(NamedTuple):
    """Remove a tunnel."""

    id: int
    tunnel: int


class TunnelClosed(NamedTuple):
    """It is gone."""

    id: int
