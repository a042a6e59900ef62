"""A recorder in a network namespace, and packets for it to see."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterable, Sequence
from typing import Any

from netprobe.agent.net.icmp import echo_request
from netprobe.agent.recorder.recorder import Recorder
from netprobe.agent.wire.answers import StoryTold
from netprobe.agent.wire.orders import RecordOrder, StoryOrder
from netprobe.agent.wire.parts import SeenRun
from netprobe.agent.wire.templates import pack_nonce
from tests.agent.netlab import ADDRESS, inside
from tests.agent.rig import KEY, PLAIN, Agent, only
from tests.rights import without_rights

ECHO_PORT = 4242


class Recording:
    """A recorder that runs in a namespace until the test's end."""

    def __init__(
        self,
        namespace: str,
        datagrams: Sequence[tuple[int, int]] = (),
        numbers: Iterable[int] = (),
        permitted: bool = True,
        keep: list[tuple[int, int]] | None = None,
    ) -> None:
        self.agent = Agent()
        self.agent.templates = {1: PLAIN}
        self.namespace = namespace
        self.recorder = Recorder(self.agent)
        with inside(namespace), contextlib.nullcontext() if permitted else without_rights():
            self.recorder.start(RecordOrder(list(datagrams), list(numbers), keep))

    def tell(self, proto: str, *ports: int, family: int = 4, **more: Any) -> StoryTold:
        """What it saw of probes from the lab's source to its destination."""
        asker, target = ADDRESS[family]["source"], ADDRESS[family]["destination"]
        order = StoryOrder(
            7, proto, None, asker, target, [entry for port in ports for entry in only(port)],
            sent=False, numbers=[], own_ports=[],
        )  # fmt: skip
        with inside(self.namespace):
            self.recorder.tell_story(order._replace(**more))
        told = self.agent.messages.pop()
        assert isinstance(told, StoryTold)
        assert told.id == 7
        return told

    def run(self, proto: str, port: int, **more: Any) -> SeenRun | None:
        """What it saw of one port."""
        runs = self.tell(proto, port, **more).runs
        assert len(runs) <= 1
        return runs[0] if runs else None

    def close(self) -> None:
        """End it."""
        self.recorder.close()


def family_of(address: str) -> socket.AddressFamily:
    """The family of an address."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def connect(
    namespace: str, address: str, port: int, *, options: bytes = b"", data: bytes = b""
) -> str:
    """Connect once from a namespace, and say something: ``open``, or the name of the errno."""
    with inside(namespace), socket.socket(family_of(address), socket.SOCK_STREAM) as sock:
        if options:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, options)
        sock.settimeout(0.3)
        code = sock.connect_ex((address, port))
        if data:
            sock.sendall(data)
        return "open" if code == 0 else errno.errorcode[code]


def listen(namespace: str, address: str, port: int) -> contextlib.closing[socket.socket]:
    """A listener that accepts nothing, and whose kernel completes handshakes."""
    with inside(namespace):
        sock = socket.create_server((address, port), family=family_of(address), backlog=64)
    return contextlib.closing(sock)


def send(
    namespace: str, address: str, port: int, *payloads: bytes, options: bytes = b""
) -> tuple[str, int]:
    """Send datagrams from one socket; gives its own address and port."""
    with inside(namespace), socket.socket(family_of(address), socket.SOCK_DGRAM) as sock:
        if options:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_OPTIONS, options)
        for payload in payloads:
            # A refusal of the datagram before, or of the own firewall.
            with contextlib.suppress(ConnectionRefusedError, PermissionError):
                sock.sendto(payload, (address, port))
        return str(sock.getsockname()[0]), int(sock.getsockname()[1])


def request(order: int, port: int, key: bytes = KEY) -> bytes:
    """A genuine request of an order."""
    return PLAIN.fill(key, pack_nonce(order, port, 1))


def answer(namespace: str, own: tuple[str, int], to: tuple[str, int], *payloads: bytes) -> None:
    """Send datagrams from an address and port of a namespace."""
    with inside(namespace), socket.socket(family_of(to[0]), socket.SOCK_DGRAM) as sock:
        sock.bind(own)
        for payload in payloads:
            sock.sendto(payload, to)


def ping(namespace: str, address: str, payload: bytes = b"") -> bool:
    """Send an echo request; whether a reply came."""
    is_6 = ":" in address
    number = socket.IPPROTO_ICMPV6 if is_6 else socket.IPPROTO_ICMP
    reply = 129 if is_6 else 0
    with inside(namespace), socket.socket(family_of(address), socket.SOCK_RAW, number) as sock:
        sock.settimeout(0.5)
        packet = echo_request(sock.family, ECHO_PORT, 0, payload)
        # Nobody answers, or the own firewall refuses.
        with contextlib.suppress(TimeoutError, PermissionError):
            sock.sendto(packet, (address, 0))
            while True:
                data = sock.recv(2048)
                start = 0 if is_6 else (data[0] & 15) * 4
                if data[start] == reply:
                    return True
        return False
