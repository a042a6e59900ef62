"""The socket tables of /proc, and who owns what is in them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from netprobe.agent.core.ranges import PortSet
from netprobe.agent.host.hello import flag_range, make_hello, node_ports
from netprobe.agent.host.port_owners import PortHolders, held_ports, owners, read_table

EXACT = ("exact",)
ANY = ("exact", "perhaps", "loopback")


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"])
@pytest.mark.parametrize(("proto", "kind"), [("tcp", 1), ("udp", 2)])
def test_a_socket_is_found_by_its_address(address: str, proto: str, kind: int) -> None:
    """Address, port and inode as the kernel prints them, in both families."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as sock:
        sock.bind((address, 0))
        if proto == "tcp":
            sock.listen()
        inode = os.fstat(sock.fileno()).st_ino
        # The kernel may list a socket twice where others come and go while it is read.
        (entry,) = {entry for entry in read_table(proto) if entry.inode == inode}
        assert entry.address == address.replace("::ffff:", "")
        assert entry.port == sock.getsockname()[1]
        assert owners({inode}) == {inode: (own_name(), own_program(), os.getpid())}


def own_name() -> str:
    """The name of this process as /proc has it."""
    return Path("/proc/self/comm").read_text().strip()


def own_program() -> str:
    """The base name of this process's program file: the interpreter that the link leads to."""
    return Path("/proc/self/exe").resolve().name


def test_what_holds_a_port_for_an_address() -> None:
    """The wildcard holds every address, loopback only its own, and [::] perhaps IPv4 too."""
    with (
        socket.create_server(("127.0.0.1", 0)) as loopback,
        socket.create_server(("0.0.0.0", 0)) as wildcard,
        socket.create_server(("::", 0), family=socket.AF_INET6) as six,
    ):
        table = PortHolders("tcp")
        first, second, third = (s.getsockname()[1] for s in (loopback, wildcard, six))
    assert table.find("127.0.0.1", first, EXACT)
    assert not table.find("192.0.2.1", first, EXACT)
    assert table.find("192.0.2.1", first, ("loopback",))
    assert not table.find("127.0.0.2", first, ANY)
    assert table.find("127.0.0.2", first, ("elsewhere",))
    assert not table.find("2001:db8::1", first, (*ANY, "elsewhere"))
    assert table.find("192.0.2.1", second, EXACT)
    assert not table.find("2001:db8::1", second, ANY)
    assert table.find("2001:db8::1", third, EXACT)
    assert not table.find("192.0.2.1", third, EXACT)
    assert table.find("192.0.2.1", third, ("perhaps",))


def test_connections_hold_nothing() -> None:
    """An established connection and a connected datagram socket are no services."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagram,
    ):
        datagram.connect(("127.0.0.1", 9))
        assert not PortHolders("tcp").find("127.0.0.1", client.getsockname()[1], ANY)
        assert not PortHolders("udp").find("127.0.0.1", datagram.getsockname()[1], ANY)


def test_the_owner_is_another_process() -> None:
    """Name and pid of a service that is not us."""
    code = (
        "import socket,sys; s=socket.create_server(('127.0.0.1',0)); "
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdout is not None
        assert service.stdin is not None
        port = int(service.stdout.readline())
        entry = PortHolders("tcp").find("127.0.0.1", port, EXACT)
        assert entry is not None
        (item,) = held_ports("127.0.0.1", [(port, entry)])
        service.stdin.close()
    assert item.pid == service.pid
    assert (item.process or "").startswith("python")


def test_neighbours_with_one_owner_are_one_entry() -> None:
    """A range that one process holds stays a range."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        entry = PortHolders("tcp").find("127.0.0.1", port, EXACT)
    assert entry is not None
    items = held_ports("127.0.0.1", [(5, entry), (6, entry), (8, entry)])
    assert [(item.first, item.last) for item in items] == [(5, 6), (8, 8)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["kube-apiserver", "--service-node-port-range=20000-22767"], (20000, 22767)),
        (["kube-apiserver", "--service-node-port-range", "20000-22767"], (20000, 22767)),
        (["kube-apiserver", "--service-node-port-range=20000+99"], (20000, 20099)),
        (["kube-apiserver", "--service-node-port-range"], None),
        (["kube-apiserver", "--service-node-port-range=x-y"], None),
        (["kube-apiserver"], None),
    ],
)
def test_the_range_of_node_ports_is_read(
    words: list[str], expected: tuple[int, int] | None
) -> None:
    """As the API server was told, in both of Kubernetes' ways to write a range."""
    assert flag_range(words) == expected


def test_the_range_comes_from_a_running_api_server(tmp_path: Path) -> None:
    """A process of that name with that flag decides; without one it is Kubernetes' default."""
    assert node_ports() == (30000, 32767)
    program = tmp_path / "kube-apiserver"
    program.symlink_to("/bin/bash")
    with subprocess.Popen(
        [str(program), "-c", "read line; :", "x", "--service-node-port-range=21000-21999"],
        stdin=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        # A new program has its name before its arguments.
        while b"21000" not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.001)
        found = node_ports()
        process.stdin.close()
    assert found == (21000, 21999)


def test_the_hello_line_says_what_this_process_can_do() -> None:
    """Its own process, and numbers that are plausible."""
    said = make_hello()
    assert said.pid == os.getpid()
    assert said.nofile >= 256
    assert said.echo in ("datagram", "raw", "program", None)


def test_port_sets_join_neighbours() -> None:
    """In any order of arrival the ranges are sorted, disjoint and as few as can be."""
    ports = PortSet([5, 3, 4, 9, 7, 8, 3, 1])
    assert ports.pairs() == [(1, 1), (3, 5), (7, 9)]
    assert list(ports) == [1, 3, 4, 5, 7, 8, 9]
    assert (4 in ports, 6 in ports, bool(ports), bool(PortSet())) == (True, False, True, False)
