"""Where the time of a run goes, and whom it waits for.

Work is noted as spans: a phase, and the host that it is about. At any moment those spans count that
wait for no span within them; a moment belongs to all of their phases in equal parts, so that the
phases together are the whole time.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Literal

from msgspec import Struct

Phase = Literal["starts", "listeners", "probes", "second looks", "walks", "waiting", "rehearsals"]

# What a run is doing in each phase, as its progress says it.
_DOES: dict[Phase, str] = {
    "starts": "starting the agent of", "listeners": "listening", "probes": "probing",
    "second looks": "looking again", "walks": "tracing the way", "waiting": "waiting",
    "rehearsals": "rehearsing",
}  # fmt: skip

# What is left: netprobe's own work while nothing is out.
OWN_WORK = "own work"


class Span(Struct, eq=False):
    """A piece of work that is going on; ``within``: how many pieces of it are."""

    phase: Phase
    about: str
    parent: Span | None
    within: int = 0


# The span that the running task works in.
_CURRENT: ContextVar[Span | None] = ContextVar("span", default=None)


class Phases:
    """The times of one run by phase, in seconds, and the spans that are going on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_s = clock()
        self._times_s: defaultdict[str, float] = defaultdict(float)
        # Spans that wait for no other, oldest first, and how many of each phase there are.
        self._innermost: dict[Span, None] = {}
        self._counts: Counter[str] = Counter()

    @contextmanager
    def during(self, phase: Phase, about: str) -> Iterator[None]:
        """Note that a piece of work goes on meanwhile."""
        parent = _CURRENT.get()
        span = Span(phase, about, parent)
        token = _CURRENT.set(span)
        self._share_time()
        if parent is not None:
            parent.within += 1
            self._drop_span(parent)
        self._add_span(span)
        try:
            yield
        finally:
            _CURRENT.reset(token)
            self._share_time()
            self._drop_span(span)
            if parent is not None:
                parent.within -= 1
                if not parent.within:
                    self._add_span(parent)

    async def pause(self, seconds: float, about: str) -> None:
        """Wait, because something is to be spared."""
        with self.during("waiting", about):
            await asyncio.sleep(seconds)

    @asynccontextmanager
    async def turn(
        self, lock: AbstractAsyncContextManager[object], about: str
    ) -> AsyncIterator[None]:
        """Hold a lock or a slot; until its turn comes the work waits."""
        with self.during("waiting", about):
            await lock.__aenter__()
        try:
            yield
        finally:
            await lock.__aexit__(None, None, None)

    def times_s(self) -> dict[str, float]:
        """Give the seconds of each phase so far."""
        self._share_time()
        return {phase: round(seconds, 3) for phase, seconds in self._times_s.items()}

    def tell_work(self) -> str:
        """Say what the run is doing: ``tracing the way from a to b and 3 more``; nothing: an empty
        text."""
        spans = list(self._innermost)
        if not spans:
            return ""
        phases = Counter(span.phase for span in spans)
        parts = []
        for phase, _ in phases.most_common(2):
            about = dict.fromkeys(span.about for span in spans if span.phase == phase)
            first, *others = about
            more = f" and {len(others)} more" if others else ""
            parts.append(f"{_DOES[phase]} {first}{more}")
        return ", ".join(parts)

    def _share_time(self) -> None:
        now_s = self._clock()
        passed_s, self._last_s = now_s - self._last_s, now_s
        total = len(self._innermost)
        if not total and passed_s:
            self._times_s[OWN_WORK] += passed_s
        for phase, count in self._counts.items():
            if count:
                self._times_s[phase] += passed_s * count / total

    def _add_span(self, span: Span) -> None:
        self._innermost[span] = None
        self._counts[span.phase] += 1

    def _drop_span(self, span: Span) -> None:
        if span in self._innermost:
            del self._innermost[span]
            self._counts[span.phase] -= 1
