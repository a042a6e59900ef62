"""The TCP engine's sockets: used ones connect again, and the host's limit is kept."""

import select
import socket
from typing import Any, Dict, List, Optional, Tuple

from .orders import Order
from .sockets import Disconnect, close_with_reset, open_probe, set_ttl, tcp_socket_limit

EVENTS = select.EPOLLIN | select.EPOLLOUT | select.EPOLLRDHUP | select.EPOLLET

Key = Tuple[int, Optional[str], int, Optional[int], Optional[int]]
Shelf = List[socket.socket]


class Pool:
    """Sockets registered once with the engine's epoll, edge-triggered, and used again."""

    def __init__(self, epoll):
        # type: (Any) -> None
        self._epoll = epoll
        self._disconnect = Disconnect()
        self._shelves = {}  # type: Dict[Key, Shelf]
        self._limit = 0
        self.open = 0

    def measure(self):
        # type: () -> None
        """Take the limit from the soft limit of open files as it is now."""
        self._limit = tcp_socket_limit()

    def shelf(self, order):
        # type: (Order) -> Shelf
        """The idle sockets of one family, source address, TTL and TTL threshold: they are alike."""
        target = order.target
        key = (target.family, target.source, target.scope, order.min_ttl, order.ttl)
        return self._shelves.setdefault(key, [])

    def room(self):
        # type: () -> int
        """How many more connects may be out."""
        return self._limit - self.open + sum(len(shelf) for shelf in self._shelves.values())

    def shrink(self):
        # type: () -> None
        """The host has no more descriptors: what we have must do."""
        self._limit = max(1, self.open)

    def take(self, order):
        # type: (Order) -> socket.socket
        """A fresh socket. Raises OSError."""
        if self.open >= self._limit:
            # There is room only because the sockets of another source address lie idle.
            for shelf in self._shelves.values():
                if shelf:
                    self.drop(shelf.pop())
                    break
        sock = open_probe(order.target, socket.SOCK_STREAM, 0, order.min_ttl)
        if order.ttl is not None:
            set_ttl(sock, order.ttl)
        self.open += 1
        self._epoll.register(sock.fileno(), EVENTS)
        return sock

    def drop(self, sock):
        # type: (socket.socket) -> None
        """Close a socket; an open connection ends by a FIN."""
        self.open -= 1
        sock.close()

    def reset(self, sock):
        # type: (socket.socket) -> None
        """Close a socket; an open connection ends by a reset."""
        self.open -= 1
        close_with_reset(sock)

    def recycle(self, shelf, sock):
        # type: (Shelf, socket.socket) -> None
        """Reset an open connection and keep its socket, where that can be done."""
        if self._disconnect(sock):
            shelf.append(sock)
        else:
            self.reset(sock)

    def empty(self):
        # type: () -> None
        """Close what is idle."""
        for shelf in self._shelves.values():
            while shelf:
                self.drop(shelf.pop())
