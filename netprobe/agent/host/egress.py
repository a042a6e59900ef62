"""Whether this host's kernel has room for a packet: a full neighbour table, a queue that drops.

TCP is not told (its SYNs just never leave, as with a firewall that drops them), a datagram is:
ENOBUFS, where the socket listens for errors.
"""

import socket
from typing import Optional

from ..core.agent import AgentCore
from ..net.sockets import open_probe, target_of
from ..wire.failures import name_of
from ..wire.host_messages import (
    Egress,
    EgressOrder,
    RouteOrder,
)
from .return_path import neighbour
from .route import look_up_route


def tell_egress(agent: AgentCore, order: EgressOrder) -> None:
    """Answer with the failure of a datagram's send, if it had one."""
    dev = next_hop = failure = near = None
    try:
        found = look_up_route(RouteOrder(order.id, order.dst, order.src))
        dev, next_hop = found.dev, found.gateway or order.dst
        _send_datagram(order.dst, order.src, order.port)
    except OSError as error:
        failure = name_of(error.errno)
    if dev is not None and next_hop is not None:
        near = neighbour(next_hop, dev)
    agent.send(Egress(order.id, dev, next_hop, near, failure))


def _send_datagram(destination: str, source: Optional[str], port: int) -> None:
    target = target_of(destination, source)
    sock = open_probe(target, socket.SOCK_DGRAM)
    try:
        sock.sendto(b"", target.sockaddr(port))
    finally:
        sock.close()
