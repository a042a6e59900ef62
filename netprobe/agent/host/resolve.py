"""Names to addresses, as programs on this host get them, in threads, because getaddrinfo blocks;
and the name servers of this host, so that each can be asked by itself."""

import os
import socket
import threading
from collections import deque
from typing import Deque, Dict, List, Tuple

from ..core import loop as looping
from ..core.agent import AgentCore
from ..wire.host_messages import Nameservers, NameserversOrder, Resolved, ResolveOrder

# Not an errno, so wire/failures.py does not have it; the judge has a reason of this name.
NAME_NOT_RESOLVED = "name-not-resolved"
RESOLV_CONF = "/etc/resolv.conf"
TIMEOUT_S = 10.0
# A resolver that does not answer makes every thread wait; further names wait in a queue.
MAX_THREADS = 32

# Addresses, and the resolver's own words where there are none.
Lookup = Tuple[List[str], str]


def look_up(name: str) -> Lookup:
    """Addresses in the resolver's order without duplicates, or the resolver's own words."""
    try:
        # AI_ADDRCONFIG, as programs use it: on a host without IPv6 its addresses are never tried.
        found = socket.getaddrinfo(name, None, 0, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
    except socket.gaierror as error:
        return [], str(error.strerror or error)
    except (OSError, UnicodeError) as error:
        return [], str(error)
    addresses: List[str] = []
    for _family, _kind, _protocol, _canonical, endpoint in found:
        address = str(endpoint[0])
        if address not in addresses:
            addresses.append(address)
    return addresses, "" if addresses else "no address"


class Resolver:
    """Resolves names for the coordinator."""

    def __init__(self, agent: AgentCore) -> None:
        self._agent = agent
        self._waiting: Deque[Tuple[int, str]] = deque()
        self._timers: Dict[int, looping.Timer] = {}
        self._threads = 0
        self._results: Deque[Tuple[int, Lookup]] = deque()
        self._wake_read, self._wake_write = os.pipe()
        agent.loop.watch(self._wake_read, looping.READ, self._collect_results)

    def submit(self, order: ResolveOrder) -> None:
        """Look a name up; ``Resolved`` follows within the timeout, whatever the resolver does."""
        self._end_later(order.id, self._agent.loop.now(), TIMEOUT_S)
        self._waiting.append((order.id, order.name))
        self._start_threads()

    def close(self) -> None:
        """Forget all; threads that hang in the resolver end with the process."""
        self._waiting.clear()
        self._timers.clear()
        self._agent.loop.unwatch(self._wake_read)

    def _start_threads(self) -> None:
        while self._waiting and self._threads < MAX_THREADS:
            self._threads += 1
            identity, name = self._waiting.popleft()
            threading.Thread(target=self._look_up_name, args=(identity, name), daemon=True).start()

    def _end_later(self, identity: int, begun: float, wait_s: float) -> None:
        self._timers[identity] = self._agent.loop.call_later(
            wait_s, lambda: self._end_question(identity, begun)
        )

    def _end_question(self, identity: int, begun: float) -> None:
        """Give a name up that had its time; while this process stood still nobody looked it up."""
        loop = self._agent.loop
        left_s = TIMEOUT_S - loop.pauses.time_left(begun, loop.now())
        if left_s > 0:
            self._end_later(identity, begun, left_s)
        else:
            self._send_result(identity, ([], "no answer in %d s" % TIMEOUT_S))

    def _look_up_name(self, identity: int, name: str) -> None:
        self._results.append((identity, look_up(name)))
        os.write(self._wake_write, b".")

    def _collect_results(self, _events: int) -> None:
        os.read(self._wake_read, 4096)
        while self._results:
            identity, result = self._results.popleft()
            self._threads -= 1
            self._send_result(identity, result)
        self._start_threads()

    def _send_result(self, identity: int, result: Lookup) -> None:
        timer = self._timers.pop(identity, None)
        if timer is None:
            return  # answered already: its time was up
        timer.cancel()
        addresses, words = result
        failure = None if addresses else NAME_NOT_RESOLVED
        self._agent.send(Resolved(identity, addresses, failure, words))


def tell_nameservers(agent: AgentCore, order: NameserversOrder) -> None:
    """Answer with the addresses of the host's resolv.conf."""
    agent.send(Nameservers(order.id, read_servers(RESOLV_CONF)))


def read_servers(path: str) -> List[str]:
    """Read the ``nameserver`` lines of a resolv.conf in their order; a missing file has none."""
    servers: List[str] = []
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                words = line.split()
                if len(words) > 1 and words[0] == "nameserver" and words[1] not in servers:
                    servers.append(words[1])
    except OSError:
        return []
    return servers
