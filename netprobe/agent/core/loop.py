"""One epoll loop with timers: everything that the agent does happens in it, in one thread.

Not asyncio: a probe is no task, and importing asyncio costs a third of the agent's start.
Engines with thousands of sockets keep an epoll descriptor of their own and watch that.
"""

import heapq
import itertools
import select
import time
from typing import Callable, Dict, List, Optional, Tuple

from .pauses import Pauses

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
BATCH = 4096
# A loop that has nothing to do looks at the clock so often, to know its pauses.
WATCH_S = 0.5


class Timer:
    """A call that is due at ``when`` (seconds of ``Loop.now``) unless it is cancelled."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call: Optional[Callable[[], None]] = call

    def cancel(self) -> None:
        """Forget the call; harmless when it was made already."""
        self.call = None


class Loop:
    """Watch descriptors, run timers, until ``stop``."""

    now = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: Dict[int, Callable[[int], None]] = {}
        self._timers: List[Tuple[float, int, Timer]] = []
        self._sequence = itertools.count()
        self._running = False
        # When this turn began: what had come by then is read before a timer runs.
        self.turn_at = self.now()
        self.pauses = Pauses(self.turn_at)

    def watch(self, fd: int, events: int, callback: Callable[[int], None]) -> None:
        """Call ``callback(events)`` whenever the descriptor is ready; level-triggered."""
        self._callbacks[fd] = callback
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        """Wait for other events on a watched descriptor."""
        self._epoll.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Stop watching; call it before the descriptor is closed."""
        if self._callbacks.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_later(self, delay_s: float, call: Callable[[], None]) -> Timer:
        """Run ``call`` once after ``delay_s`` seconds."""
        timer = Timer(self.now() + delay_s, call)
        heapq.heappush(self._timers, (timer.when, next(self._sequence), timer))
        return timer

    def run(self) -> None:
        """Serve until ``stop``."""
        self._running = True
        while self._running:
            wait_s = self._find_wait_s()
            self.pauses.rest(wait_s)
            ready = self._epoll.poll(wait_s, BATCH)
            self.turn_at = self.now()
            self.pauses.note(self.turn_at)
            # Where the process was stopped, its poll gives nothing, whatever has come meanwhile.
            self._serve_ready(ready or self._epoll.poll(0, BATCH))
            self._fire_timers()

    def stop(self) -> None:
        """End ``run`` after the present batch."""
        self._running = False

    def _find_wait_s(self) -> float:
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return WATCH_S
        return min(WATCH_S, max(0.0, self._timers[0][0] - self.now()))

    def _serve_ready(self, ready: List[Tuple[int, int]]) -> None:
        for fd, events in ready:
            callback = self._callbacks.get(fd)
            if callback is not None:
                callback(events)

    def _fire_timers(self) -> None:
        while self._timers and self._timers[0][0] <= self.turn_at:
            timer = heapq.heappop(self._timers)[2]
            if timer.call is not None:
                call, timer.call = timer.call, None
                call()
