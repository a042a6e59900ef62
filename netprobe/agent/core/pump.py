"""When an engine runs: its timer, and its window of young probes."""

from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple

from .loop import Loop, Timer

# An engine gives the loop back after this long, and looks at its deadlines this often.
SLICE_S = 0.02
TICK_S = 0.03
# Probes younger than this count towards the window; older ones are parked.
YOUNG_S = 0.1
# Retry interval and give-up time when the host runs out of source ports, descriptors or buffers.
SHORT_S = 0.1
SHORT_FOR_S = 10.0


class YoungBatch:
    """Probes that started together: how many are out, and whether they count towards the window."""

    __slots__ = ("is_young", "out")

    def __init__(self, count: int) -> None:
        self.out = count
        self.is_young = True


class Pump:
    """Calls ``run`` when it is due."""

    def __init__(self, loop: Loop, run: Callable[[], None]) -> None:
        self._loop = loop
        self._run = run
        self._timer: Optional[Timer] = None

    def wake(self, delay_s: float) -> None:
        """Run after ``delay_s``, or earlier if that is already arranged."""
        due = self._loop.now() + delay_s
        timer = self._timer
        if timer is not None and timer.call is not None:
            if timer.when <= due:
                return
            timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._run)

    def stop(self) -> None:
        """Do not run again."""
        if self._timer is not None:
            self._timer.cancel()


def short_for_long(waiting: Any, now: float) -> bool:
    """Tell whether an order could send nothing (a full neighbour table, a queue that drops), or an
    engine open no socket, for too long to wait on. Success sets its ``short_since`` to None."""
    if waiting.short_since is None:
        waiting.short_since = now
    return bool(now - waiting.short_since > SHORT_FOR_S)


class Window:
    """How many young probes may be out at once. Older ones do not count, so drops cost no rate."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.young = 0
        self._batches: Deque[Tuple[float, YoungBatch]] = deque()

    def room(self) -> int:
        """Tell how many more may start now."""
        return self._size - self.young

    def add(self, batch: YoungBatch, now: float, young_s: float = YOUNG_S) -> None:
        """Count a batch that has just started; it stays young for so long."""
        self.young += batch.out
        self._batches.append((now + young_s, batch))

    def answered(self, batch: YoungBatch, count: int = 1) -> None:
        """Note that so many probes of a batch are no longer out."""
        batch.out -= count
        if batch.is_young:
            self.young -= count

    def age(self, now: float) -> None:
        """Take out of the window whatever is no longer young."""
        batches = self._batches
        while batches and (now > batches[0][0] or not batches[0][1].out):
            batch = batches.popleft()[1]
            self.young -= batch.out
            batch.is_young = False
