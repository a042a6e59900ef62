"""When this process stood still: stopped, without a processor, or on a machine that stood still."""

from collections import deque
from typing import Deque, List, Tuple

from ..wire.frames import HIDING_PAUSES

# A loop that runs so much later than it would is in a pause. What is shorter hides no answer:
# sockets are read before silence is believed.
PAUSE_S = 0.25
# A look goes on until it has had its time beside all pauses, but so much longer at most.
MOST_LONGER_S = 8.0
# The older ones are forgotten.
MOST_PAUSES = 1000

# From and to, in seconds of the loop's clock.
Pause = Tuple[float, float]


class Pauses:
    """The pauses of a loop, by its own monotonic clock: the wall clock may step.

    The loop says how long it means to ``rest``, and tells by ``note`` in each turn when it runs.
    """

    def __init__(self, now: float) -> None:
        self._due = now
        self._pauses: Deque[Pause] = deque(maxlen=MOST_PAUSES)

    def rest(self, wait_s: float) -> None:
        """Note that the loop means to sleep for so long."""
        self._due += wait_s

    def note(self, now: float) -> None:
        """Note that the loop runs."""
        if now - self._due > PAUSE_S:
            self._pauses.append((self._due, now))
        self._due = now

    def since(self, start: float) -> List[Pause]:
        """Give the pauses that ended after ``start``, the oldest first."""
        return [pause for pause in self._pauses if pause[1] > start]

    def time_left(self, start: float, end: float) -> float:
        """Give how much of a span is left without its longest pauses."""
        lost = []
        for begun, ended in reversed(self._pauses):
            if ended <= start:
                break
            lost.append(max(0.0, min(ended, end) - max(begun, start)))
        return end - start - sum(sorted(lost)[-HIDING_PAUSES:])

    def is_over(self, start: float, look_s: float, now: float) -> bool:
        """Tell whether a look has had its time, or is to wait for it no longer."""
        if now - start < look_s:
            return False
        self.note(now)
        return now - start >= look_s + MOST_LONGER_S or self.time_left(start, now) >= look_s

    def is_spoilt(self, start: float, look_s: float, now: float) -> bool:
        """Tell whether pauses could have hidden the answer to a look: what is left of it without
        them is shorter than it must be."""
        return self.time_left(start, now) < look_s
