"""When an agent, the stream to it, or this process stood still, as far as beats tell."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from typing import Any, NamedTuple

from netprobe.agent.wire.answers import Alive
from netprobe.agent.wire.frames import HIDING_PAUSES

# A beat that is answered later than this: the agent or the stream stood still.
LATE_S = 1.0
# The older ones are forgotten.
MOST_PAUSES = 1000

# So often this process looks whether it stood still.
TURN_S = 1.0

# From and to, in seconds of a monotonic clock.
TimeSpan = tuple[float, float]


async def wait_awake(awaited: asyncio.Future[Any], limit_s: float) -> None:
    """Wait for so long at most. A time in which this process stood still counts as ``TURN_S``."""
    now = asyncio.get_running_loop().time
    while limit_s > 0 and not awaited.done():
        turn_s = min(TURN_S, limit_s)
        due_s = now() + turn_s
        await asyncio.wait({awaited}, timeout=turn_s)
        late_s = now() - due_s
        limit_s -= turn_s + (late_s if late_s <= LATE_S else 0.0)


class LinkPause(NamedTuple):
    """A pause of so many seconds at some time of a span. Seconds of the coordinator's clock."""

    start: float
    end: float
    lasted_s: float


class LinkPauses:
    """The pauses of one link, by the coordinator's monotonic clock.

    ``known_until``: they are known up to this time. ``stalled_s``: for so long in all the agent
    could not run, because of pauses or because it waited for a processor.
    """

    def __init__(self, now: float) -> None:
        self.known_until = now
        self.stalled_s = 0.0
        self._beats: deque[float] = deque()
        self._pauses: deque[LinkPause] = deque(maxlen=MOST_PAUSES)
        self._waited_ms = 0

    def note_beat(self, now: float) -> None:
        """Note that a beat was sent; each is answered once, in turn."""
        self._beats.append(now)

    def note_turn(self, due: float, now: float) -> None:
        """Note when this process ran, and when it would have."""
        if now - due > LATE_S:
            self._pauses.append(LinkPause(due, now, now - due))

    def take_alive(self, alive: Alive, now: float) -> None:
        """Take the answer to the oldest beat; one that answers none is ignored."""
        if not self._beats:
            return
        sent = self._beats.popleft()
        # The answer may have left the agent at any time since then.
        told = [
            LinkPause(
                sent - (one.ago_ms + one.lasted_ms) / 1000,
                now - one.ago_ms / 1000,
                one.lasted_ms / 1000,
            )
            for one in alive.pauses
        ]
        if now - sent > LATE_S:
            told.append(LinkPause(sent, now, now - sent))
        self._pauses.extend(told)
        waited_s = max(0, alive.waited_ms - self._waited_ms) / 1000
        self._waited_ms = alive.waited_ms
        spans = [(one.start, one.end) for one in told]
        self.stalled_s += max(waited_s, _measure_spans(spans, self.known_until, now))
        self.known_until = sent

    def overdue_s(self, now: float) -> float:
        """Tell for how long the answer to a beat has been late."""
        return max(0.0, now - self._beats[0] - LATE_S) if self._beats else 0.0

    def lost_s(self, start: float, end: float, look_s: float, least_s: float = 0.0) -> float:
        """Tell how much of a look was lost in its longest pauses at most, whenever it was within
        this span; of an endless one in all pauses. Those shorter than ``least_s`` do not count."""
        pauses = [one for one in self._pauses if one.end > start and one.start < end]
        pauses = [one for one in pauses if one.lasted_s >= least_s]
        if look_s == math.inf:
            return _measure_spans([(one.start, one.end) for one in pauses], start, end)
        begins = (start, *(one.start for one in pauses), *(one.end - look_s for one in pauses))
        looks = ((max(start, begin), min(end, begin + look_s)) for begin in begins)
        return min(look_s, max(_measure_longest(pauses, *look) for look in looks))


def _measure_longest(pauses: list[LinkPause], start: float, end: float) -> float:
    """Measure what the longest pauses can have taken of a span."""
    lost = (min(one.lasted_s, min(one.end, end) - max(one.start, start)) for one in pauses)
    return sum(sorted(max(0.0, one) for one in lost)[-HIDING_PAUSES:])


def _measure_spans(spans: list[TimeSpan], start: float, end: float) -> float:
    """Measure what spans, which may overlap, cover of another."""
    covered, reached = 0.0, start
    for span in sorted(spans):
        begun, ended = max(span[0], reached), min(span[1], end)
        if ended > begun:
            covered += ended - begun
            reached = ended
    return covered
