"""Every socket that listens, and the processes that have it open."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from netprobe.agent.host import port_owners
from netprobe.agent.host.hello import read_text
from netprobe.agent.host.port_owners import read_sockets, tell_sockets
from netprobe.agent.wire.host_messages import Sockets, SocketsOrder
from tests.agent.rig import Agent

LISTEN = "127.0.0.1"


def _told() -> Sockets:
    agent = Agent()
    tell_sockets(agent, SocketsOrder(5))
    (answer,) = agent.sent(Sockets)
    assert isinstance(answer, Sockets)
    assert answer.id == 5
    return answer


def test_sockets_have_their_processes() -> None:
    """Listening TCP and UDP without a peer, with address, name, program and control groups."""
    with (
        socket.create_server((LISTEN, 0)) as tcp,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind((LISTEN, 0))
        told = _told()
        for protocol, sock in (("tcp", tcp), ("tcp", six), ("udp", udp)):
            address, port = sock.getsockname()[:2]
            (found,) = [
                one
                for one in told.sockets
                if (one.protocol, one.address, one.port) == (protocol, address, port)
            ]
            (owner,) = [told.owners[at] for at in found.owners]
            assert owner.pid == os.getpid()
            assert owner.process == Path("/proc/self/comm").read_text().strip()
            assert owner.program == Path("/proc/self/exe").resolve().name
            assert owner.cgroups == Path("/proc/self/cgroup").read_text()


def test_connections_and_clients_are_no_listeners() -> None:
    """Neither end of a connection is listed, nor a UDP socket that has a peer."""
    with (
        socket.create_server((LISTEN, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.connect((LISTEN, 9))
        own = {("tcp", client.getsockname()[1]), ("udp", udp.getsockname()[1])}
        told = {(one.protocol, one.port) for one in _told().sockets if one.address == LISTEN}
        assert not own & told
        assert ("tcp", server.getsockname()[1]) in told


def test_a_socket_that_two_processes_have() -> None:
    """A child inherits it: both are named, the parent first."""
    with socket.create_server((LISTEN, 0)) as server:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(write)
            os.read(read, 1)
            os._exit(0)
        try:
            told = _told()
            port = server.getsockname()[1]
            (found,) = [o for o in told.sockets if (o.address, o.port) == (LISTEN, port)]
            assert [told.owners[at].pid for at in found.owners] == sorted([os.getpid(), child])
        finally:
            os.close(write)
            os.close(read)
            os.waitpid(child, 0)


def test_a_socket_that_the_kernel_tells_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does where others come and go while its table is read in parts."""

    def read_twice(path: str) -> str:
        head, *lines = read_text(path).splitlines()
        return (
            "\n".join((head, *lines, *lines)) if path.startswith("/proc/net") else read_text(path)
        )

    monkeypatch.setattr(port_owners, "read_text", read_twice)
    with socket.create_server((LISTEN, 0)) as server:
        (found,) = [
            one
            for one in _told().sockets
            if (one.protocol, one.port) == ("tcp", server.getsockname()[1])
        ]
    assert found.address == LISTEN


def test_a_process_that_ends_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its socket is gone by then, and nobody takes it for the kernel's."""
    server = socket.create_server((LISTEN, 0))
    port = server.getsockname()[1]

    def end_first(pid: int) -> tuple[set[int], bool]:
        server.close()
        return read_sockets(pid)

    monkeypatch.setattr(port_owners, "read_sockets", end_first)
    told = _told()
    assert (LISTEN, port) not in [(one.address, one.port) for one in told.sockets]


def test_the_ports_of_clients() -> None:
    """The range that the kernel takes ports from."""
    text = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text()

    assert _told().client_ports == tuple(map(int, text.split()))
