"""Writes results as they come: a line for what came together, so that a cut file is still good."""

import os
import time
from typing import Any, List, Optional

from ..core import loop as looping
from ..wire.batch import BATCH_FORMAT, BatchStart, PhaseClock, ResultHeader
from ..wire.frames import WIRE_VERSION
from ..wire.result_lines import LineMaker

FLUSH_S = 0.2
FLUSH_MESSAGES = 2048
STARTED = "%Y-%m-%dT%H:%M:%SZ"


class HostClock:
    """The host's wall clock (s UTC), shifted for tests."""

    def __init__(self, shift_s: float = 0.0) -> None:
        self.shift_s = shift_s

    def now(self) -> float:
        """Give the time of the wall clock."""
        return time.time() + self.shift_s

    def shift(self, message: Any) -> Any:
        """Give a message with the kernel's own times shifted as well."""
        return _shift_times(message, int(self.shift_s * 1000000000)) if self.shift_s else message


class RunResults:
    """What takes one host's results; ``failure``: why they could not be written, None where they
    could."""

    def __init__(self, clock: HostClock) -> None:
        self.failure: Optional[OSError] = None
        self.clock = clock

    def add(self, message: Any) -> None:
        """Take a message."""
        raise NotImplementedError

    def mark(self, number: int, phase: str) -> None:
        """Note that a phase of a round begins."""
        self.add(PhaseClock(number, phase, max(0.0, self.clock.now())))

    def flush(self) -> None:
        """Write what there is, where anything is written."""

    def close(self) -> None:
        """Write the rest, where anything is written."""


class ResultFile(RunResults):
    """Results that go to a file."""

    def __init__(
        self, loop: looping.Loop, descriptor: int, start: BatchStart, clock: HostClock
    ) -> None:
        RunResults.__init__(self, clock)
        self._loop = loop
        self._descriptor = descriptor
        self._maker = LineMaker(start.result_key)
        self._waiting: List[Any] = []
        self._timer: Optional[looping.Timer] = None
        started = time.strftime(STARTED, time.gmtime(clock.now()))
        self._write_line(
            self._maker.begin(
                ResultHeader(
                    BATCH_FORMAT, WIRE_VERSION, start.run, start.round, start.host, start.name,
                    started,
                )
            )
        )  # fmt: skip

    def add(self, message: Any) -> None:
        """Write a message soon."""
        self._waiting.append(self.clock.shift(message))
        if len(self._waiting) >= FLUSH_MESSAGES:
            self.flush()
        elif self._timer is None:
            self._timer = self._loop.call_later(FLUSH_S, self.flush)

    def mark(self, number: int, phase: str) -> None:
        """Write at once that a phase of a round begins."""
        RunResults.mark(self, number, phase)
        self.flush()

    def flush(self) -> None:
        """Write what there is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            messages, self._waiting = self._waiting, []
            self._write_line(self._maker.add(messages))

    def close(self) -> None:
        """Write the rest to the disk, as far as there is one."""
        self.flush()
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            self.failure = self.failure or error
        os.close(self._descriptor)

    def _write_line(self, line: bytes) -> None:
        try:
            while line and self.failure is None:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            self.failure = error


def _shift_times(value: Any, shift_ns: int) -> Any:
    """Give the same with all fields of nanoseconds shifted, inside of records and lists too."""
    if isinstance(value, list):
        return [_shift_times(each, shift_ns) for each in value]
    if not hasattr(value, "_fields"):
        return value
    return value._replace(
        **{
            name: each + shift_ns if name.endswith("_ns") else _shift_times(each, shift_ns)
            for name, each in zip(value._fields, value)
        }
    )
