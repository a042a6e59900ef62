"""What came back on connects: whole batches of events at once, because most of them end alike.

A connect that ended is asked for its result by connect(), which also makes its socket new. What an
ICMP error ended while connect() was at work is still out, as far as the kernel is concerned: then
the error queue knows, and shutdown() makes the socket new.
"""

import errno
import select
import socket
from functools import lru_cache
from operator import itemgetter
from typing import Any, Dict, List, Optional, Tuple

from . import replies
from .errqueue import Cause, IcmpFact, next_cause
from .failures import ENDED_AFTER_OPEN, HOST_UNREACHABLE, IN_PROGRESS, REFUSED, name_of
from .flights import FD, LOOK, SOCK, STARTED, TO, Flight, by_batch, connect_ex
from .outcomes import Kind, kind
from .pool import Pool
from .pump import Window

# A socket whose connect lasted longer may have retransmitted. Before Linux 5.6 connect(AF_UNSPEC)
# did not clear that counter, so such a socket is not used again.
REUSE_WITHIN_S = 0.9
# What took longer may be a dead neighbour, or a second SYN: each is looked at by itself.
SWIFT_S = 0.4
NOT_MEASURED_S = -1.0

OPEN = kind("connect", answer=replies.UNASKED)
RESET_BY_PEER = kind("connect", REFUSED)

_FD, _MASK = itemgetter(0), itemgetter(1)
# A connect that failed: errno, and what the error queue says.
Failed = Tuple[Flight, int, Optional[Cause]]


class Arrivals:
    """Notes what is the same for many connects; ``owner`` sees to the others one by one."""

    def __init__(self, owner, pool, live, window):
        # type: (Any, Pool, Dict[int, Flight], Window) -> None
        self._owner = owner
        self._pool = pool
        self._live = live
        self._window = window

    def take(self, events, now):
        # type: (List[Tuple[int, int]], float) -> List[Flight]
        """Handle what these events are about; gives what was refused, for ``sort``."""
        flights = [each for each in map(self._live.get, map(_FD, events)) if each is not None]
        masks = set(map(_MASK, events))
        if select.EPOLLERR in masks:
            flights = self._take_queued(dict(events), flights, now)
        if select.EPOLLOUT in masks:
            flights = self._take_open(dict(events), flights, now)
        if not flights:
            return []
        codes = list(map(connect_ex, map(SOCK, flights), map(TO, flights)))
        if codes.count(errno.ECONNREFUSED) == len(codes):
            return flights
        both = list(zip(flights, codes))
        self._opened([flight for flight, code in both if code == 0], now)
        failed = []  # type: List[Failed]
        for flight, code in both:
            if code in IN_PROGRESS or code in ENDED_AFTER_OPEN:
                self._owner.news(flight, code)
            elif code not in (0, errno.ECONNREFUSED):
                failed.append((flight, code, next_cause(flight[4], flight[1])))
        self._failed(failed, now)
        return [flight for flight, code in both if code == errno.ECONNREFUSED]

    def sort(self, refused, events, now):
        # type: (List[Flight], List[Tuple[int, int]], float) -> None
        """Tell resets from rejects: EPOLLERR is left only where something is in the error queue.

        Asking a connect for its result has woken its descriptor once more, so a reset costs no
        system call of its own. A descriptor that was not woken is read in any case.
        """
        fds = set(map(FD, refused))
        resets = refused
        if fds.difference(map(_FD, events)) or _any_error(events):
            clean = fds.intersection(fd for fd, mask in events if not mask & select.EPOLLERR)
            resets = [flight for flight in refused if flight[6] in clean]
            self._failed(
                [
                    (flight, errno.ECONNREFUSED, next_cause(flight[4], flight[1]))
                    for flight in refused
                    if flight[6] not in clean
                ],
                now,
            )
        if resets and now - min(map(STARTED, resets)) > SWIFT_S:
            slow = [flight for flight in resets if now - flight[3] > SWIFT_S]
            resets = [flight for flight in resets if now - flight[3] <= SWIFT_S]
            for flight in slow:
                self._owner.refused(flight, None, errno.ECONNREFUSED)
        for group in by_batch(resets):
            self._land(group)
            group[0][0].order.shelf.extend(map(SOCK, group))
            self._note(group, RESET_BY_PEER, now, True)

    def _take_queued(self, masks, flights, now):
        # type: (Dict[int, int], List[Flight], float) -> List[Flight]
        """Connects that are out and have an error waiting; gives all others."""
        queued = [flight for flight in flights if masks[flight[6]] == select.EPOLLERR]
        failed = []  # type: List[Failed]
        for flight in queued:
            cause = next_cause(flight[4], flight[1])
            if cause is not None:
                failed.append((flight, cause[0], cause))
        self._failed(failed, now, still_out=True)
        return [flight for flight in flights if masks[flight[6]] != select.EPOLLERR]

    def _take_open(self, masks, flights, now):
        # type: (Dict[int, int], List[Flight], float) -> List[Flight]
        """Connects that may write, and nothing else: they have opened; gives all others."""
        self._opened([each for each in flights if masks[each[6]] == select.EPOLLOUT], now)
        return [each for each in flights if masks[each[6]] != select.EPOLLOUT]

    def _failed(self, failed, now, still_out=False):
        # type: (List[Failed], float, bool) -> None
        """Connects that something ended; those that the same ended go together."""
        alike = {}  # type: Dict[Tuple[int, Optional[Cause]], List[Flight]]
        for flight, code, cause in failed:
            if now - flight[3] > SWIFT_S:
                self._owner.refused(flight, cause, code)
            else:
                alike.setdefault((code, cause), []).append(flight)
        for (code, cause), flights in alike.items():
            fact = None if cause is None else cause[1]
            for group in by_batch(flights):
                self._land(group)
                shelf, address = group[0][0].order.shelf, group[0][1][0]
                if still_out:
                    self._call_off(shelf, group)
                else:
                    shelf.extend(map(SOCK, group))
                for elapsed_ms, some in _by_time(group, code, now):
                    what = failure_kind(code, fact, elapsed_ms)
                    self._note(some, what, now, is_at_host(what, address))

    def _call_off(self, shelf, flights):
        # type: (List[socket.socket], List[Flight]) -> None
        """End connects that are out, so that their sockets can connect again."""
        for flight in flights:
            sock = flight[4]
            try:
                # Of a socket that is connecting this is what connect(AF_UNSPEC) does.
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                self._pool.drop(sock)
            else:
                shelf.append(sock)

    def _opened(self, flights, now):
        # type: (List[Flight], float) -> None
        for group in by_batch(flights):
            order = group[0][0].order
            bare = [] if order.may_meet_itself() else [f for f in group if f[0].mode == "connect"]
            if len(bare) != len(group):
                for flight in group:
                    if flight not in bare:
                        self._owner.news(flight, 0)
            if bare:
                self._land(bare)
                for flight in bare:
                    # A FIN: a service that listens there sees a polite client.
                    self._pool.part(order.shelf, flight[4], now)
                self._note(bare, OPEN, now, True)

    def _land(self, flights):
        # type: (List[Flight]) -> None
        """These connects of one batch are no longer out."""
        live = self._live
        for flight in flights:
            del live[flight[6]]
        self._window.answered(flights[0][5], len(flights))

    def _note(self, flights, what, now, at_host):
        # type: (List[Flight], Kind, float, bool) -> None
        """The outcome of connects of one order; ``at_host``: the destination itself answered."""
        order = flights[0][0].order
        if at_host:
            rtts_s = [now - flight[3] for flight in flights]
            self._owner.answered(order, max(rtts_s))
        else:
            rtts_s = [NOT_MEASURED_S] * len(flights)
        ports = [flight[1][1] for flight in flights]
        order.outcomes.add_many(ports, what, rtts_s, map(LOOK, flights))
        self._owner.settle(order, len(flights))


def is_at_host(what, address):
    # type: (Kind, str) -> bool
    """Whether the destination itself said this: a reset, or an ICMP error of its own."""
    failure, fact = what[1], what[2]
    return fact[2] == address if fact is not None else failure == REFUSED


@lru_cache(maxsize=256)
def failure_kind(code, fact, elapsed_ms):
    # type: (int, Optional[IcmpFact], Optional[int]) -> Kind
    """The outcome of a connect that failed."""
    return kind("connect", name_of(code), fact, elapsed_ms=elapsed_ms)


def elapsed_of(code, elapsed_s):
    # type: (int, float) -> Optional[int]
    """What an outcome says of time: of "host unreachable" only, rounded to 100 ms."""
    return round(elapsed_s * 10) * 100 if name_of(code) == HOST_UNREACHABLE else None


def _by_time(flights, code, now):
    # type: (List[Flight], int, float) -> List[Tuple[Optional[int], List[Flight]]]
    """The flights by ``elapsed_of``; nearly always one group."""
    soonest, latest = max(map(STARTED, flights)), min(map(STARTED, flights))
    elapsed_ms = elapsed_of(code, now - soonest)
    if elapsed_ms == elapsed_of(code, now - latest):
        return [(elapsed_ms, flights)]
    groups = {}  # type: Dict[Optional[int], List[Flight]]
    for flight in flights:
        groups.setdefault(elapsed_of(code, now - flight[3]), []).append(flight)
    return list(groups.items())


def _any_error(events):
    # type: (List[Tuple[int, int]]) -> bool
    return any(mask & select.EPOLLERR for mask in set(map(_MASK, events)))
