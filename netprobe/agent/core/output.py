"""The agent's way out: frames to a descriptor that may never block the loop."""

import os
import select
from collections import deque
from typing import Any, Callable, Deque, Tuple

from ..wire.frames import QUEUE_LIMIT_BYTES, encode_frame
from . import loop as looping

SLICE_BYTES = 256 * 1024


class FrameQueue:
    """A queue of frames in front of a non-blocking descriptor.

    ``on_drained`` is called when the queue, after it was above its limit, is below half of it.
    ``on_closed`` is called once the other end is closed.
    """

    def __init__(
        self,
        loop: looping.Loop,
        fd: int,
        on_drained: Callable[[], None],
        on_closed: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_drained = on_drained
        self._on_closed = on_closed
        self._pieces: Deque[memoryview] = deque()
        self._queued = 0
        self._watching = False
        self._was_full = False
        self._closed = False
        os.set_blocking(fd, False)

    @property
    def full(self) -> bool:
        """Whether so much waits that no new probe should start."""
        return self._queued > QUEUE_LIMIT_BYTES

    def send(self, message: Tuple[Any, ...]) -> None:
        """Queue one frame and write what the descriptor takes now."""
        self.write(encode_frame(message))

    def write(self, data: bytes) -> None:
        """Queue bytes (the hello line is no frame)."""
        if self._closed:
            return
        self._pieces.append(memoryview(data))
        self._queued += len(data)
        # Engines that read ``full`` now wait until ``on_drained`` is called.
        self._was_full = self._was_full or self.full
        if not self._watching:
            self._write_pieces()

    def _write_pieces(self) -> None:
        try:
            while self._pieces:
                piece = self._pieces[0]
                written = os.write(self._fd, piece[:SLICE_BYTES])
                self._queued -= written
                if written == len(piece):
                    self._pieces.popleft()
                else:
                    self._pieces[0] = piece[written:]
        except BlockingIOError:
            pass
        except OSError:
            self._give_up()
            return
        self._watch_or_rest()

    def _watch_or_rest(self) -> None:
        waiting = bool(self._pieces)
        if waiting and not self._watching:
            self._loop.watch(self._fd, looping.WRITE, lambda _events: self._write_pieces())
        elif self._watching and not waiting:
            self._loop.unwatch(self._fd)
        self._watching = waiting
        if self._was_full and self._queued < QUEUE_LIMIT_BYTES // 2:
            self._was_full = False
            self._on_drained()

    def _give_up(self) -> None:
        self._closed = True
        self._pieces.clear()
        self._queued = 0
        if self._watching:
            self._watching = False
            self._loop.unwatch(self._fd)
        self._on_closed()

    def finish(self, wait_s: float) -> None:
        """Write what is left; give up on a reader that takes nothing for ``wait_s``."""
        poller = select.poll()
        poller.register(self._fd, select.POLLOUT)
        while self._pieces and not self._closed:
            if not poller.poll(int(wait_s * 1000)):
                break
            self._write_pieces()
        self._closed = True
