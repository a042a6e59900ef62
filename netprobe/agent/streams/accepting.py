"""A port whose connections are handed over as streams: the coordinator speaks over them.

A stream is handed over with credit 0, so that nothing is read of it before the coordinator has
taken it. How many there may be, and for how long, is limited: what came in beyond that waits in the
kernel's queue, and all ends with the time that the order gives.
"""

import errno
import socket
from typing import Callable, Dict, Iterator, Tuple

from ..core.agent import AgentCore
from ..core.loop import READ
from ..net.sockets import target_of
from ..wire.failures import name_of
from ..wire.stream_messages import (
    StreamAccepted,
    StreamListening,
    StreamListenOrder,
    StreamOpenOrder,
)
from .stream import AgentStream

BACKLOG = 128
REST_S = 0.2
# What accept() says of a connection that is gone again.
_GONE = frozenset((errno.ECONNABORTED, errno.EPROTO, errno.EINTR))


class AcceptedStream(AgentStream):
    """A connection that came in."""

    def __init__(
        self, agent: AgentCore, order: StreamOpenOrder, sock: socket.socket,
        forget: Callable[[int], None],
    ) -> None:  # fmt: skip
        AgentStream.__init__(self, agent, order, forget)
        self._sock = sock
        self._open = True
        self._opened_at = self._loop.now()
        self._credit = 0


class StreamListener:
    """A listening socket, and the streams that came in over it; ``streams`` are all of the agent.

    ``forget`` is called with its id when it is over.
    """

    def __init__(
        self, agent: AgentCore, order: StreamListenOrder, streams: Dict[int, AgentStream],
        ids: Iterator[int], forget: Callable[[int], None],
    ) -> None:  # fmt: skip
        self._agent = agent
        self._loop = agent.loop
        self._order = order
        self._streams = streams
        self._ids = ids
        self._forget = forget
        self._sock = self._open_socket()
        self._own: Dict[int, AgentStream] = {}
        self._watches = False
        self._timer = self._loop.call_later(order.ms / 1000.0, self.close)
        self._watch_again()

    def _open_socket(self) -> socket.socket:
        target = target_of(self._order.address, None)
        sock = socket.socket(target.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if target.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(target.sockaddr(self._order.port))
            sock.listen(BACKLOG)
        except OSError:
            sock.close()
            raise
        return sock

    def close(self) -> None:
        """Stop listening, and close what came in."""
        self._timer.cancel()
        self._unwatch_port()
        self._sock.close()
        self._forget(self._order.id)
        for stream in list(self._own.values()):
            stream.drop(False)

    def _watch_again(self) -> None:
        """Watch for connections while there is room for one."""
        wanted = len(self._own) < self._order.most and self._sock.fileno() >= 0
        if wanted and not self._watches:
            self._loop.watch(self._sock.fileno(), READ, self._accept_connections)
            self._watches = True
        elif not wanted:
            self._unwatch_port()

    def _unwatch_port(self) -> None:
        if self._watches:
            self._loop.unwatch(self._sock.fileno())
            self._watches = False

    def _accept_connections(self, _events: int) -> None:
        while len(self._own) < self._order.most:
            try:
                sock, peer = self._sock.accept()
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno in _GONE:
                    continue
                self._pause_port()
                return
            self._hand_over(sock, peer)
        self._watch_again()

    def _pause_port(self) -> None:
        """Let what waits in the kernel's queue wait: this host is short of something."""
        self._unwatch_port()
        self._loop.call_later(REST_S, self._watch_again)

    def _hand_over(self, sock: socket.socket, peer: Tuple[str, int]) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        identity, address = next(self._ids), str(peer[0]).partition("%")[0]
        order = StreamOpenOrder(identity, address, peer[1], None, None, 0)
        stream = AcceptedStream(self._agent, order, sock, self._forget_stream)
        self._own[identity] = self._streams[identity] = stream
        self._agent.send(StreamAccepted(self._order.id, identity, address, peer[1]))

    def _forget_stream(self, identity: int) -> None:
        self._own.pop(identity, None)
        self._streams.pop(identity, None)
        self._watch_again()


def listen_for_streams(
    agent: AgentCore, order: StreamListenOrder, streams: Dict[int, AgentStream],
    ids: Iterator[int], listeners: Dict[int, StreamListener],
) -> None:  # fmt: skip
    """Listen at a port; ``StreamListening`` follows in any case."""

    def forget(identity: int) -> None:
        listeners.pop(identity, None)

    try:
        listeners[order.id] = StreamListener(agent, order, streams, ids, forget)
    except OSError as error:
        agent.send(StreamListening(order.id, name_of(error.errno)))
        return
    agent.send(StreamListening(order.id, None))
