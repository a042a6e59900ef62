"""The TCP engine's sockets: used ones connect again, and the host's limit is kept."""

import select
import socket
from collections import OrderedDict
from typing import Any, Dict, List, Tuple

from ...net.sockets import (
    close_with_reset,
    disconnect,
    disconnect_is_thorough,
    open_probe,
    set_ttl,
    tcp_socket_limit,
)
from ..orders import RunningOrder

EVENTS = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET
# How many ended connections may wait until the peer ends too (also as a share of all sockets), and
# how long. Waiting pays only for many connections: the first few are simply closed.
MOST_PARTING = 256
PARTING_SHARE = 0.25
PARTING_S = 0.5
FEW = 256

ShelfKey = Tuple[Any, ...]
Shelf = List[socket.socket]


class SocketPool:
    """Sockets registered once with the engine's epoll, edge-triggered, and used again."""

    def __init__(self, epoll: select.epoll) -> None:
        self._epoll = epoll
        self._shelves: Dict[ShelfKey, Shelf] = {}
        self._limit = 0
        # Sockets that have sent their FIN, by descriptor, the oldest first.
        self._parting: "OrderedDict[int, Tuple[float, Shelf, socket.socket]]" = OrderedDict()
        self._parted = 0
        self.open = 0

    def measure(self) -> None:
        """Take the limit from the soft limit of open files as it is now."""
        self._limit = tcp_socket_limit()

    def shelf(self, order: RunningOrder) -> Shelf:
        """Give the idle sockets with an order's family, source address, TTLs and segment size."""
        target = order.target
        where = (target.family, target.source, target.scope)
        kind = (order.min_ttl, order.ttl, order.size, order.sport)
        return self._shelves.setdefault(where + kind, [])

    def room(self) -> int:
        """Tell how many more connects may be out."""
        return self._limit - self.open + sum(len(shelf) for shelf in self._shelves.values())

    def shrink(self) -> None:
        """Open no more sockets than now: the host has no more descriptors."""
        self._limit = max(1, self.open)

    def take(self, order: RunningOrder) -> socket.socket:
        """Take a fresh socket. Raises OSError."""
        if self.open >= self._limit:
            # There is room only because sockets with another source address are idle.
            for shelf in self._shelves.values():
                if shelf:
                    self.drop(shelf.pop())
                    break
        port = order.sport or 0
        sock = open_probe(order.target, socket.SOCK_STREAM, 0, order.min_ttl, port)
        if order.ttl is not None:
            set_ttl(sock, order.ttl)
        self.open += 1
        self._epoll.register(sock.fileno(), EVENTS)
        return sock

    def drop(self, sock: socket.socket) -> None:
        """Close a socket; an open connection ends by a FIN."""
        self.open -= 1
        sock.close()

    def part(self, shelf: Shelf, socks: List[socket.socket], now: float) -> None:
        """End open connections by a FIN, and keep the sockets once the peer has ended too."""
        parting = self._parting
        most = min(MOST_PARTING, int(self._limit * PARTING_SHARE))
        for sock in socks:
            self._parted += 1
            if self._parted <= FEW or len(parting) >= most or not disconnect_is_thorough():
                self.drop(sock)
                continue
            try:
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                self.drop(sock)  # the peer's reset was faster
            else:
                parting[sock.fileno()] = (now, shelf, sock)

    def hear(self, events: List[Tuple[int, int]]) -> None:
        """Take back the sockets whose peer has ended the connection too."""
        parting = self._parting
        if not parting:
            return
        fds = [fd for fd, mask in events if mask & select.EPOLLHUP and fd in parting]
        for fd, failed in zip(fds, disconnect(fds)):
            _, shelf, sock = parting.pop(fd)
            if failed:
                self.reset(sock)
            else:
                shelf.append(sock)

    def age(self, now: float) -> None:
        """Close sockets that have waited long enough for the peer."""
        parting = self._parting
        while parting and now - next(iter(parting.values()))[0] > PARTING_S:
            self.drop(parting.popitem(last=False)[1][2])

    def reset(self, sock: socket.socket) -> None:
        """Close a socket; an open connection ends by a reset."""
        self.open -= 1
        close_with_reset(sock)

    def recycle(self, shelf: Shelf, sock: socket.socket) -> None:
        """Reset an open connection and keep its socket, where that can be done."""
        if disconnect([sock.fileno()]) == [0]:
            shelf.append(sock)
        else:
            self.reset(sock)

    def empty(self) -> None:
        """Close the idle sockets."""
        while self._parting:
            self.drop(self._parting.popitem()[1][2])
        for shelf in self._shelves.values():
            while shelf:
                self.drop(shelf.pop())
