"""The device of a tunnel, in a namespace of its own."""

from __future__ import annotations

import socket
import threading

import pytest

from netprobe.agent.tunnels import device
from netprobe.agent.wire.tunnel_messages import TunnelOpenOrder
from tests.ports import free_port

ORDER = TunnelOpenOrder(1, 1, None, "127.0.0.1", 0, 7, 1450, first=True)


@pytest.mark.needs("namespaces")
def test_a_kernel_without_the_kind_of_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel answers for a kind of device that it does not know is ``no-vxlan``."""
    monkeypatch.setattr(device, "KIND", b"none-such")
    found: list[str] = []

    def make() -> None:
        try:
            device.make_device(ORDER._replace(port=free_port("0.0.0.0", socket.SOCK_DGRAM)))
        except device.TunnelError as error:
            found.append(error.word)

    maker = threading.Thread(target=make)
    maker.start()
    maker.join()
    assert found == ["no-vxlan"]
