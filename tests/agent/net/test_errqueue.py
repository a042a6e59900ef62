"""The error queue is read exactly: whose error it is, about what, and from where."""

from __future__ import annotations

import errno
import select
import socket

import pytest

from netprobe.agent.net.errqueue import ORIGIN_ICMP, QueuedError, about, drain, listen_for_errors
from netprobe.agent.wire.parts import IcmpFact
from tests.ports import free_port


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_port_unreachable_is_read_whole(address: str) -> None:
    """Type, code, offender, TTL and our own destination come out of one entry."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    port = free_port(address, socket.SOCK_DGRAM)
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        listen_for_errors(sock)
        sock.sendto(b"hello", (address, port))
        select.select([], [], [sock], 0.2)
        (error,) = drain(sock)

        kind = (1, 4) if ":" in address else (3, 3)
        assert error.fact() == IcmpFact(*kind, address, 64)
        assert (error.to, error.port, error.errno) == (address, port, errno.ECONNREFUSED)
        assert error.is_icmp
        assert drain(sock) == []


def test_an_error_of_another_flow_is_not_ours() -> None:
    """The destination of the quoted packet decides, address and port."""
    error = QueuedError(111, ORIGIN_ICMP, 3, 3, "10.0.0.1", 64, "10.0.0.9", 80, 0, b"")

    assert about([error], "10.0.0.9", 80) is error
    assert about([error], "10.0.0.9", 81) is None
    assert about([error], "10.0.0.8", 80) is None
    assert about([error], "10.0.0.9", None) is error


def test_icmp_is_worth_more_than_a_local_note() -> None:
    """Where both are queued, the one that a host sent is the fact."""
    local = QueuedError(errno.EMSGSIZE, 1, 0, 0, None, None, "10.0.0.9", 80, 1400, b"")
    icmp = QueuedError(111, ORIGIN_ICMP, 3, 3, "10.0.0.1", 64, "10.0.0.9", 80, 0, b"")

    assert about([local, icmp], "10.0.0.9", 80) is icmp
    assert about([local], "10.0.0.9", 80) is local
    assert local.fact() is None
