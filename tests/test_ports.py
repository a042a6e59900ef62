"""Ports that tests are given are free."""

from __future__ import annotations

import socket

import pytest

from tests.ports import are_free, free_port


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_is_free_at_all_addresses(address: str) -> None:
    """One of IPv4 is not free for IPv6: who binds it at all addresses finds it in use."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)) as server:
        assert not are_free(address, socket.SOCK_STREAM, range(port, port + 1))
        with socket.create_connection(("127.0.0.1", port)):
            connection, _ = server.accept()
            connection.close()  # the first to close waits for a minute

    assert not are_free(address, socket.SOCK_STREAM, range(port, port + 1))
