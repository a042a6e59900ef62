"""Names to addresses, as programs on this host get them; in threads, because getaddrinfo blocks."""

import os
import socket
import threading
from collections import deque
from typing import Any, Deque, Dict, List, Tuple

from ..core import loop as looping

# Not an errno, so it is no name of failures.py; the judge knows it as the reason of that name.
NAME_NOT_RESOLVED = "name-not-resolved"
TIMEOUT_S = 10.0
# A resolver that answers nobody makes every thread wait; the rest queues.
MAX_THREADS = 32

Result = Tuple[List[str], str]


def look_up(name: str) -> Result:
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
    """Answers ``resolve`` orders. ``agent`` has ``loop`` and ``send``."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent
        self._waiting: Deque[Tuple[int, str]] = deque()
        self._timers: Dict[int, looping.Timer] = {}
        self._threads = 0
        self._results: Deque[Tuple[int, Result]] = deque()
        self._wake_read, self._wake_write = os.pipe()
        agent.loop.watch(self._wake_read, looping.READ, self._collect)

    def submit(self, message: Dict[str, Any]) -> None:
        """Look a name up; ``resolved`` follows within the timeout, whatever the resolver does."""
        identity = message["id"]
        self._timers[identity] = self._agent.loop.call_later(
            TIMEOUT_S, lambda: self._finish(identity, ([], "no answer in %d s" % TIMEOUT_S))
        )
        self._waiting.append((identity, message["name"]))
        self._spawn()

    def close(self) -> None:
        """Forget all; threads that hang in the resolver end with the process."""
        self._waiting.clear()
        self._timers.clear()
        self._agent.loop.unwatch(self._wake_read)

    def _spawn(self) -> None:
        while self._waiting and self._threads < MAX_THREADS:
            self._threads += 1
            identity, name = self._waiting.popleft()
            threading.Thread(target=self._work, args=(identity, name), daemon=True).start()

    def _work(self, identity: int, name: str) -> None:
        self._results.append((identity, look_up(name)))
        os.write(self._wake_write, b".")

    def _collect(self, _events: int) -> None:
        os.read(self._wake_read, 4096)
        while self._results:
            identity, result = self._results.popleft()
            self._threads -= 1
            self._finish(identity, result)
        self._spawn()

    def _finish(self, identity: int, result: Result) -> None:
        timer = self._timers.pop(identity, None)
        if timer is None:
            return  # answered already: its time was up
        timer.cancel()
        addresses, words = result
        self._agent.send(
            {
                "t": "resolved",
                "id": identity,
                "addresses": addresses,
                "failure": None if addresses else NAME_NOT_RESOLVED,
                "words": words,
            }
        )
