"""The results of connects: whole batches of events at once, because most connects end alike.

connect() gives the result of a connect that ended, and makes its socket new. An ICMP error that
arrives while connect() is at work is in the error queue only, and the kernel still counts the
connect as out; then shutdown() makes the socket new.
"""

import errno
import select
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple

from ...core.pump import Window
from ...net.errqueue import ConnectError, next_causes
from ...wire import replies
from ...wire.failures import (
    ENDED_AFTER_OPEN,
    HOST_UNREACHABLE,
    IN_PROGRESS,
    REFUSED,
    name_of,
)
from ...wire.parts import IcmpFact, OutcomeKind
from ..outcomes import kind
from .socket_pool import ConnectBatch, SocketPool, connect_ex, pick

if TYPE_CHECKING:
    from .engine import TcpEngine

# A socket whose connect lasted longer may have retransmitted. Before Linux 5.6 connect(AF_UNSPEC)
# did not clear that counter, so such a socket is not used again. The second SYN goes after 1 s.
REUSE_WITHIN_S = 0.9
# A slower result may be a dead neighbour, or the answer to a second SYN; each is handled by itself.
SWIFT_S = 0.4

OPEN = kind("connect", answer=replies.UNASKED)

_FD, _MASK = itemgetter(0), itemgetter(1)
EpollEvent = Tuple[int, int]
# Connects of one batch that have news.
ConnectGroup = Tuple[ConnectBatch, Sequence[int]]


class Completions:
    """Notes results that many connects share; ``owner`` handles the other connects one by one."""

    def __init__(
        self, owner: "TcpEngine", pool: SocketPool, live: Dict[int, ConnectBatch], window: Window
    ) -> None:
        self._owner = owner
        self._pool = pool
        self._live = live
        self._window = window

    def take_events(self, events: List[EpollEvent], now: float) -> List[ConnectGroup]:
        """Handle the connects of these events; gives the refused ones, for ``sort_refused``."""
        masks = set(map(_MASK, events))
        if select.EPOLLERR in masks:
            # An error waits, but the connect is still out.
            queued, events = _split_events(events, select.EPOLLERR)
            for batch, indices in self._group_events(queued):
                self._read_queued(batch, indices, now)
        if select.EPOLLOUT in masks:
            # It may write, and nothing else: it has opened.
            ready, events = _split_events(events, select.EPOLLOUT)
            for batch, indices in self._group_events(ready):
                self._end_opened(batch, indices, now)
        refused: List[ConnectGroup] = []
        for batch, indices in self._group_events(events):
            refused += self._read_results(batch, indices, now)
        return refused

    def sort_refused(
        self, refused: List[ConnectGroup], events: List[EpollEvent], now: float
    ) -> None:
        """Tell resets from rejects: EPOLLERR stays set only where the error queue has an entry.

        Reading a connect's result wakes its descriptor once more, so a reset costs no system call
        of its own. The queue of a descriptor that was not woken is read in any case.
        """
        masks = set(map(_MASK, events))
        if any(mask & select.EPOLLERR for mask in masks):
            events = [event for event in events if not event[1] & select.EPOLLERR]
        clean = set(map(_FD, events))
        for batch, indices in refused:
            if clean.issuperset(pick(batch.fds, indices)):
                self._end_alike(batch, indices, errno.ECONNREFUSED, None, now, False)
                continue
            resets = [index for index in indices if batch.fds[index] in clean]
            if resets:
                self._end_alike(batch, resets, errno.ECONNREFUSED, None, now, False)
            rest = [index for index in indices if batch.fds[index] not in clean]
            self._end_failed(batch, rest, [errno.ECONNREFUSED] * len(rest), now)

    def _group_events(self, events: List[EpollEvent]) -> List[ConnectGroup]:
        """Give the connects that these events are about, by batch."""
        if not events:
            return []
        fds = list(map(_FD, events))
        batches = set(map(self._live.get, fds))
        if len(batches) == 1:
            return [(each, each.indices(fds)) for each in batches if each is not None]
        groups: Dict[ConnectBatch, List[int]] = {}
        for fd in fds:
            batch = self._live.get(fd)
            if batch is not None:
                groups.setdefault(batch, []).append(fd)
        return [(batch, batch.indices(some)) for batch, some in groups.items()]

    def _read_results(
        self, batch: ConnectBatch, indices: Sequence[int], now: float
    ) -> List[ConnectGroup]:
        """Read the results of connects; gives the refused ones."""
        socks, addresses = pick(batch.socks, indices), pick(batch.addresses, indices)
        codes = list(map(connect_ex, socks, addresses))
        if codes.count(errno.ECONNREFUSED) == len(codes):
            return [(batch, indices)]
        both = list(zip(indices, codes))
        opened = [index for index, code in both if code == 0]
        if opened:
            self._end_opened(batch, opened, now)
        failed: List[Tuple[int, int]] = []
        for index, code in both:
            if code in IN_PROGRESS or code in ENDED_AFTER_OPEN:
                self._owner.take_result((batch, index), code)
            elif code not in (0, errno.ECONNREFUSED):
                failed.append((index, code))
        self._end_failed(batch, [index for index, _ in failed], [code for _, code in failed], now)
        refused = [index for index, code in both if code == errno.ECONNREFUSED]
        return [(batch, refused)] if refused else []

    def _read_queued(self, batch: ConnectBatch, indices: Sequence[int], now: float) -> None:
        """End connects that are out and have an error in their queue."""
        causes = next_causes(pick(batch.socks, indices), pick(batch.addresses, indices))
        first = causes[0]
        if first is not None and causes.count(first) == len(causes):
            self._end_alike(batch, indices, first[0], first, now, True)
            return
        groups: Dict[ConnectError, List[int]] = {}
        for index, cause in zip(indices, causes):
            if cause is not None:
                groups.setdefault(cause, []).append(index)
        for cause, some in groups.items():
            self._end_alike(batch, some, cause[0], cause, now, True)

    def _end_failed(
        self, batch: ConnectBatch, indices: Sequence[int], codes: List[int], now: float
    ) -> None:
        """End connects that failed; those with the same error end together."""
        alike: Dict[Tuple[int, Optional[ConnectError]], List[int]] = {}
        causes = next_causes(pick(batch.socks, indices), pick(batch.addresses, indices))
        for index, code, cause in zip(indices, codes, causes):
            alike.setdefault((code, cause), []).append(index)
        for (code, cause), some in alike.items():
            self._end_alike(batch, some, code, cause, now, False)

    def _end_alike(
        self,
        batch: ConnectBatch,
        indices: Sequence[int],
        code: int,
        cause: Optional[ConnectError],
        now: float,
        still_out: bool,
    ) -> None:
        """End connects with the same error; ``still_out``: the kernel still counts them as out."""
        elapsed_s = now - batch.started(indices[0])
        if elapsed_s > SWIFT_S:
            for index in indices:
                self._owner.take_failure((batch, index), cause, code)
            return
        self.forget_connects(batch, indices)
        shelf = batch.part.order.shelf
        if still_out:
            self._pool.call_off(shelf, pick(batch.socks, indices))
        else:
            shelf.extend(pick(batch.socks, indices))
        fact = None if cause is None else cause[1]
        what = failure_kind(code, fact, elapsed_of(code, elapsed_s))
        self._note_outcome(batch, indices, what, now)

    def _end_opened(self, batch: ConnectBatch, indices: Sequence[int], now: float) -> None:
        order = batch.part.order
        late = now - batch.started(indices[0]) > REUSE_WITHIN_S
        if batch.part.mode != "connect" or late or order.may_meet_itself():
            for index in indices:
                self._owner.take_result((batch, index), 0)
            return
        self.forget_connects(batch, indices)
        # A FIN: a service that listens there sees a polite client.
        self._pool.part(order.shelf, pick(batch.socks, indices), now)
        self._note_outcome(batch, indices, OPEN, now)

    def forget_connects(self, batch: ConnectBatch, indices: Sequence[int]) -> None:
        """Forget connects: they are no longer out."""
        live = self._live
        for fd in pick(batch.fds, indices):
            del live[fd]
        self._window.answered(batch, len(indices))

    def _note_outcome(
        self, batch: ConnectBatch, indices: Sequence[int], what: OutcomeKind, now: float
    ) -> None:
        """Note the outcome of connects."""
        order = batch.part.order
        rtt_s: Optional[float] = None
        if is_at_host(what, order.target.address):
            rtt_s = now - batch.started(sum(indices) / len(indices))
            self._owner.learn_rtt(order, now - batch.started(indices[0]))
        order.outcomes.add_many(pick(batch.ports, indices), what, rtt_s, batch.look)
        self._owner.settle_ports(order, len(indices))


def is_at_host(what: OutcomeKind, address: str) -> bool:
    """Tell whether the destination itself answered: it opened, or by a reset or an ICMP error."""
    if what.icmp is not None:
        return what.icmp.offender == address
    return what.failure in (None, REFUSED)


@lru_cache(maxsize=256)
def failure_kind(code: int, fact: Optional[IcmpFact], elapsed_ms: Optional[int]) -> OutcomeKind:
    """Give the outcome of a connect that failed."""
    return kind("connect", name_of(code), fact, elapsed_ms=elapsed_ms)


def elapsed_of(code: int, elapsed_s: float) -> Optional[int]:
    """Give the time that an outcome reports: of "host unreachable" only, rounded to 100 ms."""
    return round(elapsed_s * 10) * 100 if name_of(code) == HOST_UNREACHABLE else None


def _split_events(events: List[EpollEvent], mask: int) -> Tuple[List[EpollEvent], List[EpollEvent]]:
    """Give the events with exactly this mask, and all others."""
    those = [event for event in events if event[1] == mask]
    if len(those) == len(events):
        return those, []
    return those, [event for event in events if event[1] != mask]
