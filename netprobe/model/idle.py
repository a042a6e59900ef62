"""What firewalls between two zones remember of silent connections."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from netprobe.model.inventory import Family

IdleProtocol = Literal["tcp", "udp"]
# How a connection ended: packets vanish, or a reset, a FIN or an ICMP error came.
Ended = Literal["dropped", "reset", "closed", "refused"]
KeepaliveKind = Literal["data", "tcp"]
# The end that sends first after a silence.
WokenBy = Literal["source", "destination"]


class SideMemory(Struct, frozen=True):
    """What the connections showed that one end woke. Silences in seconds.

    ``alive_s``: the longest after which one lived, 0 where none did. ``forgotten_s``: the shortest
    after which one did not; None: none of them.
    """

    alive_s: int = 0
    forgotten_s: int | None = None
    ended: Ended | None = None


class HeldKeepalive(Struct, frozen=True):
    """How often a row's programs send, held against the memory. ``untold``: nothing was silent for
    so long. ``kind`` `tcp`: keepalives of the kernel. ``uncounted_s``: how often these come that
    do not count, because something on the way ends TCP, or may."""

    matrix: str
    requirement: str
    keepalive_s: int
    outcome: Literal["lives", "too-long", "untold"]
    kind: KeepaliveKind = "data"
    uncounted_s: int | None = None


class BusyConnection(Struct, frozen=True):
    """A connection that was never silent for longer than ``every_s``; ``packets`` were answered."""

    every_s: int
    packets: int
    lived: bool


class MeasuredFlow(Struct, frozen=True):
    """The row and the hosts whose connections were measured for two zones."""

    requirement: str
    source: str
    destination: str
    address: str
    port: int


class PairMemory(Struct, frozen=True):
    """What is remembered of connections from one zone to another, and what was measured.

    ``via``: the balancer between them, None without one. ``alive_s``: silent for so many seconds, a
    connection lived, whichever end woke it; None where nothing was measured. ``forgotten_s``: the
    shortest silence after which one was dead for at least one end; None: none. ``reset``: whether
    a reset, a FIN or an ICMP error told an end of it. ``by_destination`` of UDP is what a
    conversation of some seconds showed, and ``one_exchange`` one datagram each way.
    ``reason`` and ``because``: why nothing was measured, or not to the end. ``skipped``: by the
    inventory no agent can be started at an end.
    """

    from_: str
    to: str
    protocol: IdleProtocol
    family: Family
    via: str | None
    alive_s: int | None = None
    forgotten_s: int | None = None
    reset: bool | None = None
    flow: MeasuredFlow | None = None
    by_source: SideMemory | None = None
    by_destination: SideMemory | None = None
    one_exchange: SideMemory | None = None
    busy: BusyConnection | None = None
    keepalives: tuple[HeldKeepalive, ...] = ()
    reason: str | None = None
    because: str = ""
    skipped: bool = False

    @property
    def is_unknown(self) -> bool:
        """Whether the measurement ended before it could tell what it was asked."""
        return self.reason is not None and not (self.skipped or self.is_too_short)

    @property
    def is_too_short(self) -> bool:
        """Whether a row's programs send less often than the memory needs."""
        return any(one.outcome == "too-long" for one in self.keepalives)


class IdleReport(Struct, frozen=True):
    """All pairs of zones. ``up_to_s``: the longest silence; ``stopped``: a signal ended it."""

    started_at: str
    elapsed_s: float
    up_to_s: int
    stopped: bool
    pairs: tuple[PairMemory, ...]
