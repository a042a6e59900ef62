"""A live service for the lab: accepts TCP, answers DNS over UDP with REFUSED, and echoes the rest.

python service.py PORT '["10.0.0.1", "fd00::1"]'
"""

from __future__ import annotations

import json
import selectors
import socket
import sys


def bound(kind: int, address: str, port: int) -> socket.socket:
    """A non-blocking socket on an address."""
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, kind == socket.SOCK_STREAM)
    made.bind((address, port))
    made.setblocking(False)
    return made


def refused(query: bytes) -> bytes:
    """The query with the bits of an answer that says REFUSED."""
    return query[:2] + bytes((query[2] | 0x80, 0x05)) + query[4:]


def serve(port: int, addresses: list[str]) -> None:
    """Answer until killed."""
    chosen = selectors.DefaultSelector()
    for address in addresses:
        listener = bound(socket.SOCK_STREAM, address, port)
        listener.listen(64)
        chosen.register(listener, selectors.EVENT_READ, "listener")
        chosen.register(bound(socket.SOCK_DGRAM, address, port), selectors.EVENT_READ, "datagrams")
    while True:
        for key, _ in chosen.select():
            handle(chosen, key)


def handle(chosen: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
    """One ready socket; whatever goes wrong is the other side's business."""
    ready = key.fileobj
    assert isinstance(ready, socket.socket)
    try:
        if key.data == "listener":
            chosen.register(ready.accept()[0], selectors.EVENT_READ, "connection")
        elif key.data == "datagrams":
            query, sender = ready.recvfrom(4096)
            ready.sendto(refused(query) if len(query) >= 12 else query + b"?", sender)
        elif not ready.recv(4096):
            chosen.unregister(ready)
            ready.close()
    except OSError:
        if key.data == "connection":
            chosen.unregister(ready)
            ready.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]), json.loads(sys.argv[2]))
