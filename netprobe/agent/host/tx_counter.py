"""Whether connects leave this host at all: what the interface counts while they are made.

A reset of the host's own firewall looks like a neighbour's: both arrive with a full TTL. But then
no packet is sent, and the interface's counter stays behind (docs/network-facts.md, section 2).
"""

import select
import socket
from typing import Any, Dict, List, Optional

from ..core.agent import AgentCore
from ..net.sockets import ProbeTarget, close_with_reset, open_probe, target_of
from ..wire.host_messages import (
    RouteOrder,
    TxCounted,
    TxCountOrder,
)
from .route import look_up_route

ANSWER_S = 1.0
# Of the process's own network namespace; /sys may show another one's.
COUNTERS = "/proc/net/dev"
SENT_PACKETS = 9


def count_sent(agent: AgentCore, order: TxCountOrder) -> None:
    """Answer how many connects were made, and how many packets the interface sent meanwhile."""
    target = target_of(order.dst, order.src)
    device = look_up_route(RouteOrder(order.id, order.dst, order.src)).dev
    before = _read_sent(device)
    made = _connect_all(target, order.port, order.connects)
    after = _read_sent(device)
    counted = after - before if before is not None and after is not None else None
    agent.send(TxCounted(order.id, made, counted, device))


def _read_sent(device: Optional[str]) -> Optional[int]:
    with open(COUNTERS) as file:
        for line in file:
            name, found, counters = line.partition(":")
            if found and name.strip() == device:
                return int(counters.split()[SENT_PACKETS])
    return None


def _connect_all(target: ProbeTarget, port: int, count: int) -> int:
    """Start this many connects at once, wait until all are answered or a second has passed."""
    poller = select.poll()
    waiting: Dict[int, socket.socket] = {}
    made = 0
    for _ in range(count):
        sock = open_probe(target, socket.SOCK_STREAM)
        made += 1
        if sock.connect_ex(target.sockaddr(port)) == 0:
            close_with_reset(sock)
            continue
        waiting[sock.fileno()] = sock
        poller.register(sock.fileno(), select.POLLOUT)
    _collect_answers(poller, waiting)
    for sock in waiting.values():
        close_with_reset(sock)
    return made


def _collect_answers(poller: Any, waiting: Dict[int, socket.socket]) -> None:
    while waiting:
        ready: List[Any] = poller.poll(int(ANSWER_S * 1000))
        if not ready:
            return
        for fd, _events in ready:
            poller.unregister(fd)
            waiting.pop(fd).close()
