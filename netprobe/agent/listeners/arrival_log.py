"""What a round's listeners saw: per order the ports and sources, in memory that stays bounded."""

from typing import Dict, List, Optional, Set, Tuple

from ..core.ranges import PortSet
from ..host.port_owners import TCP_SYN_RECV, read_table
from ..wire.parts import HalfOpen, OrderArrivals, Stranger

SELF_DIAL_ORDER = 0
MAX_ORDERS = 1 << 18
MAX_SOURCES = 8
MAX_STRANGERS = 64
MAX_HALF_OPEN = 4096


class OrderLog:
    """The arrivals of one order; ``failures``: why answers did not leave, by port."""

    __slots__ = ("failures", "ports", "sources")

    def __init__(self) -> None:
        self.ports = PortSet()
        self.sources: Set[str] = set()
        self.failures: Dict[int, str] = {}

    def by_failure(self) -> List[Tuple[Optional[str], PortSet]]:
        """Give the ports by why their answers did not leave; None: they did."""
        found: Dict[Optional[str], PortSet] = {}
        for port in self.ports:
            found.setdefault(self.failures.get(port), PortSet()).add(port)
        return list(found.items())


class RoundLog:
    """Everything that arrived at the listeners of one round."""

    def __init__(self) -> None:
        self._orders: Dict[int, OrderLog] = {}
        self._strangers: Dict[Stranger, None] = {}

    def saw(self, order: int, port: int, source: str) -> Optional[OrderLog]:
        """Note a genuine arrival; None where no more orders can be remembered."""
        log = self._orders.get(order)
        if log is None:
            if len(self._orders) >= MAX_ORDERS:
                return None
            log = self._orders[order] = OrderLog()
        log.ports.add(port)
        if len(log.sources) < MAX_SOURCES:
            log.sources.add(source)
        return log

    def stranger(self, port: int, source: str) -> None:
        """Note a connection or datagram without a valid nonce."""
        if len(self._strangers) < MAX_STRANGERS:
            self._strangers[Stranger(port, source)] = None

    def arrivals(self, wanted: List[int]) -> List[OrderArrivals]:
        """Tell what was seen of these orders; of all where none is named."""
        found: List[OrderArrivals] = []
        for order in wanted or sorted(self._orders):
            log = self._orders.get(order)
            if log is not None:
                senders = sorted(log.sources)
                found += [
                    OrderArrivals(order, ports.pairs(), senders, failure)
                    for failure, ports in (
                        log.by_failure() if log.failures else [(None, log.ports)]
                    )
                ]
        return found

    def strangers(self) -> List[Stranger]:
        """Everything that came without a valid nonce, by port."""
        return sorted(self._strangers)


def half_open(ports: Set[int]) -> List[HalfOpen]:
    """Give the SYN_RECV entries on these ports.

    The SYN arrived here and nobody acknowledged our SYN-ACK: the loss is on the way back.
    """
    found: List[HalfOpen] = []
    for entry in read_table("tcp", TCP_SYN_RECV) if ports else ():
        if entry.state == TCP_SYN_RECV and entry.port in ports and len(found) < MAX_HALF_OPEN:
            found.append(HalfOpen(entry.port, entry.remote, entry.remote_port, entry.address))
    return sorted(found)
