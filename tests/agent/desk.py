"""An agent's listening side in this process: orders in, messages out, one loop."""

from __future__ import annotations

import fcntl
import socket
import sys
from typing import Any, TypeVar

from netprobe.agent.host.resolve import Resolver
from netprobe.agent.listeners.listeners import AgentListeners
from netprobe.agent.wire.answers import Listening, Seen
from netprobe.agent.wire.orders import ListenOrder, SeenOrder
from netprobe.agent.wire.parts import ListenBlock, ListeningBlock
from netprobe.agent.wire.templates import Template, pack_nonce
from tests.agent.rig import KEY, PLAIN, Agent, cross_wire
from tests.patience import PATIENCE_S, wait_until

Message = TypeVar("Message")

SIOCOUTQ = 0x5411

ONE_WAY = Template(b"NPV1" + bytes(24), 4, 12)
MACLESS = Template(b"\x23" + bytes(39) + b"nonce---", 40, None)


class Desk(Agent):
    """The agent of the engines' tests, with listeners and a way to wait for a message."""

    def __init__(self) -> None:
        super().__init__()
        self.templates = {1: PLAIN, 2: ONE_WAY, 3: MACLESS}
        self.listeners = AgentListeners(self)
        self.resolver: Resolver
        self._until: type[Any] | None = None

    def send(self, message: Any) -> None:
        self.messages.append(cross_wire(message))
        if self._until is not None and isinstance(message, self._until):
            self.loop.stop()

    def await_message(self, kind: type[Message], most_s: float = PATIENCE_S) -> Message:
        """Run the loop until such a message was sent, and take it."""
        self._until = kind
        if not self.sent(kind):
            self.run(most_s)
        found: Message = self.sent(kind)[0]
        self.messages.remove(found)
        return found

    def run(self, seconds: float) -> None:
        """Serve for a while, or until the awaited message."""
        late = self.loop.call_later(seconds, self.loop.stop)
        self.loop.run()
        late.cancel()

    def listen(self, *blocks: ListenBlock, identity: int = 1) -> list[ListeningBlock]:
        """Open a round and give what became of its blocks."""
        self.listeners.listen(ListenOrder(identity, list(blocks)))
        return self.await_message(Listening).blocks

    def seen(self, *orders: int, identity: int = 1) -> Seen:
        """What the round saw."""
        self.listeners.tell_seen(SeenOrder(99, identity, list(orders), rest=True))
        return self.await_message(Seen)

    def settle(self, *senders: socket.socket) -> None:
        """Serve until nothing is ready any more; what these have sent has come by then.

        On a busy machine a packet of the loopback, too, may come a moment after it was sent.
        """
        wait_until(lambda: not any(map(count_unsent, senders)), "packets to arrive")
        for _ in range(3):
            self.loop.call_later(0, self.loop.stop)
            self.loop.run()


def count_unsent(sock: socket.socket) -> int:
    """Count the bytes that the other end's kernel has not taken yet."""
    return int.from_bytes(fcntl.ioctl(sock, SIOCOUTQ, bytes(4)), sys.byteorder)


def block(
    proto: str,
    address: str,
    *ports: tuple[int, int],
    template: int = 1,
    number: int | None = None,
) -> ListenBlock:
    """One block of a listen order."""
    return ListenBlock(proto, address, list(ports), number, template)


def request(order: int, port: int, template: Template = PLAIN, key: bytes = KEY) -> bytes:
    """A genuine request."""
    return template.fill(key, pack_nonce(order, port, 1))
