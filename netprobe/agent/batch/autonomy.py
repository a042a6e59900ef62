"""What a host asks by itself, where nobody comes again: within the budgets of its script."""

from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..wire.batch import BatchStart
from ..wire.failures import NO_ANSWER
from ..wire.orders import ProbeOrder, StoryOrder, WalkOrder
from ..wire.parts import ProbeBlock
from .told import Asked, list_all_asked

MAX_TTL = 16


class Autonomy:
    """Further orders of a round. ``follow`` is given each order of the phase ``go`` and all of its
    answers; ``list_tells`` gives what is asked when the phase ``tell`` begins."""

    def __init__(self, start: BatchStart, _phases: "List[Tuple[str, List[Any]]]") -> None:
        first, last = start.own_ids
        self._ids = iter(range(first, last + 1))
        self._looks_left, self._walks_left, _routes, self._stories_left = start.budgets
        self._again: Set[int] = set()
        self._walked: Set[Tuple[str, str]] = set()
        # By protocol and destination: what failed, with the order that asked.
        self._failed: Dict[Tuple[str, str], List[Tuple[ProbeOrder, Asked]]] = {}

    def is_again(self, order: Any) -> bool:
        """Tell whether an order asks again what was asked before."""
        return order.id in self._again

    def follow(self, order: Any, answers: List[Any]) -> Iterator[Any]:
        """Give a second look at silent ports, and a walk where these are silent again."""
        if not isinstance(order, ProbeOrder):
            return
        for asked in list_all_asked(order, answers):
            if asked.is_answered:
                continue
            self._failed.setdefault((order.proto, asked.dst), []).append((order, asked))
            if asked.kind.failure != NO_ANSWER:
                continue
            more = self._walk(order, asked) if self.is_again(order) else self._look(order, asked)
            if more is not None:
                yield more

    def list_tells(self) -> Iterator[Any]:
        """Give the stories of failed flows, as this host saw them go out."""
        for (proto, dst), failed in self._failed.items():
            order = failed[0][0]
            identity = next(self._ids, None) if order.src is not None else None
            if self._stories_left <= 0 or identity is None or order.src is None:
                continue
            self._stories_left -= 1
            ports = sorted({(asked.first, asked.last) for _, asked in failed})
            numbers = [] if proto == "tcp" else sorted({order.id for order, _ in failed})
            yield StoryOrder(
                identity, proto, order.number, order.src, dst, ports, True, numbers, []
            )

    def _look(self, order: ProbeOrder, asked: Asked) -> Optional[ProbeOrder]:
        """Ask these ports once more, unhurriedly."""
        identity = next(self._ids, None)
        ports = asked.last - asked.first + 1
        if identity is None or ports > self._looks_left:
            return None
        self._looks_left -= ports
        self._again.add(identity)
        blocks = _cut_blocks(order.blocks, asked.first, asked.last)
        return order._replace(id=identity, blocks=blocks, first_ms=order.look_ms, looks=1)

    def _walk(self, order: ProbeOrder, asked: Asked) -> Optional[WalkOrder]:
        """Walk once for each destination and protocol."""
        place = order.proto, asked.dst
        identity = next(self._ids, None)
        if identity is None or self._walks_left <= 0 or place in self._walked:
            return None
        if order.proto not in ("tcp", "udp"):
            return None
        self._walks_left -= 1
        self._walked.add(place)
        template = order.blocks[0].template
        return WalkOrder(
            identity, order.proto, asked.dst, asked.first, order.src, MAX_TTL, template
        )


def _cut_blocks(blocks: List[ProbeBlock], first: int, last: int) -> List[ProbeBlock]:
    """Give the blocks with only these ports; an IP protocol has none."""
    cut = []
    for block in blocks:
        ports = [(max(a, first), min(b, last)) for a, b in block.ports if a <= last and b >= first]
        if ports or not block.ports:
            cut.append(block._replace(ports=ports))
    return cut
