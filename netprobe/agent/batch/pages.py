"""Keeps a round's results in memory, and packs them into pages: what failed comes first.

A unit is an order with all of its answers: a part of them would say another thing.
"""

from typing import Any, Dict, Iterable, List, NamedTuple, Tuple

from ..core.ranges import PortSet, each
from ..wire.answers import Done, Fault, HelloLine, Listening, Seen, StoryTold
from ..wire.batch import BatchStart
from ..wire.batch_pages import PAGE_FORMAT, PageHeader, encode_page
from ..wire.frames import WIRE_VERSION, encode_message
from ..wire.messages import ORDERS
from ..wire.orders import StoryOrder
from ..wire.questions import CONTROL_PORTS
from .results import HostClock, RunResults
from .script import Script
from .summary import list_all_asked, list_asked

# Which units come first. Without its listeners nothing that failed at a host means anything.
LISTENERS, FAILED, ARRIVED, PASSED, FURTHER = range(5)
# Nodes have an interface for each pod; devices come in the order in which they were made.
MOST_ADDRESSES, MOST_LINKS = 32, 16
# How many units that are too long for a page are passed over before the page counts as full.
MOST_SKIPPED = 8


class Unit(NamedTuple):
    """Encoded messages that stay together. ``is_failed``: something is not as it should be;
    ``about``: of what failed, the other end, so that all about one end comes together."""

    rank: int
    about: str
    is_failed: bool
    text: bytes


class PageResults(RunResults):
    """Takes what a round says, as a file of results does (``results.py``)."""

    def __init__(self, script: Script, clock: HostClock) -> None:
        RunResults.__init__(self, clock)
        self._start = script.start
        # Ports of these orders must not answer.
        self._denied = {order.id for orders in script.orders("denied") for order in orders}
        self._base: List[Any] = []
        self._faults: List[Fault] = []
        # By the ids of orders: the orders, and what was answered; a round's end has its id.
        self._orders: Dict[int, List[Any]] = {}
        self._answers: Dict[int, List[Any]] = {}

    def add(self, message: Any) -> None:
        """Keep a message."""
        message = self.clock.shift(message)
        if isinstance(message, HelloLine):
            message = _shorten_hello(message, self._start.addresses)
        number = getattr(message, "id", None)
        if isinstance(message, Fault) and number is None:
            self._faults.append(message)
        elif number is None:
            self._base.append(message)
        elif type(message).__name__ in ORDERS:
            self._orders.setdefault(number, []).append(message)
        else:
            self._answers.setdefault(number, []).append(message)

    def make_pages(self, limits: List[int]) -> List[bytes]:
        """Give pages of at most these lengths (bytes), until all has room. Raises ValueError where
        not even the host's own words fit into the first."""
        left = sorted(self._list_units(), key=lambda unit: (unit.rank, unit.about))
        base = [encode_message(message) for message in self._base]
        pages: List[bytes] = []
        for limit in limits:
            page, left = PageFiller(self._start, len(pages) + 1, base, limit).fill(left)
            pages.append(page)
            if not left:
                break
            base = []
        return pages

    def _list_units(self) -> Iterable[Unit]:
        first, last = self._start.own_ids
        for number, orders in self._orders.items():
            answers = self._answers.get(number, [])
            is_own = first <= number <= last
            messages = (orders if is_own else []) + answers
            if not messages:
                continue
            is_failed = any(self._is_wrong(order, one) for order in orders for one in answers)
            rank = _rank_unit(orders[0], answers, is_own or is_failed)
            about = _find_end(orders[0]) if rank == FAILED else ""
            yield Unit(rank, about, is_failed, b"\n".join(map(encode_message, messages)))
        for fault in self._faults:
            yield Unit(FAILED, "", True, encode_message(fault))

    def _is_wrong(self, order: Any, answer: Any) -> bool:
        """Tell whether an answer is not as it should be, as far as this host can tell."""
        if isinstance(answer, Fault):
            return True
        if isinstance(answer, Done):
            return answer.cancelled
        if isinstance(answer, StoryTold):
            return isinstance(order, StoryOrder) and not _is_complete(order, answer)
        is_denied = getattr(order, "id", None) in self._denied
        return any(
            asked.is_answered == is_denied
            for asked in list_asked(order, answer)
            if asked.first not in CONTROL_PORTS
        )


class PageFiller:
    """Fills one page. ``base``: what stands on it in any case, encoded."""

    def __init__(self, start: BatchStart, number: int, base: List[bytes], limit: int) -> None:
        self._start = start
        self._number = number
        self._base = base
        self._limit = limit

    def fill(self, units: List[Unit]) -> Tuple[bytes, List[Unit]]:
        """Give a page with as many units as have room, and the others. Raises ValueError."""
        chosen: List[Unit] = []
        left: List[Unit] = []
        waiting = units
        page = self._encode_units(chosen, waiting)
        if len(page) > self._limit:
            raise ValueError(
                "a page of %d bytes has no room for this host's own words" % self._limit
            )
        while waiting and len(left) < MOST_SKIPPED:
            count, page = self._find_most(chosen, waiting, left, page)
            chosen, waiting = chosen + waiting[:count], waiting[count:]
            left, waiting = left + waiting[:1], waiting[1:]
        return page, left + waiting

    def _find_most(
        self, chosen: List[Unit], waiting: List[Unit], left: List[Unit], page: bytes
    ) -> Tuple[int, bytes]:
        """Find how many of those that wait have room beside the chosen ones, and the page."""
        most, beyond = 0, len(waiting) + 1
        while beyond - most > 1:
            tried = (most + beyond) // 2
            made = self._encode_units(chosen + waiting[:tried], left + waiting[tried:])
            if len(made) <= self._limit:
                most, page = tried, made
            else:
                beyond = tried
        return most, page

    def _encode_units(self, chosen: List[Unit], left: List[Unit]) -> bytes:
        failed = sum(unit.is_failed for unit in left)
        start = self._start
        header = PageHeader(
            PAGE_FORMAT, WIRE_VERSION, start.run, start.round, start.host, start.name,
            self._number, failed, len(left) - failed,
        )  # fmt: skip
        return encode_page(start.result_key, header, self._base + [unit.text for unit in chosen])


def _rank_unit(order: Any, answers: List[Any], is_first: bool) -> int:
    if any(isinstance(one, Listening) for one in answers):
        return LISTENERS
    if is_first:
        return FAILED
    if any(isinstance(one, Seen) for one in answers):
        return ARRIVED
    return PASSED if list_all_asked(order, answers) else FURTHER


def _find_end(order: Any) -> str:
    """Give the address of the other end that an order is about; empty where it names none."""
    if isinstance(order, StoryOrder):
        return order.target if order.sent else order.asker
    addresses: List[str] = getattr(order, "dsts", None) or [getattr(order, "dst", "")]
    return addresses[0]


def _is_complete(order: StoryOrder, told: StoryTold) -> bool:
    """Tell whether the recorder saw requests to all ports; one that does not run saw nothing."""
    if not told.running:
        return True
    seen = PortSet(port for run in told.runs if run.requests for port in each(run.ports))
    came = any(run.requests for run in told.runs)
    return came and all(port in seen for port in each(order.ports))


def _shorten_hello(hello: HelloLine, wanted: List[str]) -> HelloLine:
    """Give a hello with the run's own addresses and some others."""
    known = [one for one in hello.addresses if one in wanted]
    others = [one for one in hello.addresses if one not in wanted]
    return hello._replace(
        addresses=(known + others)[:MOST_ADDRESSES], links=hello.links[:MOST_LINKS]
    )
