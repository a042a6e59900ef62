"""Whether connects leave this host at all: what the interface counts while they are made.

A reset of the own firewall looks like a neighbour's (network-facts section 2): both arrive with a
full TTL. But then no packet is sent, and the interface's counter stays behind.
"""

import select
import socket
from typing import Any, Dict, List, Optional

from ..net.sockets import close_with_reset, open_probe, target_of
from .route import route

ANSWER_S = 1.0
# Of the process's own network namespace; /sys may show another one's.
COUNTERS = "/proc/net/dev"
SENT_PACKETS = 9


def departures(agent: Any, message: Dict[str, Any]) -> None:
    """Answer a ``departures`` order: how many connects were made, how many packets were sent."""
    target = target_of(message["dst"], message.get("src"))
    device = route(message["dst"], message.get("src"))["dev"]
    before = _sent(device)
    made = _connect(target, message["port"], message["count"])
    after = _sent(device)
    counted = after - before if before is not None and after is not None else None
    agent.send(
        {"t": "departed", "id": message["id"], "connects": made, "packets": counted, "dev": device}
    )


def _sent(device: Optional[str]) -> Optional[int]:
    with open(COUNTERS) as file:
        for line in file:
            name, found, counters = line.partition(":")
            if found and name.strip() == device:
                return int(counters.split()[SENT_PACKETS])
    return None


def _connect(target: Any, port: int, count: int) -> int:
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
    _collect(poller, waiting)
    for sock in waiting.values():
        close_with_reset(sock)
    return made


def _collect(poller: Any, waiting: Dict[int, socket.socket]) -> None:
    while waiting:
        ready: List[Any] = poller.poll(int(ANSWER_S * 1000))
        if not ready:
            return
        for fd, _events in ready:
            poller.unregister(fd)
            waiting.pop(fd).close()
