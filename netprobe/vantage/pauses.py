"""When an agent, the stream to it, or this process stood still, as far as beats tell."""

from __future__ import annotations

from collections import deque

from netprobe.agent.wire.answers import Alive

# A beat that is answered later than this: the agent or the stream stood still.
LATE_S = 1.0
# The older ones are forgotten.
MOST_PAUSES = 1000

# From and to, in seconds of a monotonic clock.
TimeSpan = tuple[float, float]


class LinkPauses:
    """The pauses of one link, by the coordinator's monotonic clock.

    ``known_until``: they are known up to this time. ``stalled_s``: for so long in all the agent
    could not run, because of pauses or because it waited for a processor.
    """

    def __init__(self, now: float) -> None:
        self.known_until = now
        self.stalled_s = 0.0
        self._beats: deque[float] = deque()
        self._pauses: deque[TimeSpan] = deque(maxlen=MOST_PAUSES)
        self._waited_ms = 0

    def note_beat(self, now: float) -> None:
        """Note that a beat was sent; each is answered once, in turn."""
        self._beats.append(now)

    def note_turn(self, due: float, now: float) -> None:
        """Note when this process ran, and when it would have."""
        if now - due > LATE_S:
            self._pauses.append((due, now))

    def take_alive(self, alive: Alive, now: float) -> None:
        """Take the answer to the oldest beat; one that answers none is ignored."""
        if not self._beats:
            return
        sent = self._beats.popleft()
        # The answer may have left the agent at any time since then.
        told = [
            (sent - (one.ago_ms + one.lasted_ms) / 1000, now - one.ago_ms / 1000)
            for one in alive.pauses
        ]
        if now - sent > LATE_S:
            told.append((sent, now))
        self._pauses.extend(told)
        waited_s = max(0, alive.waited_ms - self._waited_ms) / 1000
        self._waited_ms = alive.waited_ms
        self.stalled_s += max(waited_s, _measure_pauses(told, self.known_until, now))
        self.known_until = sent

    def overdue_s(self, now: float) -> float:
        """Tell for how long the answer to a beat has been late."""
        return max(0.0, now - self._beats[0] - LATE_S) if self._beats else 0.0

    def lost_s(self, start: float, end: float, look_s: float) -> float:
        """Tell how much of a look was lost in pauses at most, whenever it was within this span."""
        pauses = [one for one in self._pauses if one[1] > start and one[0] < end]
        begins = (start, *(one[0] for one in pauses), *(one[1] - look_s for one in pauses))
        looks = ((max(start, begin), min(end, begin + look_s)) for begin in begins)
        return max(_measure_pauses(pauses, *look) for look in looks)


def _measure_pauses(pauses: list[TimeSpan], start: float, end: float) -> float:
    """Measure what pauses, which may overlap, cover of a span."""
    covered, reached = 0.0, start
    for pause in sorted(pauses):
        begun, ended = max(pause[0], reached), min(pause[1], end)
        if ended > begun:
            covered += ended - begun
            reached = ended
    return covered
