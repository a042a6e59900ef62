"""The signals that end a run: Ctrl-C, a kill, and the end of the terminal."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import ExitStack, closing
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
# Its selector, and the two ends of the pipe by which signals wake it.
LOOP_FILES = 3
MakeLoop = Callable[[], asyncio.AbstractEventLoop]


def run_to_end(work: Coroutine[None, None, T]) -> T:
    """Run the work and give its result. Half a result is none: a signal is KeyboardInterrupt."""
    results: list[T] = []

    async def keep_result() -> None:
        results.append(await work)

    with closing(work):
        if run_until_signal(keep_result()):
            raise KeyboardInterrupt
    return results[0]


def run_until_signal(work: Coroutine[None, None, None], make_loop: MakeLoop | None = None) -> bool:
    """Run the work; the first signal ends it in order, each further one whatever that waits for.

    ``make_loop`` None: on an ordinary loop.

    Gives whether a signal ended it. Then one more, which may come while the caller reports, is
    passed over: it was meant for the work.
    """
    with closing(work):
        return run_on_loop(_until_signal(work), make_loop)


def run_on_loop(work: Coroutine[None, None, T], make_loop: MakeLoop | None = None) -> T:
    """Run the work on a loop of its own. Raises OSError where there is no room for its files."""
    with closing(work):
        _try_files()
        with asyncio.Runner(loop_factory=make_loop) as runner:
            return runner.run(work)


def _try_files() -> None:
    """Raise OSError where a loop cannot open its files: at its end it would print a traceback."""
    with ExitStack() as opened:
        for _ in range(LOOP_FILES):
            opened.enter_context(open(os.devnull, "rb"))


async def _until_signal(work: Coroutine[None, None, None]) -> bool:
    task = asyncio.ensure_future(work)
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    loop = asyncio.get_running_loop()
    numbers = _find_ending()
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
    except BaseExceptionGroup as group:
        raise _find_first(group) from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
            if stopped:
                _pass_over_one(number)
    return stopped


def _find_ending() -> list[signal.Signals]:
    """Find the signals that end a run; whoever started us by ``nohup`` wants no hangup."""
    ending = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    return ending


def _pass_over_one(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def pass_over(_number: int, _frame: FrameType | None) -> None:
        signal.signal(number, before)

    signal.signal(number, pass_over)


def _find_first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Find the first exception of what several tasks raised."""
    first = group.exceptions[0]
    return _find_first(first) if isinstance(first, BaseExceptionGroup) else first
