"""Back ends fail one after the other: how soon a balancer takes each out, and back in.

Sources dial all the while. A back end is out when so many connections in a row went elsewhere that
chance cannot explain it: as many as find each back end of a pool, by the share that it has. What is
lost tells of none.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from netprobe.errors import AgentError
from netprobe.model.balanced import Removal
from netprobe.probe.rehearsals.back_end_ports import BackEndPorts
from netprobe.probe.rehearsals.dials import DIALS_EACH, BalancerDial, Dialling, DiallingSource

# So long a back end gets connections that is never out, and so long it is waited for afterwards.
REMOVED_S, BACK_S = 45.0, 45.0
# To know that one is out takes some more dials.
MORE_S = 10.0
# Dials of so many seconds tell who reaches a back end before it fails.
WITNESS_S = 10.0
PAUSE_S = 0.2
# Who needs so many times the usual number of dials has a small share of the connections.
SMALL_SHARE = 3

ReadClock = Callable[[], float]
NoteDial = Callable[[DiallingSource, BalancerDial], None]


def _note_nothing(*_: object) -> None:
    """Note nothing of a dial: FailingBackEnds keeps the recent ones itself."""


class FailingBackEnds:
    """Lets the back ends of a pool fail. ``ends_at``: no longer than that; ``watches_return``:
    whether it is waited until connections come again, which clients that stick may never send."""

    def __init__(
        self, dialling: Dialling, hosts: Mapping[str, BackEndPorts], ends_at: float,
        read_clock: ReadClock, watches_return: bool,
    ) -> None:  # fmt: skip
        self.removals: list[Removal] = []
        self._dialling = dialling
        self._hosts = hosts
        self._ends_at = ends_at
        self._read_clock = read_clock
        self._watches_return = watches_return
        self._recent = [(one, dial) for one in dialling.sources for dial in one.dials]

    async def run(self) -> None:
        """Let one after the other fail while there is time. Raises NotPlayedError and AgentError
        where a back end cannot go on."""
        for name, host in self._hosts.items():
            if name in self._dialling.pool and self._has_time():
                await self._try_back_end(name, host)

    def _has_time(self) -> bool:
        """Tell whether the next may be out by the end: this balancer's pace is known by then."""
        longest_s = max((one.kept_ms / 1000 for one in self.removals), default=0.0)
        return self._read_clock() + longest_s < self._ends_at

    async def _try_back_end(self, name: str, host: BackEndPorts) -> None:
        witnesses = await self._find_witnesses(name, host.is_closing)
        if not witnesses or (host.is_closing and not self._reaches_others(name)):
            return
        await host.fail()
        enough = count_enough(name, self._dialling.sources, self._dialling.enough)
        watch = RemovalWatch(name, self._dialling, host.is_closing, self._read_clock(), enough)
        await self._dial_until(witnesses, watch.note, watch.is_over, REMOVED_S + MORE_S)
        watched_s = self._read_clock() - watch.failed_at
        await host.heal()
        removal = Removal(name, watch.is_out, watch.kept_ms, round(watched_s))
        if watch.is_out and self._watches_return:
            removal = await self._watch_return(removal)
        self.removals.append(removal)

    async def _find_witnesses(self, name: str, is_closing: bool) -> list[DiallingSource]:
        """Find the sources that still reach a back end, by dials of the last seconds. Where it will
        be known by connections that are lost, those that lose some anyhow are none."""
        if is_closing:  # what was lost before is no source's own fault
            self._recent.clear()
        since = self._read_clock() - WITNESS_S
        self._recent = [one for one in self._recent if one[1].at >= since]

        def is_known() -> bool:
            return len(self._recent) >= self._dialling.enough and bool(self._list_arrived(name))

        await self._dial_until(self._dialling.usable, _note_nothing, is_known, WITNESS_S)
        losing = {
            source.name for source, dial in self._recent
            if is_closing and self._dialling.is_lost(dial)
        }  # fmt: skip
        return [one for one in self._list_arrived(name) if one.name not in losing]

    def _reaches_others(self, name: str) -> bool:
        """Tell whether dials of the last seconds reached another back end: where there is none, all
        are lost while a port is closed, whether the balancer took it out or not."""
        return any(self._dialling.find(dial) not in (None, name) for _, dial in self._recent)

    def _list_arrived(self, name: str) -> list[DiallingSource]:
        arrived = {
            source.name: source for source, dial in self._recent
            if source.error is None and self._dialling.find(dial) == name
        }  # fmt: skip
        return [*arrived.values()]

    async def _watch_return(self, removal: Removal) -> Removal:
        begun = self._read_clock()
        back: list[float] = []
        elsewhere: list[float] = []
        enough = count_enough(removal.back_end, self._dialling.sources, self._dialling.enough)

        def note(_: DiallingSource, dial: BalancerDial) -> None:
            if self._dialling.find(dial) == removal.back_end:
                back.append(dial.at - begun)
            elif not self._dialling.is_lost(dial):
                elsewhere.append(dial.at)

        await self._dial_until(self._dialling.usable, note, lambda: bool(back), BACK_S)
        is_known = back or len(elsewhere) >= enough
        watched_s = self._read_clock() - begun if is_known else 0.0
        back_ms = round(min(back) * 1000) if back else None
        return removal._replace(back_ms=back_ms, back_watched_s=round(watched_s))

    async def _dial_until(
        self, sources: Iterable[DiallingSource], note: NoteDial, is_done: Callable[[], bool],
        limit_s: float,
    ) -> None:  # fmt: skip
        """Dial from sources side by side; what is still on its way at the end counts, too."""
        sources = list(sources)
        ends_at = min(self._ends_at, self._read_clock() + limit_s)

        def is_over() -> bool:
            return is_done() or self._read_clock() >= ends_at

        while not is_over() and any(one.error is None for one in sources):
            await asyncio.gather(
                *(self._dial_on(one, partial(note, one), is_over) for one in sources)
            )

    async def _dial_on(
        self, source: DiallingSource, note: Callable[[BalancerDial], None],
        is_over: Callable[[], bool],
    ) -> None:  # fmt: skip
        try:
            while source.error is None and not is_over():
                dial = await self._dialling.dial(source)
                self._recent.append((source, dial))
                note(dial)
                await asyncio.sleep(PAUSE_S)
        except AgentError as error:
            source.error = error


def count_enough(name: str, sources: Iterable[DiallingSource], usual: int) -> int:
    """Count the dials that find a back end however small the share of theirs that it got since all
    were there: a balancer may give it less weight."""
    reached = [source.reached_since for source in sources]
    total = sum(sum(one.values()) for one in reached)
    own = max(1, sum(one.get(name, 0) for one in reached))
    # What is but a little less than others get may be chance.
    rare = math.ceil(DIALS_EACH * total / own)
    return rare if rare > SMALL_SHARE * usual else usual


class RemovalWatch:
    """Notes dials since a back end fails: when the last went there, and how many went elsewhere
    since. ``enough`` of these: it is out."""

    def __init__(
        self, name: str, dialling: Dialling, is_closing: bool, failed_at: float, enough: int
    ) -> None:
        self.failed_at = failed_at
        self._enough = enough
        self._name = name
        self._dialling = dialling
        self._is_closing = is_closing
        self._last_at = failed_at
        self._elsewhere: list[float] = []

    def note(self, _: DiallingSource, dial: BalancerDial) -> None:
        """Note where one went. That of a closed port has no answer; of others, what has none went
        nowhere."""
        is_lost = self._dialling.is_lost(dial)
        if self._dialling.find(dial) == self._name or (self._is_closing and is_lost):
            self._last_at = max(self._last_at, dial.at)
        elif not is_lost:
            self._elsewhere.append(dial.at)
        self._elsewhere = [at for at in self._elsewhere if at > self._last_at]

    @property
    def is_out(self) -> bool:
        """Whether chance cannot explain that no connection goes there any more."""
        return len(self._elsewhere) >= self._enough

    def is_over(self) -> bool:
        """Tell whether there is nothing more to see."""
        return self.is_out or self.kept_ms >= REMOVED_S * 1000

    @property
    def kept_ms(self) -> int:
        """How long it got connections."""
        return round((self._last_at - self.failed_at) * 1000)
