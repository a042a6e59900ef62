"""What a round's listeners saw: per order the ports and sources, in memory that stays bounded."""

from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from ..core.ranges import PortSet
from ..host.port_owners import TCP_SYN_RECV, read_table

SELF_DIAL_ORDER = 0
MAX_ORDERS = 65536
MAX_SOURCES = 8
MAX_STRANGERS = 64
MAX_HALF_OPEN = 4096


class OrderLog:
    """The arrivals of one order."""

    __slots__ = ("ports", "reply", "sources")

    def __init__(self) -> None:
        self.ports = PortSet()
        self.sources: Set[str] = set()
        self.reply: Optional[str] = None


class RoundLog:
    """Everything that arrived at the listeners of one round."""

    def __init__(self) -> None:
        self._orders: Dict[int, OrderLog] = {}
        self._strangers: Dict[Tuple[int, str], None] = {}

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
        """Note something that carried no valid nonce."""
        if len(self._strangers) < MAX_STRANGERS:
            self._strangers[(port, source)] = None

    def orders_json(self, wanted: Iterable[int]) -> List[Dict[str, Any]]:
        """What was seen of these orders."""
        items = []
        for order in wanted:
            log = self._orders.get(order)
            if log is not None:
                items.append(
                    {
                        "order": order,
                        "ports": log.ports.pairs(),
                        "from": sorted(log.sources),
                        "reply": log.reply,
                    }
                )
        return items

    def strangers_json(self) -> List[List[Any]]:
        """Ports and addresses of those who were not ours."""
        return [[port, source] for port, source in sorted(self._strangers)]


def half_open(ports: Set[int]) -> List[List[Any]]:
    """[port, remote address, remote port, own address] of SYN_RECV entries on these ports.

    The SYN arrived here and our SYN-ACK was not acknowledged: the way back is the place to look.
    """
    found: List[List[Any]] = []
    for entry in read_table("tcp", TCP_SYN_RECV) if ports else ():
        if entry.state == TCP_SYN_RECV and entry.port in ports and len(found) < MAX_HALF_OPEN:
            found.append([entry.port, entry.remote, entry.remote_port, entry.address])
    return sorted(found)
