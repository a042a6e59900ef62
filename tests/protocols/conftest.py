"""What the tests of protocols share: a namespace for real services, and asking them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Mapping

import pytest

from netprobe.protocols import PROTOCOLS, Reading
from tests.lab.netlab import Lab, Namespace
from tests.loops import LoopFactory, loops_of

ANSWER_S = 60.0
# A request is the same bytes each time, and charon ignores one that it is still busy with.
TRIES = {"tcp": 1, "udp": 60}
KINDS = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    """Real time, unless a test names the loop whose time jumps."""
    return loops_of(item, "real")


def exchange(namespace: Namespace, transport: str, port: int, data: bytes) -> bytes | None:
    """Send bytes to a port of the namespace's loopback; None where nothing comes back.

    A datagram is repeated, as every client of a protocol over UDP repeats it.
    """
    with namespace.socket(socket.AF_INET, KINDS[transport]) as client:
        client.settimeout(ANSWER_S / TRIES[transport])
        client.connect(("127.0.0.1", port))
        for _ in range(TRIES[transport]):
            client.sendall(data)
            with contextlib.suppress(TimeoutError):
                return client.recv(4096)
    return None


def ask(namespace: Namespace, name: str, transport: str, port: int) -> Reading:
    """Ask a live service what the protocol asks of one, and read what it says."""
    protocol = PROTOCOLS[name]
    request = protocol.service_request(transport, 4)
    assert request is not None
    data = exchange(namespace, transport, port, request)
    assert data is not None, f"{name} over {transport}: no answer on port {port}"
    return protocol.read(transport, data)


@pytest.fixture(scope="module")
def host() -> Iterator[Namespace]:
    """A namespace with a loopback only; what is started in it ends with the module."""
    with Lab() as lab:
        yield lab.namespace("services")
