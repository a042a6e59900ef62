"""What a host asks by itself, where nobody comes again: within the budgets of its script.

These are the questions that a merge asks of a flow that failed: whether it stays silent, whether
anything leaves, by which way, where that ends, and what the recorder saw.
"""

from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..wire.batch import BatchStart
from ..wire.failures import NO_ANSWER
from ..wire.host_messages import EgressOrder, Routed, RouteOrder
from ..wire.orders import EchoOrder, ProbeOrder, StoryOrder, WalkOrder, list_singles
from ..wire.parts import ProbeBlock, Ranges
from ..wire.questions import CHECK_MS, CONTROL_PORTS, MAX_TTL, NONCES, UNANSWERED, UNKNOWN_MS
from .summary import AskedPorts, list_all_asked, list_own_ports

# How often a silent flow is asked again.
TCP_LOOKS, DATAGRAM_LOOKS = 7, 3
# A connect to it shows whether the other end hears this host at all.
CONTROL_PORT = CONTROL_PORTS[0]
# Packets of full size wait so long at a second look, because the other end may be busy with all
# others; no IP packet is larger than this.
SIZED_MS = 6000
MOST_SIZE = 65535

# Protocol and address.
WalkedPair = Tuple[str, str]


class Failed:
    """What failed at one address by one protocol. ``numbers``: the script's own order ids, which
    the other end knows too. ``opened``: ports whose connections opened, with the ids of all orders
    that sent a nonce over them."""

    def __init__(self, order: Any) -> None:
        self.order = order
        self.ports: Set[Tuple[int, int]] = set()
        self.numbers: Set[int] = set()
        self.own_ports: Set[int] = set()
        self.opened: Set[Tuple[int, int]] = set()
        self.nonces: Set[int] = set()


class Autonomy:
    """Further orders of a round. ``follow`` is given each order of the phase ``go`` and all of its
    answers; ``list_tells`` gives what is asked when the phase ``tell`` begins."""

    def __init__(self, start: BatchStart, phases: "List[Tuple[str, List[Any]]]") -> None:
        first, last = start.own_ids
        self._first_own = first
        self._ids = iter(range(first, last + 1))
        self._looks_left, self._walks_left, self._routes_left, self._stories_left = start.budgets
        self._again: Set[int] = set()
        self._walked: Set[WalkedPair] = set()
        self._failed: Dict[WalkedPair, Failed] = {}
        self._asked_ways: Set[str] = set()
        # Which address this host sends from to another, as its kernel said.
        self._sources: Dict[str, str] = {}
        # By address: packets to it that nobody answers, so that only the other end knows of them.
        self._one_way: Dict[str, List[ProbeOrder]] = {}
        # By address: packets of the size that this host's device is thought to carry.
        self._sized: Dict[str, List[Any]] = {}
        for order in [order for _, orders in phases for order in orders]:
            if getattr(order, "size", None) is not None:
                for one in _list_destinations(order):
                    self._sized.setdefault(one[0], []).append(one[1])
            elif _is_one_way(order):
                for single in list_singles(order):
                    self._one_way.setdefault(single.dst, []).append(single)

    def is_again(self, order: Any) -> bool:
        """Tell whether an order asks again what was asked before."""
        return order.id in self._again

    def follow(self, order: Any, answers: List[Any]) -> Iterator[Any]:
        """Give what is asked about an order's flows that failed."""
        if isinstance(order, RouteOrder):
            return self._learn_route(order, answers)
        if isinstance(order, (ProbeOrder, EchoOrder)):
            is_own = order.id >= self._first_own
            if order.size is not None:
                return iter(()) if is_own else self._ask_size_again(order, answers)
            if _is_look(order) and (not is_own or self.is_again(order)):
                return self._follow_look(order, answers)
        return iter(())

    def _follow_look(self, order: Any, answers: List[Any]) -> Iterator[Any]:
        failed: Dict[str, List[AskedPorts]] = {}
        for asked in list_all_asked(order, answers):
            if not asked.is_answered:
                failed.setdefault(asked.dst, []).append(asked)
        own_ports = list_own_ports(order, answers)
        singles = list_singles(order) if isinstance(order, ProbeOrder) else []
        by_dst = {single.dst: single for single in singles}
        for dst, some in failed.items():
            one = by_dst.get(dst, order)
            self._note_failed(one, dst, some, own_ports.get(dst, set()))
            if not self.is_again(order):
                for more in self._ask_further(one, dst, some):
                    yield more

    def _learn_route(self, order: RouteOrder, answers: List[Any]) -> Iterator[Any]:
        """Send packets of the size that the device carries, where the script's are not."""
        for routed in answers:
            if isinstance(routed, Routed) and routed.source:
                self._sources[order.dst] = routed.source
                if routed.dev_mtu is not None:
                    for more in self._send_size(order.dst, routed.dev_mtu):
                        yield more

    def _send_size(self, dst: str, mtu: int) -> Iterator[Any]:
        # Once only: another route order may be about the same address.
        for sized in self._sized.pop(dst, []):
            size = mtu if _is_segment(sized) else min(mtu, MOST_SIZE)
            if sized.size != size:
                for identity in self._take_id():
                    yield _take_size(sized, identity, dst, size)

    def _ask_size_again(self, order: Any, answers: List[Any]) -> Iterator[Any]:
        """Wait longer for a packet of full size that was not answered."""
        for asked in list_all_asked(order, answers):
            if not asked.is_answered:
                for identity in self._take_id():
                    again = _take_size(order, identity, asked.dst, order.size)
                    yield again._replace(first_ms=SIZED_MS, look_ms=SIZED_MS)
                return

    def list_tells(self) -> Iterator[Any]:
        """Give the stories of failed flows, as this host saw them go out."""
        for (proto, dst), failed in self._failed.items():
            order = failed.order
            source = order.src or self._sources.get(dst)
            if source is None or not self._spend_budget("_stories_left", 1):
                continue
            numbers = [] if proto in ("tcp", "icmp") else sorted(failed.numbers)
            ports = [] if proto in ("icmp", "ipproto") else sorted(failed.ports)
            own_ports = sorted(failed.own_ports)
            for identity in self._take_id():
                yield StoryOrder(
                    identity, proto, getattr(order, "number", None), source, dst, ports, True,
                    numbers, own_ports,
                )  # fmt: skip
            for identity in self._take_id() if failed.opened else ():
                # Whether the answers came, and nobody waited for them any more.
                yield StoryOrder(
                    identity, NONCES, None, source, dst, sorted(failed.opened), True,
                    sorted(failed.nonces), [],
                )  # fmt: skip

    def _note_failed(
        self, order: Any, dst: str, some: List[AskedPorts], own_ports: "Set[int]"
    ) -> None:
        place = _name_proto(order), dst
        known = self._failed.setdefault(place, Failed(order))
        known.ports.update((one.first, one.last) for one in some)
        known.own_ports.update(own_ports)
        opened = [one for one in some if _is_unanswered(order, one)]
        if opened:
            known.opened.update((one.first, one.last) for one in opened)
            known.nonces.add(order.id)
        if order.id < self._first_own:
            known.numbers.update(order.numbers if isinstance(order, EchoOrder) else [order.id])

    def _ask_further(self, order: Any, dst: str, some: List[AskedPorts]) -> Iterator[Any]:
        """Ask again what was silent; and of an address that failed, once, how one gets there."""
        silent = [one for one in some if _is_silent(order, one)]
        if silent and getattr(order, "pace", None) is None:
            for more in self._look_again(order, dst, silent):
                yield more
        if dst not in self._asked_ways and self._spend_budget("_routes_left", 1):
            self._asked_ways.add(dst)
            for more in self._ask_way(order, dst):
                yield more
        for more in self._walk_silent(order, dst, silent):
            yield more

    def _walk_silent(self, order: Any, dst: str, silent: List[AskedPorts]) -> Iterator[WalkOrder]:
        """Walk to where nothing came back from, and there with what nobody answers, too."""
        if not silent:
            return
        for more in self._walk_once(_name_proto(order), dst, silent[0].first, order):
            yield more
        for other in self._one_way.get(dst, ()):
            ports = other.blocks[0].ports
            if other.proto == "udp" and ports:
                for more in self._walk_once("udp", dst, ports[0][0], other):
                    yield more

    def _look_again(self, order: Any, dst: str, silent: List[AskedPorts]) -> Iterator[Any]:
        ports = sum(one.last - one.first + 1 for one in silent)
        if not self._spend_budget("_looks_left", ports):
            return
        for identity in self._take_id():
            self._again.add(identity)
            looks = TCP_LOOKS if _name_proto(order) == "tcp" else DATAGRAM_LOOKS
            again = order._replace(
                id=identity, first_ms=UNKNOWN_MS, look_ms=UNKNOWN_MS, looks=looks
            )
            if isinstance(order, EchoOrder):
                yield again._replace(dsts=[dst], numbers=[identity])
            else:
                yield again._replace(blocks=_cut_blocks(order.blocks, silent))

    def _ask_way(self, order: Any, dst: str) -> Iterator[Any]:
        """Ask this host's kernel, and send what harmless packets show of the way."""
        src = order.src
        for identity in self._take_id():
            yield RouteOrder(identity, dst, src)
        for identity in self._take_id():
            yield EgressOrder(identity, dst, src, CONTROL_PORT)
        for identity in self._take_id():
            yield EchoOrder(identity, [dst], src, CHECK_MS, CHECK_MS, 1, None, [identity])
        for identity in self._take_id():
            block = ProbeBlock([(CONTROL_PORT, CONTROL_PORT)], "connect", 0)
            yield ProbeOrder(
                identity, "tcp", None, dst, src, [block], CHECK_MS, CHECK_MS, 1, None, None,
                None, None, None, None, [],
            )  # fmt: skip

    def _walk_once(self, proto: str, dst: str, port: int, order: Any) -> Iterator[WalkOrder]:
        """Walk once for each address and protocol."""
        known = (proto, dst) in self._walked or proto not in ("tcp", "udp", "icmp")
        if known or not self._spend_budget("_walks_left", 1):
            return
        self._walked.add((proto, dst))
        template = order.blocks[0].template if isinstance(order, ProbeOrder) else 0
        for identity in self._take_id():
            yield WalkOrder(identity, proto, dst, port, order.src, MAX_TTL, template)

    def _spend_budget(self, budget: str, amount: int) -> bool:
        """Tell whether a budget allows this, and take it from there."""
        left = getattr(self, budget) - amount
        if left < 0:
            return False
        setattr(self, budget, left)
        return True

    def _take_id(self) -> Iterator[int]:
        """Give one id of this host's own; none where all are taken."""
        identity: Optional[int] = next(self._ids, None)
        if identity is not None:
            yield identity


def _is_look(order: Any) -> bool:
    """Tell whether it is a look at flows of the plan, and none beside it."""
    if isinstance(order, EchoOrder):
        return order.size is None
    special = ("size", "min_ttl", "ttl", "sport")
    return (
        isinstance(order, ProbeOrder)
        and order.host is not None
        and all(getattr(order, name) is None for name in special)
    )


def _is_one_way(order: Any) -> bool:
    """Tell whether nobody answers what an order of the plan sends."""
    if not isinstance(order, ProbeOrder) or order.host is None or order.pace is not None:
        return False
    return order.blocks[0].mode == "send"


def _list_destinations(order: Any) -> List[Tuple[str, Any]]:
    """List an order's addresses, each with the order that stands for it alone."""
    if isinstance(order, EchoOrder):
        return [(dst, order) for dst in order.dsts]
    return [(single.dst, single) for single in list_singles(order)]


def _is_segment(order: Any) -> bool:
    """Tell whether an order's size is that of segments, which devices cut: loopback's is 65536."""
    return isinstance(order, ProbeOrder) and order.proto == "tcp"


def _take_size(order: Any, identity: int, dst: str, size: int) -> Any:
    """Give an order of full-sized packets for one address with another size and id."""
    if isinstance(order, EchoOrder):
        return order._replace(id=identity, size=size, dsts=[dst], numbers=[identity])
    single = next(one for one in list_singles(order) if one.dst == dst)
    return single._replace(id=identity, size=size)


def _is_silent(order: Any, asked: AskedPorts) -> bool:
    """Tell whether nothing came, or no nonce on a connection that opened."""
    return asked.kind.failure == NO_ANSWER or _is_unanswered(order, asked)


def _is_unanswered(order: Any, asked: AskedPorts) -> bool:
    """Tell whether a connection opened, and the nonce on it was not answered."""
    nonce = isinstance(order, ProbeOrder) and order.blocks[0].mode == "nonce"
    return nonce and order.proto == "tcp" and asked.kind.answer in UNANSWERED


def _name_proto(order: Any) -> str:
    return "icmp" if isinstance(order, EchoOrder) else str(order.proto)


def _cut_blocks(blocks: List[ProbeBlock], wanted: List[AskedPorts]) -> List[ProbeBlock]:
    """Give the blocks with only these ports; an IP protocol has none."""
    cut = []
    for block in blocks:
        ports: Ranges = [
            (max(first, one.first), min(last, one.last))
            for first, last in block.ports
            for one in wanted
            if first <= one.last and last >= one.first
        ]
        if ports or not block.ports:
            cut.append(block._replace(ports=ports))
    return cut
