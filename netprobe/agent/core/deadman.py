"""The dead man's switch: an agent whose coordinator has gone silent closes everything and exits."""

from typing import Callable

from . import loop as looping


class DeadMan:
    """Call ``expired`` once nothing was heard for ``silence_s`` seconds.

    ``hear`` only notes the time, so it costs nothing per frame. The loop reads its input before it
    runs timers, so an agent that was itself stopped for a while does not end.
    """

    def __init__(self, loop: looping.Loop, silence_s: float, expired: Callable[[], None]) -> None:
        self._loop = loop
        self._expired = expired
        self._heard_at = loop.now()
        self._silence_s = silence_s
        self._timer = loop.call_later(silence_s, self._end_if_silent)

    def allow(self, silence_s: float) -> None:
        """Change how long the silence may be."""
        self._silence_s = silence_s
        self._timer.cancel()
        self._end_if_silent()

    def hear(self) -> None:
        """Something arrived from the coordinator."""
        self._heard_at = self._loop.now()

    def _end_if_silent(self) -> None:
        left_s = self._heard_at + self._silence_s - self._loop.now()
        if left_s <= 0:
            self._expired()
        else:
            self._timer = self._loop.call_later(left_s, self._end_if_silent)
