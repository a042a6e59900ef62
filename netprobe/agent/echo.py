"""ICMP echo probes: one socket a family and source address serves all destinations."""

from typing import Any, Dict, Optional, Tuple

from . import replies
from .asking import AskEngine
from .asks import Ask, AskOrder
from .errqueue import drain, ttl_of
from .failures import NO_PERMISSION, is_transient, name_of
from .icmp import HEADER_BYTES, EchoSocket, echo_payload, echo_request, open_echo, quoted_sequence
from .loop import READ
from .outcomes import kind
from .ping import PingProgram, find
from .sockets import forbid_fragments, padded, widen
from .wire import MAC_BYTES, NONCE_BYTES, pack_nonce, read_nonce, request_mac

MOST_DATAGRAM = 65535
ANCILLARY_BYTES = 64
# What the kernel says where the address is wrong; anything else that keeps us from a socket is that
# we may not have one.
ADDRESS_ERRORS = frozenset(("address-not-available", "family-not-supported"))

# A raw socket takes the kernel milliseconds to close: orders that follow each other share one.
IDLE_S = 1.0

Key = Tuple[int, Optional[str], int, bool]


class Shared:
    """A socket and the orders that use it; ``sequences`` finds the flow that an error quotes."""

    def __init__(self, opened):
        # type: (EchoSocket) -> None
        self.sock, self.kind, self.number = opened
        self.users = 0
        self.sequences = {}  # type: Dict[int, int]
        self.next = 0


class EchoEngine(AskEngine):
    """All echo orders of the agent."""

    def __init__(self, agent):
        # type: (Any) -> None
        AskEngine.__init__(self, agent)
        self._shared = {}  # type: Dict[Key, Shared]
        self._program = PingProgram(agent)

    def submit(self, message):
        # type: (Dict[str, Any]) -> None
        """Start an order; by the ``ping`` program where this process may open no socket."""
        order = AskOrder(self.agent, message)
        try:
            self._share(order)
        except OSError as error:
            if self.open_failure(error) == NO_PERMISSION and find("ping") is not None:
                self._program.submit(order)
                return
        AskEngine.submit(self, message)

    def cancel(self, order_id):
        # type: (int) -> bool
        """End an order early; whether it was one of this engine."""
        return self._program.cancel(order_id) or AskEngine.cancel(self, order_id)

    def close(self):
        # type: () -> None
        """Close every socket and end every process of ours."""
        AskEngine.close(self)
        self._program.close()
        for key in list(self._shared):
            self._close_shared(key)

    def open_failure(self, error):
        # type: (OSError) -> str
        """The failure of an order whose socket could not be opened."""
        name = name_of(error.errno)
        return name if name in ADDRESS_ERRORS or is_transient(error.errno) else NO_PERMISSION

    def one_way(self, ask):
        # type: (Ask) -> bool
        """An echo request always expects its reply."""
        return False

    def _share(self, order):
        # type: (AskOrder) -> Shared
        target = order.target
        key = _key(order)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = Shared(open_echo(target))
            widen(shared.sock)
            if order.size is not None:
                forbid_fragments(shared.sock)
            opened = shared
            self.agent.loop.watch(shared.sock.fileno(), READ, lambda events: self._ready(opened))
        return shared

    def _open(self, order):
        # type: (AskOrder) -> None
        shared = self._share(order)
        shared.users += 1
        order.sock = shared.sock

    def _release(self, order):
        # type: (AskOrder) -> None
        if order.sock is None:
            return
        order.sock = None
        key = _key(order)
        self._shared[key].users -= 1
        if not self._shared[key].users:
            self.agent.loop.call_later(IDLE_S, lambda: self._close_idle(key))

    def _close_idle(self, key):
        # type: (Key) -> None
        shared = self._shared.get(key)
        if shared is not None and not shared.users and not self._backlog:
            self._close_shared(key)

    def _close_shared(self, key):
        # type: (Key) -> None
        shared = self._shared.pop(key)
        self.agent.loop.unwatch(shared.sock.fileno())
        shared.sock.close()

    def _ready(self, shared):
        # type: (Shared) -> None
        self._read(shared)
        if self._queue:
            self.run()

    def _transmit(self, order, ask):
        # type: (AskOrder, Ask) -> None
        assert order.sock is not None
        shared = self._shared[_key(order)]
        shared.next = (shared.next + 1) & 0xFFFF
        shared.sequences[shared.next] = order.id
        nonce = pack_nonce(order.id, 0, ask.attempt)
        payload = nonce + request_mac(self.agent.key, nonce)
        if order.size is not None:
            payload = padded(payload, order.target.family, order.size, HEADER_BYTES)
        packet = echo_request(order.target.family, shared.number, shared.next, payload)
        order.sock.sendto(packet, order.target.sockaddr(0))

    def _hear(self, order):
        # type: (AskOrder) -> None
        shared = self._shared.get(_key(order))
        if shared is not None:
            self._read(shared)

    def _read(self, shared):
        # type: (Shared) -> None
        self._read_errors(shared)
        while shared.sock.fileno() >= 0:
            try:
                data, ancillary, _, sender = shared.sock.recvmsg(MOST_DATAGRAM, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            except OSError:
                self._read_errors(shared)
                continue
            self._reply(shared, data, ttl_of(ancillary), sender[0].partition("%")[0])

    def _read_errors(self, shared):
        # type: (Shared) -> None
        if shared.sock.fileno() < 0:
            return
        for error in drain(shared.sock):
            # A raw socket hears the errors of every ping of this host: both the quoted sequence
            # and the destination must be ours.
            sequence = quoted_sequence(error.data)
            order = self.orders.get(shared.sequences.get(sequence, -1)) if sequence else None
            if order is None or error.to != order.target.address:
                continue
            ask = order.out.get(0)
            if ask is not None:
                self.error(order, ask, error)

    def _reply(self, shared, data, ttl, sender):
        # type: (Shared, bytes, Optional[int], str) -> None
        payload = echo_payload(shared.sock.family, shared.kind, data)
        if payload is None or len(payload) < NONCE_BYTES + MAC_BYTES:
            return
        nonce, mac = payload[:NONCE_BYTES], payload[NONCE_BYTES : NONCE_BYTES + MAC_BYTES]
        order = self.orders.get(read_nonce(nonce).order)
        if order is None or mac != request_mac(self.agent.key, nonce):
            return
        ask = order.out.get(0)
        if ask is not None and sender == order.target.address:
            self.answer(order, ask, kind("answer", answer=replies.ECHO, ttl=ttl))


def _key(order):
    # type: (AskOrder) -> Key
    target = order.target
    return (target.family, target.source, target.scope, order.size is not None)
