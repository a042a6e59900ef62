"""Holds outcomes against the order that asked for them: each port of each destination is told of
once. What breaks a rule is a ValueError with the words (``rules``)."""

from __future__ import annotations

import ipaddress
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from netprobe.agent.wire import answers, orders, parts, replies
from netprobe.agent.wire.failures import FAILURES, UNKNOWN_PREFIX
from netprobe.model import ports as port_sets
from netprobe.model.ports import MAX_PORT, PortRange, Ports
from netprobe.model.shapes import ADDRESS, REASON
from netprobe.probe.agents.decode import ANSWERS

OPERATIONS = frozenset(("bind", "connect", "send", "answer"))
# What may come back for an echo request, and for anything else; None: nothing did.
ECHOES: frozenset[str | None] = frozenset((None, replies.ECHO))
WORDS: frozenset[str | None] = frozenset((None, replies.BYTES, *ANSWERS)) - {replies.ECHO}
# What else may come back where full-sized segments were asked for.
SEGMENT_WORDS = WORDS | {replies.NARROW, replies.NARROW_BACK}
# What an order without ports asks for.
NO_PORTS: Ports = ((0, 0),)


class OutcomeRules:
    """The outcomes of one probe or echo order: every port of every destination is told of once."""

    def __init__(self, order: orders.ProbeOrder | orders.EchoOrder) -> None:
        self._answers = _list_words(order)
        # What was not told of yet: of each destination, by its place, sorted, disjoint ranges. Of
        # an echo there are no ports, which is port 0.
        self._left: dict[int, Ports] = {}
        self._is_echo = isinstance(order, orders.EchoOrder)
        if isinstance(order, orders.EchoOrder):
            self._left = dict.fromkeys(range(1, len(order.dsts) + 1), NO_PORTS)
        else:
            own = _list_asked(order.blocks)
            self._left[1] = own
            for place, one in enumerate(order.more, 2):
                self._left[place] = _list_asked(one.blocks) if one.blocks else own

    def take(self, answer: answers.ProbeOutcomes | answers.EchoOutcomes) -> list[int]:
        """Check the next outcomes; gives the places that they complete. Raises ValueError."""
        demand_that(bool(answer.runs), "outcomes of nothing")
        for kind in answer.kinds:
            _check_kind(kind, self._answers)
        for run in answer.runs:
            demand_that(run.kind < len(answer.kinds), f"kind {run.kind} of {len(answer.kinds)}")
        if isinstance(answer, answers.EchoOutcomes):
            return [place for run in answer.runs for place in self._take_echoes(run)]
        return self._take_probes(answer)

    def finish(self) -> None:
        """Check that nothing is left where the order is done. Raises ValueError."""
        for place, ports in self._left.items():
            more = sum(map(port_sets.count, self._left.values())) - 1
            rest = f" and {more} more" if more else ""
            at = "" if self._is_echo else f"port {ports[0][0]} of "
            raise ValueError(f"before the outcome of {at}destination {place}{rest}")

    def _take_echoes(self, run: parts.EchoRun) -> list[int]:
        places = self._list_places([(run.first, run.last)])
        _check_round_trips(run.rtts_us, len(places))
        for place in places:
            del self._left[place]
        return places

    def _take_probes(self, answer: answers.ProbeOutcomes) -> list[int]:
        places = self._list_places(answer.places)
        count = len(places)
        demand_that(count > 0, "outcomes of no destination")
        demand_that(len(answer.own_ports) in (0, count), f"{len(answer.own_ports)} own ports")
        for port in answer.own_ports:
            demand_that(port <= MAX_PORT, f"a port {port}")
        for run in answer.runs:
            _check_round_trips(run.rtts_us, count)
        told = [(run.first, run.last) for run in answer.runs]
        # Most destinations of an order have the same ports: what is left of them is found once.
        rests: dict[Ports, Ports] = {}
        complete = []
        for place in places:
            left = self._left[place]
            if left not in rests:
                rests[left] = _take_told(left, told)
            if rests[left]:
                self._left[place] = rests[left]
            else:
                del self._left[place]
                complete.append(place)
        return complete

    def _list_places(self, ranges: Sequence[PortRange]) -> list[int]:
        """Give the places of destinations, of which something must be left. Raises ValueError."""
        places: list[int] = []
        for first, last in ranges:
            after = places[-1] if places else 0
            # Before the range is walked: an agent may name any number.
            if not (after < first <= last and first in self._left and last in self._left):
                raise ValueError(f"destination {first}-{last}, not asked or told before")
            places += range(first, last + 1)
        for place in places:
            demand_that(place in self._left, f"destination {place}, told before")
        return places


def _list_asked(blocks: Iterable[parts.ProbeBlock]) -> Ports:
    return port_sets.normalise(entry for block in blocks for entry in block.ports) or NO_PORTS


def _take_told(left: Ports, told: Iterable[PortRange]) -> Ports:
    """Give what is left without what is told, all of which must be left. Raises ValueError."""
    rest = list(left)
    for first, last in told:
        at = bisect_right(rest, (first, MAX_PORT)) - 1
        begin, end = rest[at] if at >= 0 else (0, -1)
        if not begin <= first <= last <= end:
            raise ValueError(f"port {first}-{last}, not asked or told before")
        pieces = ((begin, first - 1), (last + 1, end))
        rest[at : at + 1] = [one for one in pieces if one[0] <= one[1]]
    return tuple(rest)


def _check_round_trips(rtts_us: Sequence[int | None], count: int) -> None:
    demand_that(len(rtts_us) == count, f"{len(rtts_us)} round trips of {count}")


def _list_words(order: orders.ProbeOrder | orders.EchoOrder) -> frozenset[str | None]:
    if isinstance(order, orders.EchoOrder):
        return ECHOES
    return SEGMENT_WORDS if order.proto == "tcp" and order.size is not None else WORDS


def demand_that(holds: bool, words: str) -> None:
    """Raise ValueError with the words where it does not hold."""
    if not holds:
        raise ValueError(words)


def check_addresses(addresses: Iterable[str | None]) -> None:
    """Check that all are literal addresses, where there are any."""
    for text in addresses:
        if text is not None:
            try:
                ipaddress.ip_address(text)
            except ValueError:
                raise ValueError(f"an address {text!r:.40}") from None
            # Its scope may be any text.
            demand_that(ADDRESS.fits(text), f"an address {text!r:.40}")


def _check_kind(kind: parts.OutcomeKind, answers: frozenset[str | None]) -> None:
    failure = kind.failure
    known = failure is None or failure in FAILURES or failure.startswith(UNKNOWN_PREFIX)
    known = known and (failure is None or REASON.fits(failure))
    demand_that(known, f"a failure {failure!r:.40}")
    demand_that(kind.op in OPERATIONS, f"an operation {kind.op!r:.40}")
    demand_that(kind.answer in answers, f"an answer {kind.answer!r:.40}")
    if kind.icmp is not None:
        check_addresses([kind.icmp.offender])
