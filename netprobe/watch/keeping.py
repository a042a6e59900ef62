"""The ledger of a watch, and what begins and ends in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from netprobe.errors import NetprobeError
from netprobe.history.ledger import HistoryFile
from netprobe.history.outages import OutageReplay
from netprobe.model.outage import History, Outage, RunLook

# So many looks are kept while the ledger cannot be written.
MOST_UNWRITTEN = 10_000


class OutageEvents(Protocol):
    """Takes what begins and ends."""

    def began(self, outage: Outage) -> None:
        """Tell that an outage began."""

    def ended(self, outage: Outage) -> None:
        """Tell that an outage ended."""

    def changed(self, history: History) -> None:
        """Tell what is known after a look."""

    def trouble(self, words: str) -> None:
        """Tell what is wrong with the watch itself; empty words: no more."""


class LookKeeper:
    """Keeps looks in the ledger in their order, and tells what they change."""

    def __init__(self, ledger: HistoryFile, events: OutageEvents) -> None:
        self._ledger = ledger
        self._events = events
        self._replay = OutageReplay(endless=True)
        self._unwritten: deque[tuple[RunLook, bytes | None]] = deque(maxlen=MOST_UNWRITTEN)
        self._held: Callable[[], RunLook] | None = None
        self._trouble = ""
        for look in ledger.looks():
            self._replay.take(look)
        self.history: History = self._replay.history()

    @property
    def open(self) -> dict[str, Outage]:
        """The outages that go on, by their names."""
        return {one.id: one for one in self.history.outages if one.is_open}

    def hold(self, make: Callable[[], RunLook]) -> None:
        """Keep a look that changes nothing until the next one: then it was the last before that."""
        self._held = make

    def flush(self) -> None:
        """Write what is held."""
        if self._held is not None:
            make, self._held = self._held, None
            self._take_look(make(), None)

    def keep(self, look: RunLook, run: bytes | None = None) -> None:
        """Write a look; ``run``: its report, None where the one before holds for it."""
        self.flush()
        self._take_look(look, run)
        before = self.open
        self.history = self._replay.history()
        for name, outage in self.open.items():
            if name not in before:
                self._events.began(outage)
        for outage in self.history.outages:
            if outage.id in before and not outage.is_open:
                self._events.ended(outage)
        self._events.changed(self.history)

    def _take_look(self, look: RunLook, run: bytes | None) -> None:
        self._replay.take(look)
        self._unwritten.append((look, run))
        try:
            while self._unwritten:
                self._ledger.follow(*self._unwritten[0])
                self._unwritten.popleft()
        except NetprobeError as error:
            self._tell_trouble(str(error))
        else:
            self._tell_trouble("")

    def _tell_trouble(self, words: str) -> None:
        if words != self._trouble:
            self._trouble = words
            self._events.trouble(words)
