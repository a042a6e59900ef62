"""Hosts in maintenance: whatever is seen of them is no outage."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime

from netprobe.model.maintenance import MaintenanceWindow
from netprobe.watch.blind import BlindHosts

REASON = "maintenance"


class Maintenance:
    """The windows that hold now. ``tell`` gets a line when a host's maintenance begins and ends."""

    def __init__(
        self, tell: Callable[[str], None], read_wall: Callable[[], float] = time.time
    ) -> None:
        self._tell = tell
        self._read_wall = read_wall
        self._windows: Sequence[MaintenanceWindow] = ()
        self._now: set[str] = set()

    def take(self, windows: Sequence[MaintenanceWindow], watched: Collection[str]) -> None:
        """Go on with other windows; hosts that are not watched may be misspelt."""
        self._windows = windows
        for host in sorted({host for one in windows for host in one.hosts} - {*watched}):
            self._tell(f"maintenance of {host}: no host of this name is watched")

    def find(self, watched: Collection[str]) -> BlindHosts:
        """Find the hosts that are in maintenance now. By the wall clock, as people plan it."""
        now = self._read_wall()
        ends: dict[str, float] = {}
        for window in self._windows:
            for host in window.hosts if window.covers(now) else ():
                if host in watched:
                    ends[host] = max(window.until, ends.get(host, 0.0))
        self._tell_changes(ends)
        return {host: (REASON, _word_end(end)) for host, end in ends.items()}

    def _tell_changes(self, ends: dict[str, float]) -> None:
        for host in sorted(ends.keys() - self._now):
            self._tell(f"{host} {_word_end(ends[host])}")
        for host in sorted(self._now - ends.keys()):
            self._tell(f"{host} is in maintenance no more")
        self._now = {*ends}


def _word_end(seconds: float) -> str:
    at = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return f"is in maintenance until {at}"
