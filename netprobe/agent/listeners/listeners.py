"""The listening side of the agent: rounds of listeners, what they saw, and which ports are held."""

import os
from typing import Dict, Iterable, List, Union

from ..core.agent import AgentCore
from ..core.ranges import each
from ..host.port_owners import PortHolders, held_ports
from ..net.sockets import file_limit
from ..wire.answers import Closed, Listening, Seen
from ..wire.orders import CloseOrder, HeldOrder, ListenOrder, SeenOrder
from ..wire.parts import HalfOpen, HeldPorts, ListenBlock
from .arrival_log import half_open
from .datagram_server import DatagramServer
from .opening import Opening
from .rounds import ListenerBlock, ListenerPort, ListenerRound
from .self_test import SelfDial
from .tcp_server import TcpServer

# Closed rounds that can still be asked what they saw.
KEPT_ROUNDS = 16
# Files for accepted connections, self-dials and probes; where files are few, half of them.
RESERVED_FILES = 256
MAX_DIALS = 1024
# An agent serves so many batches at most before it tells what came.
MOST_BATCHES = 64
HOLDING_WAYS = ("exact", "perhaps", "loopback")


class AgentListeners:
    """Every round of an agent."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._tcp = TcpServer(agent.loop)
        self._datagrams = DatagramServer(agent.loop)
        self._rounds: Dict[int, ListenerRound] = {}
        self._opening: Dict[int, Opening] = {}
        self._dials: Dict[int, SelfDial] = {}

    def listen(self, order: ListenOrder) -> None:
        """Open a round; ``Listening`` follows when every port is bound."""
        self._end_round(order.id)
        self._forget_oldest()
        opened = ListenerRound(self._agent.key, self._agent.host)
        opened.blocks = [self._make_block(opened, item) for item in order.blocks]
        self._rounds[order.id] = opened
        self._opening[order.id] = Opening(
            self._agent.loop,
            opened,
            self._count_free_files() - min(RESERVED_FILES, file_limit() // 2),
            lambda port: self._server_of(port).add(port),
            lambda: self._finish_opening(order.id, opened),
        )

    def close_round(self, order: CloseOrder) -> None:
        """Close a round's listeners; what they saw can still be asked for."""
        self._end_round(order.id)
        self._agent.send(Closed(order.id))

    def tell_seen(self, order: SeenOrder) -> None:
        """Tell what arrived for these orders at the listeners of a round. Who asks about the rest
        waits until each listener was dialled that nobody has reached."""
        asked = self._rounds.get(order.round)
        if asked is None:
            self._agent.send(Seen(order.id, [], [], [], []))
            return
        self._catch_up()
        tcp = {port.number for port in asked.ports() if port.block.proto == "tcp"}
        waiting = half_open(tcp if asked.is_open and order.rest else set())
        dial = self._dials.get(order.round)
        if dial is None or not order.rest:
            self._report_seen(order, asked, waiting)
        else:
            dial.when_done(lambda: self._report_seen(order, asked, waiting))

    def _catch_up(self) -> None:
        """Serve what has come by now: a busy host's listeners may be late. New connections may come
        all the time, and datagrams do not wait for them."""
        for _ in range(MOST_BATCHES):
            if not self._datagrams.serve_events() + self._tcp.serve_events():
                return

    def _report_seen(self, order: SeenOrder, asked: ListenerRound, waiting: List[HalfOpen]) -> None:
        log, unreached = asked.log, asked.list_unreached()
        arrivals = log.arrivals(order.orders)
        self._agent.send(Seen(order.id, arrivals, waiting, log.strangers(), unreached))

    def tell_held(self, order: HeldOrder) -> None:
        """Tell which of these ports are held, and bind nothing."""
        looked = ListenerRound(b"", 0)
        looked.blocks = [ListenerBlock(looked, item, None) for item in order.blocks]
        tables: Dict[str, PortHolders] = {}
        for block in looked.blocks:
            if block.proto not in tables:
                tables[block.proto] = PortHolders(block.proto)
            _find_holders(block, tables[block.proto])
        self._report_round(order.id, looked)

    def close(self) -> None:
        """Close everything."""
        for opening in self._opening.values():
            opening.cancel()
        for dial in self._dials.values():
            dial.close()
        self._tcp.close()
        self._datagrams.close()

    def _count_free_files(self) -> int:
        """Descriptors that no listener has."""
        return file_limit() - sum(
            len(known.ports()) for known in self._rounds.values() if known.is_open
        )

    def _make_block(self, of_round: ListenerRound, item: ListenBlock) -> ListenerBlock:
        template = self._agent.templates[item.template] if item.template else None
        return ListenerBlock(of_round, item, template)

    def _server_of(self, port: ListenerPort) -> Union[TcpServer, DatagramServer]:
        return self._tcp if port.block.proto == "tcp" else self._datagrams

    def _finish_opening(self, identity: int, opened: ListenerRound) -> None:
        del self._opening[identity]
        window = max(1, min(MAX_DIALS, self._count_free_files() // 4))
        self._dials[identity] = SelfDial(self._agent.loop, self._agent.key, opened, window)
        self._report_round(identity, opened)

    def _report_round(self, identity: int, opened: ListenerRound) -> None:
        blocks = [
            block.describe(held_ports(block.address, block.held), _list_held_beside(block))
            for block in opened.blocks
        ]
        self._agent.send(Listening(identity, blocks))

    def _end_round(self, identity: int) -> None:
        opening = self._opening.pop(identity, None)
        if opening is not None:
            opening.cancel()
        dial = self._dials.pop(identity, None)
        if dial is not None:
            dial.end()
        closed = self._rounds.get(identity)
        if closed is not None and closed.is_open:
            closed.is_open = False
            self._tcp.drop_connections(closed)
            for port in closed.ports():
                self._server_of(port).remove(port)

    def _forget_oldest(self) -> None:
        closed = [number for number, known in self._rounds.items() if not known.is_open]
        for number in closed[: max(0, len(closed) - KEPT_ROUNDS)]:
            del self._rounds[number]


def _find_holders(block: ListenerBlock, table: PortHolders) -> None:
    """Note which sockets hold the block's ports, or the same ports on other addresses."""
    is_protocol = block.proto == "ipproto"
    numbers: Iterable[int] = [block.number or 0] if is_protocol else each(block.ranges)
    for number in numbers:
        entry = table.find(block.address, number, HOLDING_WAYS)
        if entry is not None:
            block.held.append((number, entry))
            continue
        beside = table.find(block.address, number, ("elsewhere",))
        if beside is not None:
            block.beside.append((number, beside))


def _list_held_beside(block: ListenerBlock) -> List[HeldPorts]:
    """List the processes that hold ports on other addresses of this host, apart from this one."""
    found = held_ports(block.address, block.beside)
    return [item for item in found if item.pid != os.getpid()]
