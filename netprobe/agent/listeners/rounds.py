"""A round of listeners: its bound ports, and the answer to each packet that arrives there."""

import select
import socket
from typing import Dict, List, Optional, Tuple

from ..core import loop as looping
from ..core.ranges import PortSet
from ..host.port_owners import Socket
from ..wire.parts import FailedPorts, HeldPorts, ListenBlock, ListeningBlock, UnreachedPorts
from ..wire.templates import Template, read_nonce
from .arrival_log import SELF_DIAL_ORDER, OrderLog, RoundLog

EVENT_BATCH = 512

# The bytes of an answer, and the log that notes whether it could be sent.
LoggedReply = Tuple[bytes, OrderLog]


class ListenerPort:
    """A bound socket of a round. ``number`` is 0 for an IP protocol, which has no ports."""

    __slots__ = (
        "block",
        "number",
        "reached",
        "request_bytes",
        "round",
        "sock",
        "template",
        "unreached",
    )

    def __init__(self, block: "ListenerBlock", number: int, sock: socket.socket) -> None:
        self.round = block.round
        self.block = block
        self.number = number
        self.sock = sock
        self.template = block.template
        self.request_bytes = max(1, len(block.template.request)) if block.template else 1
        # By a genuine request: anybody's, or the agent's own.
        self.reached = False
        # Nor have the agent's own dials.
        self.unreached = False


class ListenerBlock:
    """One block of a ``ListenOrder`` and what became of its ports."""

    def __init__(
        self, of_round: "ListenerRound", item: ListenBlock, template: Optional[Template]
    ) -> None:
        self.round = of_round
        self.proto = item.proto
        self.address = item.address
        self.ranges = item.ports
        self.number = item.number
        self.template = template
        self.nat = False
        self.ports: List[ListenerPort] = []
        self.held: List[Tuple[int, Socket]] = []
        # Sockets that hold a port on another address of this host; on this one it is free.
        self.beside: List[Tuple[int, Socket]] = []
        self.denied = PortSet()
        self.skipped = PortSet()
        self.failed: Dict[str, PortSet] = {}

    def fail(self, number: int, failure: str) -> None:
        """Note a port that could not be bound although no other socket holds it."""
        self.failed.setdefault(failure, PortSet()).add(number)

    def describe(self, held: List[HeldPorts], beside: List[HeldPorts]) -> ListeningBlock:
        """Give the block as ``Listening`` carries it."""
        return ListeningBlock(
            up=PortSet(port.number for port in self.ports).pairs(),
            held=held,
            beside=beside,
            denied=self.denied.pairs(),
            failed=[
                FailedPorts(first, last, failure)
                for failure, ports in sorted(self.failed.items())
                for first, last in ports.pairs()
            ],
            skipped=self.skipped.pairs(),
            nat=self.nat,
        )


class ListenerRound:
    """The listeners of one ``ListenOrder``, and the log of what they saw."""

    def __init__(self, key: bytes, host: int) -> None:
        self._key = key
        self._host = host
        self.blocks: List[ListenerBlock] = []
        self.log = RoundLog()
        # How many genuine requests came.
        self.arrivals = 0
        self.is_open = True

    def ports(self) -> List[ListenerPort]:
        """Give every bound port of the round."""
        return [port for block in self.blocks for port in block.ports]

    def list_unreached(self) -> List[UnreachedPorts]:
        """List the ports that were dialled, and that nothing has reached."""
        found = []
        for block in self.blocks:
            lonely = [one.number for one in block.ports if one.unreached and not one.reached]
            if lonely:
                ports = PortSet(lonely).pairs()
                found.append(UnreachedPorts(block.proto, block.address, block.number, ports))
        return found

    def arrived(self, port: ListenerPort, data: bytes, source: str) -> Optional[LoggedReply]:
        """Log a packet that reached a socket; gives its answer, if it gets one."""
        template = port.template
        nonce = template.recognise(self._key, data) if template is not None else None
        if template is None or nonce is None:
            self.log.stranger(port.number, source)
            return None
        said = read_nonce(nonce)
        astray = said.port != port.number
        self.arrivals += 1
        port.reached = port.reached or not astray
        if said.order == SELF_DIAL_ORDER:
            return None
        if astray and template.answer is not None:
            # A NAT rule changed its port, so it did not reach the one that was asked: it is not
            # logged. It is answered, because the answer's MAC covers the port that it did reach.
            log: Optional[OrderLog] = OrderLog()
        else:
            log = self.log.saw(said.order, said.port, source)
        if log is None or template.answer is None:
            return None
        return template.reply(self._key, nonce, self._host, port.number, data), log


class PortServer:
    """Serves bound ports when something comes, over an epoll descriptor of its own."""

    def __init__(self, loop: looping.Loop) -> None:
        self._loop = loop
        self._epoll = select.epoll()
        self._ports: Dict[int, ListenerPort] = {}
        loop.watch(self._epoll.fileno(), looping.READ, self._serve_ports)

    def add(self, port: ListenerPort) -> None:
        """Serve a bound socket; one of TCP listens."""
        self._ports[port.sock.fileno()] = port
        self._epoll.register(port.sock.fileno(), select.EPOLLIN)

    def remove(self, port: ListenerPort) -> None:
        """Close a listener."""
        if self._ports.pop(port.sock.fileno(), None) is not None:
            port.sock.close()

    def close(self) -> None:
        """Close everything."""
        for port in list(self._ports.values()):
            self.remove(port)
        self._loop.unwatch(self._epoll.fileno())
        self._epoll.close()

    def _serve_ports(self, _events: int) -> None:
        self.serve_events()

    def serve_events(self) -> int:
        """Serve a batch, and give how many events there were."""
        raise NotImplementedError
