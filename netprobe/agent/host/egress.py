"""Whether this host's kernel has room for a packet: a full neighbour table, a queue that drops.

TCP is not told (its SYNs just never leave, as with a firewall that drops them), a datagram is:
ENOBUFS, where the socket listens for errors.
"""

import socket
from typing import Any, Dict

from ..net.sockets import open_probe, target_of
from ..wire.failures import name_of
from .return_path import neighbour
from .route import route


def room(message: Dict[str, Any]) -> Dict[str, Any]:
    """The ``roomed`` frame for a ``room`` order: what a datagram's send failed with, if it did."""
    answer: Dict[str, Any] = {
        "t": "roomed",
        "id": message["id"],
        "dev": None,
        "next_hop": None,
        "neighbour": None,
        "failure": None,
    }
    destination, source = message["dst"], message.get("src")
    try:
        found = route(destination, source)
        answer["dev"], answer["next_hop"] = found["dev"], found["gateway"] or destination
        _send(destination, source, message["port"])
    except OSError as error:
        answer["failure"] = name_of(error.errno)
    if answer["dev"] is not None:
        answer["neighbour"] = neighbour(answer["next_hop"], answer["dev"])
    return answer


def _send(destination: str, source: Any, port: int) -> None:
    target = target_of(destination, source)
    sock = open_probe(target, socket.SOCK_DGRAM)
    try:
        sock.sendto(b"", target.sockaddr(port))
    finally:
        sock.close()
