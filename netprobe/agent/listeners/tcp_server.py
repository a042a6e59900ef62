"""The TCP side of the listeners: accept, check the nonce, answer, and never hold on to a stranger.

Only open connections have an object; the goal is 10,000 nonces a second on one core. A slow or
silent peer takes one of ``MAX_OPEN`` places; those that have their answer make room first, then the
oldest.
"""

import errno
import select
import socket
from typing import Dict, Optional

from ..core import loop as looping
from ..net.binding import peer
from ..wire.failures import SHORT_OF, name_of
from .rounds import EVENT_BATCH, ListenerPort, ListenerRound, PortServer

MAX_OPEN = 4096
ACCEPT_BATCH = 16
READ_S = 5.0
LINGER_S = 10.0
SWEEP_S = 1.0
DISCARD_BYTES = 4096
MOST_BACK = 128 * 1024


class Connection:
    """One accepted connection whose request or end is awaited."""

    __slots__ = ("answered", "data", "deadline", "done", "extra", "port", "sock", "source")

    def __init__(
        self, sock: socket.SocketType, port: ListenerPort, source: str, deadline: float
    ) -> None:
        self.sock = sock
        self.port = port
        self.source = source
        self.deadline = deadline
        self.data = b""
        # As many bytes as a request has were read, whoever sent them.
        self.done = False
        # They were a genuine request, and got its answer.
        self.answered = False
        # Bytes behind the request.
        self.extra = 0


class TcpServer(PortServer):
    """All listening TCP sockets of an agent and the connections that they accepted."""

    def __init__(self, loop: looping.Loop) -> None:
        PortServer.__init__(self, loop)
        self._open: Dict[int, Connection] = {}
        # Those of the open ones that were heard, and wait for their peer to end them.
        self._done: Dict[int, Connection] = {}
        self._sweeper: Optional[looping.Timer] = None

    def drop_connections(self, of_round: ListenerRound) -> None:
        """Reset every connection that came in over a round's listeners."""
        for connection in list(self._open.values()):
            if connection.port.round is of_round:
                self._end_connection(connection)

    def close(self) -> None:
        """Close everything."""
        for connection in list(self._open.values()):
            self._end_connection(connection)
        PortServer.close(self)

    def serve_events(self) -> int:
        """Serve a batch, and give how many events there were."""
        ports, connections = self._ports, self._open
        events = self._epoll.poll(0, EVENT_BATCH)
        for fd, _event in events:
            connection = connections.get(fd)
            if connection is not None:
                self._read_request(connection)
            elif fd in ports:
                self._accept_from(ports[fd])
        return len(events)

    def _accept_from(self, port: ListenerPort) -> None:
        for _ in range(ACCEPT_BATCH):
            try:
                sock, address = port.sock.accept()
            except OSError as error:
                if error.errno in SHORT_OF:
                    self._make_room()
                # Anything else is EAGAIN or a peer that was gone before we looked.
                return
            self._take_connection(sock, port, peer(address))

    def _take_connection(self, sock: socket.SocketType, port: ListenerPort, source: str) -> None:
        connection = Connection(sock, port, source, self._loop.now() + READ_S)
        if len(self._open) >= MAX_OPEN:
            self._make_room()
        self._open[sock.fileno()] = connection
        # The request mostly came with the handshake: reading at once saves a round of epoll.
        self._read_request(connection)
        if sock.fileno() >= 0:
            self._epoll.register(sock.fileno(), select.EPOLLIN)
            if self._sweeper is None:
                self._sweeper = self._loop.call_later(SWEEP_S, self._end_late)

    def _read_request(self, connection: Connection) -> None:
        wanted = connection.port.request_bytes - len(connection.data)
        size = DISCARD_BYTES if connection.done else max(1, wanted)
        try:
            data = connection.sock.recv(size, socket.MSG_DONTWAIT)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EINTR):
                self._end_connection(connection)
            return
        if not data:
            self._end_stream(connection)
        elif connection.done:
            connection.extra += len(data)
        else:
            connection.data += data
            if len(connection.data) >= connection.port.request_bytes:
                self._answer_request(connection)

    def _answer_request(self, connection: Connection) -> None:
        port = connection.port
        connection.done = True
        self._done[connection.sock.fileno()] = connection
        connection.deadline = self._loop.now() + LINGER_S
        answer = port.round.arrived(port, connection.data, connection.source)
        connection.data = b""
        if answer is None:
            return
        connection.answered = True
        data, log = answer
        try:
            connection.sock.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError as error:
            log.failures[port.number] = name_of(error.errno)
            self._end_connection(connection)

    def _end_stream(self, connection: Connection) -> None:
        """Give as many bytes back as came behind a genuine request; then the peer ends it."""
        if not connection.answered or not connection.extra:
            self._end_connection(connection)
            return
        back, connection.extra = bytes(min(connection.extra, MOST_BACK)), 0
        # The stream's end would be told again and again.
        self._epoll.modify(connection.sock.fileno(), 0)
        try:
            connection.sock.send(back, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            self._end_connection(connection)

    def _end_connection(self, connection: Connection) -> None:
        if not connection.done:
            connection.port.round.log.stranger(connection.port.number, connection.source)
        self._open.pop(connection.sock.fileno(), None)
        self._done.pop(connection.sock.fileno(), None)
        # Inherited SO_LINGER 0: a reset, unless the peer closed first.
        connection.sock.close()

    def _make_room(self) -> None:
        for connection in (self._done or self._open).values():
            self._end_connection(connection)
            return

    def _end_late(self) -> None:
        now = self._loop.now()
        for connection in list(self._open.values()):
            if connection.deadline < now:
                self._end_connection(connection)
        self._sweeper = self._loop.call_later(SWEEP_S, self._end_late) if self._open else None
