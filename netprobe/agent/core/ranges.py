"""Port sets of the agent: sorted, disjoint ranges that grow port by port.

The coordinator has its own in ``netprobe.model.ports``; the agent imports nothing of netprobe.
"""

from bisect import bisect_right
from typing import Iterable, Iterator, List, Sequence, Tuple


def each(ranges: Iterable[Sequence[int]]) -> Iterator[int]:
    """Every single port of ranges as the wire has them."""
    for first, last in ranges:
        for port in range(first, last + 1):
            yield port


class PortSet:
    """Ports as ranges: 2,768 node ports in order are one pair, not 2,768 objects."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ports: Iterable[int] = ()) -> None:
        self._firsts: List[int] = []
        self._lasts: List[int] = []
        for port in ports:
            self.add(port)

    def add(self, port: int) -> None:
        """Add one port; joins the neighbours that it touches."""
        firsts, lasts = self._firsts, self._lasts
        at = bisect_right(firsts, port)
        if at and port <= lasts[at - 1]:
            return
        joins_left = at > 0 and lasts[at - 1] == port - 1
        joins_right = at < len(firsts) and firsts[at] == port + 1
        if joins_left and joins_right:
            lasts[at - 1] = lasts.pop(at)
            del firsts[at]
        elif joins_left:
            lasts[at - 1] = port
        elif joins_right:
            firsts[at] = port
        else:
            firsts.insert(at, port)
            lasts.insert(at, port)

    def __contains__(self, port: int) -> bool:
        at = bisect_right(self._firsts, port)
        return at > 0 and port <= self._lasts[at - 1]

    def __iter__(self) -> Iterator[int]:
        return each(self.pairs())

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def pairs(self) -> List[Tuple[int, int]]:
        """Give the ranges as the wire carries them: first and last port, both included."""
        return list(zip(self._firsts, self._lasts))
