"""What becomes of a packet here: its next hop, and whether the kernel has room for it.

The kernel gives up a next hop that does not answer ARP or neighbour requests after three seconds,
and then tells all packets that wait, so that each hears it after another time: the neighbour table
says it plainly. Where that table is full or a queue drops, TCP is not told (its SYNs just never
leave, as with a firewall that drops them), a datagram is: ENOBUFS, where the socket listens for
errors.
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
from .return_path import Neighbour, neighbour
from .route import has_carrier, look_up_route


def tell_egress(agent: AgentCore, order: EgressOrder) -> None:
    """Answer with the next hop's neighbour entry, and how a datagram's send ended."""
    dev = next_hop = failure = None
    near = Neighbour(None, None)
    try:
        found = look_up_route(RouteOrder(order.id, order.dst, order.src))
        dev, next_hop = found.dev, found.gateway or order.dst
        near = neighbour(next_hop, dev)
        if near.state != "failed":  # a packet would make it unknown again for three seconds
            _send_datagram(order.dst, order.src, order.port)
    except OSError as error:
        failure = name_of(error.errno)
    if dev is not None and next_hop is not None:
        near = neighbour(next_hop, dev)
    carrier = has_carrier(dev) if dev is not None else None
    agent.send(Egress(order.id, dev, next_hop, near.state, near.link, carrier, failure))


def _send_datagram(destination: str, source: Optional[str], port: int) -> None:
    target = target_of(destination, source)
    sock = open_probe(target, socket.SOCK_DGRAM)
    try:
        sock.sendto(b"", target.sockaddr(port))
    finally:
        sock.close()
