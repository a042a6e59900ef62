"""What the rehearsal of a balancer has seen: agents played its back ends, sources dialled it."""

from __future__ import annotations

from typing import NamedTuple


class CheckSeen(NamedTuple):
    """Connections of one kind that came to a back end and that none of our sources made: health
    checks, as a rule. ``asked``: in words. ``passes``: whether it was answered as it should be.
    ``seen``: how often."""

    back_end: str
    asked: str
    passes: bool
    seen: int
    every_ms: int | None


class Removal(NamedTuple):
    """A back end that failed what the balancer asks, on purpose.

    ``kept_ms``: how long it got connections; ``is_out``: whether it got none any more then.
    ``watched_s``: how long it failed. ``back_ms``: how long after it was well again it got the
    first; None: it got none in ``back_watched_s``, or nobody waited for one (0).
    """

    back_end: str
    is_out: bool
    kept_ms: int
    watched_s: int
    back_ms: int | None = None
    back_watched_s: int = 0


class HeldPool(NamedTuple):
    """Back ends that hold the balanced port themselves, so that nothing was played.

    ``why``: in words; ``alike``: those that show one certificate; ``ready``: those that answered
    what the balancer asks with 200 when their own agents asked.
    """

    why: str
    alike: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()


class BalancerFacts(NamedTuple):
    """What one source saw of a balancer, and what all sources together saw of its pool.

    ``reached``: the back ends that this source reached; ``pool``: those that any source did.
    ``dials``: how often it dialled; ``lost`` of them had no answer, ``ended`` arrived at a back end
    while somebody else showed the certificate ``shown``, ``foreign`` were answered by something
    that is no back end, and ``headers`` began with a header of the PROXY protocol.
    ``sticks``: it always got one back end, and there are others; ``all_stick``: every source did.
    ``itself``: whether a source that is a back end reaches itself (None: it is none, or never had
    to); ``unreflected``: the back ends
    that did not and that others reached. ``seen_as``: the addresses that the back ends saw.
    ``failing``: what a back end did that failed on purpose, in words (empty: nobody knows what the
    balancer asks, so that none did); ``removals``: what came of it, for each that did.
    ``held``: nothing was played; all is known by the certificates that were shown. ``unanswered``
    of the last ``since`` dials had no answer, which were made when every back end had been reached.
    """

    back_ends: tuple[str, ...]
    reached: tuple[str, ...] = ()
    pool: tuple[str, ...] = ()
    dials: int = 0
    lost: int = 0
    lost_words: str = ""
    ended: int = 0
    foreign: int = 0
    shown: str = ""
    headers: int = 0
    sticks: bool = False
    all_stick: bool = False
    itself: bool | None = None
    unreflected: tuple[str, ...] = ()
    checks: tuple[CheckSeen, ...] = ()
    seen_as: tuple[str, ...] = ()
    waited_s: int = 0
    failing: str = ""
    removals: tuple[Removal, ...] = ()
    held: HeldPool | None = None
    since: int = 0
    unanswered: int = 0

    @property
    def missing(self) -> tuple[str, ...]:
        """The back ends that no source reached."""
        return tuple(name for name in self.back_ends if name not in self.pool)
