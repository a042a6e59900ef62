"""An asyncio loop whose clock jumps: time passes only when nothing else is left to do.

With agents that answer at once, pauses and deadlines cost nothing and still come in their order.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

Answer = TypeVar("Answer")
Arguments = TypeVarTuple("Arguments")


class JumpingLoop(asyncio.SelectorEventLoop):
    """Runs the next timer at once where no descriptor is ready and nobody else has work."""

    def __init__(self) -> None:
        self._jumped_s = 0.0
        super().__init__(_JumpingSelector(self._pass_time))

    def time(self) -> float:
        """Give the loop's own time, in seconds."""
        return self._jumped_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], Answer], *args: *Arguments
    ) -> asyncio.Future[Answer]:
        """Do the work at once, where another loop gives it to a thread: the clock does not move."""
        future: asyncio.Future[Answer] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _pass_time(self, seconds: float) -> None:
        self._jumped_s += seconds


class _JumpingSelector(selectors.BaseSelector):
    """Waits for descriptors (signals have one) only where there is no timer to run."""

    def __init__(self, jump: Any) -> None:
        self._selector = selectors.DefaultSelector()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Give what is ready now; else the time that was to be waited has passed."""
        ready = self._selector.select(timeout if timeout is None else 0)
        if not ready and timeout:
            self._jump(timeout)
        return ready

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.modify(fileobj, events, data)

    def close(self) -> None:
        self._selector.close()

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._selector.get_map()
