"""What the rehearsal of VRRP's multicast has seen of the way between two hosts."""

from __future__ import annotations

from typing import NamedTuple


class MulticastFacts(NamedTuple):
    """A packet like VRRP's to its group, from ``source`` at its ``device``.

    ``arrived``: the destination's device got it, which may be before its firewall. ``heard_by``:
    other hosts that did. ``hears``: whether the destination got that of any other host.
    """

    source: str
    device: str
    arrived: bool
    heard_by: tuple[str, ...] = ()
    hears: bool = False
