"""An agent's listening side in this process: orders in, frames out, one loop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from netprobe.agent.host.resolve import Resolver
from netprobe.agent.listeners.listeners import Listeners
from netprobe.agent.wire.frames import Template, pack_nonce
from tests.agent.rig import KEY, PLAIN, Agent

ONE_WAY = Template(b"NPV1" + bytes(24), 4, 12)
MACLESS = Template(b"\x23" + bytes(39) + b"nonce---", 40, None)


class Desk(Agent):
    """The agent of the engines' tests, with listeners and a way to wait for a frame."""

    def __init__(self) -> None:
        super().__init__()
        self.templates = {1: PLAIN, 2: ONE_WAY, 3: MACLESS}
        self.listeners = Listeners(self)
        self.resolver: Resolver
        self._until: Callable[[dict[str, Any]], bool] = lambda _message: False

    def send(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if self._until(message):
            self.loop.stop()

    def await_frame(self, kind: str, most_s: float = 10.0) -> dict[str, Any]:
        """Run the loop until such a frame was sent, and take it."""
        self._until = lambda message: message["t"] == kind
        if not any(map(self._until, self.messages)):
            self.run(most_s)
        found = next(message for message in self.messages if message["t"] == kind)
        self.messages.remove(found)
        return found

    def run(self, seconds: float) -> None:
        """Serve for a while, or until the awaited frame."""
        late = self.loop.call_later(seconds, self.loop.stop)
        self.loop.run()
        late.cancel()

    def listen(self, *blocks: dict[str, Any], identity: int = 1) -> list[dict[str, Any]]:
        """Open a round and give what became of its blocks."""
        self.listeners.listen({"t": "listen", "id": identity, "blocks": list(blocks)})
        blocks_json: list[dict[str, Any]] = self.await_frame("listening")["blocks"]
        return blocks_json

    def seen(self, *orders: int, identity: int = 1) -> dict[str, Any]:
        """What the round saw."""
        self.listeners.seen({"t": "seen", "id": 99, "round": identity, "orders": list(orders)})
        return self.await_frame("seen")

    def settle(self) -> None:
        """Serve until nothing is ready any more."""
        for _ in range(3):
            self.loop.call_later(0, self.loop.stop)
            self.loop.run()


def block(
    proto: str, address: str, *ports: list[int], template: int = 1, **more: Any
) -> dict[str, Any]:
    """One block of a listen order."""
    return {"proto": proto, "addr": address, "ports": list(ports), "template": template, **more}


def request(order: int, port: int, template: Template = PLAIN, key: bytes = KEY) -> bytes:
    """A genuine request."""
    return template.fill(key, pack_nonce(order, port, 1))


def free_ports(address: str, kind: int, count: int) -> int:
    """The first of ``count`` neighbouring ports that were free a moment ago."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for first in range(20011, 60000, 97):
        socks = [socket.socket(family, kind) for _ in range(count)]
        try:
            for number, sock in enumerate(socks):
                sock.bind((address, first + number))
            return first
        except OSError:
            continue
        finally:
            for sock in socks:
                sock.close()
    raise AssertionError("no free ports")
