"""The one line that a host prints, and its exit status: what it can tell by itself.

What probe and echo orders say of single destinations and ports.
"""

from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from ..core.ranges import each
from ..wire.answers import ProbeOutcomes
from ..wire.orders import ProbeOrder, list_singles
from ..wire.parts import OutcomeKind
from ..wire.questions import CONTROL_PORTS
from ..wire.replies import BYTES, ECHO, NONCE

# Engines keep little of what a host prints.
MOST_BYTES = 2000
MOST_ITEMS = 8
MOST_FAULT = 200

OK_STATUS, FAILED_STATUS, WRONG_STATUS, UNSURE_STATUS, STOPPED_STATUS = 0, 1, 2, 3, 130

# Answers of the asked end; None: a connection opened, or what needs no answer has left.
GOOD_ANSWERS = (None, NONCE, BYTES, ECHO)


class AskedPorts(NamedTuple):
    """What became of neighbouring ports of one destination; ``first`` 0: it has no ports."""

    dst: str
    host: Optional[int]
    first: int
    last: int
    kind: OutcomeKind

    @property
    def is_answered(self) -> bool:
        """Whether it was as it should be, as far as the asking side can tell."""
        return self.kind.failure is None and self.kind.answer in GOOD_ANSWERS


def list_asked(order: Any, message: Any) -> Iterator[AskedPorts]:
    """List what an answer says of each destination of a probe or echo order."""
    if not hasattr(message, "runs"):
        return
    if hasattr(order, "dsts"):
        for run in message.runs:
            for place in range(run.first, run.last + 1):
                yield AskedPorts(order.dsts[place - 1], None, 0, 0, message.kinds[run.kind])
        return
    if not isinstance(order, ProbeOrder):
        return
    singles = list_singles(order)
    for place in each(message.places):
        one = singles[place - 1]
        for run in message.runs:
            yield AskedPorts(one.dst, one.host, run.first, run.last, message.kinds[run.kind])


def list_own_ports(order: Any, answers: List[Any]) -> Dict[str, Set[int]]:
    """Tell from which UDP ports each destination of a probe order was asked."""
    found: Dict[str, Set[int]] = {}
    for answer in answers:
        if isinstance(answer, ProbeOutcomes):
            for place, port in zip(each(answer.places), answer.own_ports):
                found.setdefault(list_singles(order)[place - 1].dst, set()).add(port)
    return found


def list_all_asked(order: Any, answers: List[Any]) -> List[AskedPorts]:
    """List what all answers to an order say."""
    return [asked for message in answers for asked in list_asked(order, message)]


class RunSummary:
    """Counts what was asked and what was not as it should be."""

    def __init__(self) -> None:
        self.late = 0
        self._asked = 0
        self._faults: List[str] = []
        self._denied: Set[int] = set()
        self._again: Set[int] = set()
        # Ports that failed, by protocol and destination, each with what it said last.
        self._failed: Dict[Tuple[str, str], Dict[int, str]] = {}

    def note_denied(self, orders: Iterable[Any]) -> None:
        """Note orders whose ports must not answer."""
        self._denied.update(getattr(order, "id", 0) for order in orders)

    def note_again(self, order_id: int) -> None:
        """Note an order that asks again what was asked before."""
        self._again.add(order_id)

    def take(self, order: Any, message: Any) -> None:
        """Take an answer; ``order`` None: of no order that is known."""
        if type(message).__name__ == "Fault":
            self._faults.append(message.short_of or message.words.split("\n")[-1][:MOST_FAULT])
        for asked in list_asked(order, message):
            self._take_asked(order, asked)

    def status(self) -> int:
        """Give the exit status: 0 all answered, 1 something did not, 3 something is not known."""
        if self._failed:
            return FAILED_STATUS
        return UNSURE_STATUS if self._faults or self.late else OK_STATUS

    def line(self, about: str, end: str) -> str:
        """Give one line of at most MOST_BYTES: who, what, and where the results are."""
        failed = sum(map(len, self._failed.values()))
        words = "%s: %d flows asked, %d answered" % (about, self._asked, self._asked - failed)
        if failed:
            words += "; not as it should be: %s" % "; ".join(self._list_failed())
        if self.late:
            words += "; %d orders were not done in time" % self.late
        if self._faults:
            words += "; the agent had %d faults (%s)" % (len(self._faults), self._faults[0])
        left = MOST_BYTES - len(end.encode("utf-8")) - 1
        return words.encode("utf-8")[:left].decode("utf-8", "ignore") + end

    def _take_asked(self, order: Any, asked: AskedPorts) -> None:
        if asked.first in CONTROL_PORTS:
            return  # no flow: what is refused there shows that the other end hears this host
        if order.id not in self._again:
            self._asked += asked.last - asked.first + 1
        proto = getattr(order, "proto", "icmp")
        failure = self._find_failure(order, asked)
        ports = self._failed.setdefault((proto, asked.dst), {})
        for port in range(asked.first, asked.last + 1):
            if failure is None:
                ports.pop(port, None)
            else:
                ports[port] = failure
        if not ports:
            del self._failed[proto, asked.dst]

    def _find_failure(self, order: Any, asked: AskedPorts) -> Optional[str]:
        if order.id in self._denied:
            return "answers" if asked.is_answered else None
        return None if asked.is_answered else asked.kind.failure or asked.kind.answer

    def _list_failed(self) -> List[str]:
        """List what failed, the most first."""
        found = sorted(self._failed.items(), key=lambda item: (-len(item[1]), item[0]))
        items = []
        for (proto, dst), ports in found[:MOST_ITEMS]:
            first, said = sorted(ports.items())[0]
            name = "%s %d of %s" % (proto, first, dst) if first else "%s to %s" % (proto, dst)
            rest = len(ports) - 1
            more = " and %d port%s more" % (rest, "" if rest == 1 else "s") if rest else ""
            items.append("%s %s%s" % (name, said, more))
        if len(found) > MOST_ITEMS:
            items.append("and %d destinations more" % (len(found) - MOST_ITEMS))
        return items
