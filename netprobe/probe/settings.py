"""How a run probes: limits and deadlines, with the defaults that ``--help`` shows."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from msgspec import Struct

from netprobe.model.story import Keep

# 4 s holds three SYNs, and a dead neighbour shows after 3.06 s (network-facts section 1).
LOOK_S = 4.0
# Datagrams to ports where nobody of ours answers are rationed, and asked so often.
PACED_LOOKS = 3
# One-way packets to a listener of ours: three packets in this time, and then it is asked.
ONE_WAY_MS = 600
# A host that is not ready by then is probed without listeners (design 6.1).
READY_S = 30.0
# Destinations worked on at a time.
FORKS = 200

# Closed UDP: ICMP answers come from a bucket of 6, then one a second (network-facts section 4).
UDP_BURST = 6
UDP_INTERVAL_MS = 1020
# 30 outstanding per destination over all sources, 6 of each.
UDP_SOURCES_AT_ONCE = 5
# TLS handshakes cost a service more than they cost us.
SERVICES_AT_ONCE = 8

# Routers' own buckets pace TTL walks: with more a large failure takes minutes to say nothing new.
WALKS = 20
# Flows of one source asked again after a pause (``late_refusals``): each takes 3 to 8 seconds.
LATE = 6
# How often flows are asked while a source's counters are watched: each time takes a second or two.
COUNTED = 5
# Silence is asked in less; a source that is busy for longer has a large plan.
QUIET_S = 3.0

# How many listeners one round opens at most, under the agent's own limit of descriptors.
ROUND_LISTENERS = 8192
SPARE_DESCRIPTORS = 512

# A look at a host that has answered waits for so many of its round trips at least.
ROUND_TRIPS = 4
# The least time in which an answer must come.
LEAST_LOOK_S = 0.3


class Timing(NamedTuple):
    """How long the first look waits (None: learned), how long every later one, and how many."""

    first_ms: int | None
    look_ms: int
    looks: int


class ProbeSettings(Struct, frozen=True):
    """``timeout_s``: how long one look waits (None: learned); ``looks``: how many (None: as many as
    the chance of error demands).

    ``rate``: new probes a second over all agents, None: no limit. ``forks``: destinations at once.
    ``record``: whether agents record the packets of the run, where they may. ``keep`` gets packets
    of what did not pass; None: agents keep none. ``live``: everything is supposed to run.
    ``places``: it is looked for where flows end that fail.
    """

    timeout_s: float | None = None
    looks: int | None = None
    rate: int | None = None
    forks: int = FORKS
    listen: bool = True
    live: bool = False
    record: bool = True
    keep: Keep | None = None
    ready_s: float = READY_S
    places: ClassVar[bool] = True

    @property
    def look_ms(self) -> int:
        """How long one unhurried look waits, in ms."""
        return round((self.timeout_s or LOOK_S) * 1000)

    @property
    def timing(self) -> Timing:
        """The looks of an ordinary order; the agent learns the first from the host's answers."""
        first_ms = None if self.timeout_s is None else self.look_ms
        return Timing(first_ms, self.look_ms, 1)


class QuickSettings(ProbeSettings, frozen=True):
    """Those of a look that asks only whether flows get through."""

    places: ClassVar[bool] = False
