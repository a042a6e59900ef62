"""The lab is what it says: open flows are open and blocked ones blocked, by plain sockets."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.netlab import NETNS_FOLDER, Lab, LabError, Namespace, sweep
from tests.lab.services import place
from tests.patience import PATIENCE_S

FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
WAIT_S = 2.5
SILENCE_S = 0.5

RULES = """
table inet lab {
    chain forward {
        type filter hook forward priority 0;
        tcp dport 81 drop
        tcp dport 82 reject with icmpx admin-prohibited
        tcp dport 83 reject with tcp reset
        tcp sport 84 drop
        udp dport 81 drop
        udp sport 84 drop
    }
}
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Two hosts behind a router whose firewall treats ports 81 to 84 badly."""
    with Lab() as made:
        router = made.router("fw", "10.89.0.1", "fd89::1")
        for name, number in (("left", 10), ("right", 11)):
            made.host(name, router, f"10.89.0.{number}", f"fd89::{number}")
        made.wait_until_ready()
        router.nft(RULES)
        yield made


def _listener(host: Namespace, family: int, kind: int, port: int) -> socket.socket:
    listener = host.socket(FAMILIES[family], kind)
    listener.bind((host.address(family), port))
    if kind == socket.SOCK_STREAM:
        listener.listen()
    return listener


def _connect(source: Namespace, destination: Namespace, family: int, port: int) -> str:
    with source.socket(FAMILIES[family], socket.SOCK_STREAM) as client:
        client.settimeout(WAIT_S)
        try:
            client.connect((destination.address(family), port))
        except TimeoutError:
            return "silent"
        except OSError as problem:
            return errno.errorcode[problem.errno or 0]
    return "open"


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(
    ("port", "seen"),
    [
        (80, {"open"}),
        (81, {"silent"}),
        (82, {"EHOSTUNREACH", "EACCES"}),
        (83, {"ECONNREFUSED"}),
        (84, {"silent"}),
    ],
)
def test_tcp_meets_the_rules(lab: Lab, family: int, port: int, seen: set[str]) -> None:
    """TCP is open, dropped, rejected, reset, or its answer dropped, exactly by the rules."""
    with _listener(lab["right"], family, socket.SOCK_STREAM, port):
        assert _connect(lab["left"], lab["right"], family, port) in seen


@pytest.mark.parametrize("family", [4, 6])
def test_nothing_listens_where_nobody_does(lab: Lab, family: int) -> None:
    """A port that no rule names and nobody holds is refused by the host itself."""
    assert _connect(lab["left"], lab["right"], family, 85) == "ECONNREFUSED"


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize(("port", "arrives", "returns"), [(80, 1, 1), (81, 0, 0), (84, 1, 0)])
def test_udp_meets_the_rules(lab: Lab, family: int, port: int, arrives: int, returns: int) -> None:
    """A datagram arrives, and its answer returns, where no rule drops the one or the other."""
    with (
        _listener(lab["right"], family, socket.SOCK_DGRAM, port) as server,
        lab["left"].socket(FAMILIES[family], socket.SOCK_DGRAM) as client,
    ):
        server.settimeout(PATIENCE_S if arrives else SILENCE_S)
        client.settimeout(PATIENCE_S if returns else SILENCE_S)
        client.sendto(b"ping", (lab["right"].address(family), port))
        heard = _receive(server)
        if heard is not None:
            server.sendto(b"pong", heard)
        assert (heard is not None, _receive(client) is not None) == (bool(arrives), bool(returns))


def _receive(end: socket.socket) -> tuple[str, int] | None:
    try:
        address: tuple[str, int] = end.recvfrom(64)[1]
    except TimeoutError:
        return None
    return address


def test_listening_names_what_is_bound(lab: Lab) -> None:
    """``listening`` sees TCP and UDP sockets of a namespace, and forgets closed ones."""
    right = lab["right"]
    with (
        _listener(right, 4, socket.SOCK_STREAM, 86),
        _listener(right, 6, socket.SOCK_DGRAM, 86),
    ):
        both = {place("tcp", right.address(4), 86), place("udp", right.address(6), 86)}
        assert both <= right.listening()
    assert not both & right.listening()


def test_a_lab_leaves_nothing_behind() -> None:
    """Processes, namespaces and files are gone after the lab, also when it ends with an error."""
    lab = Lab()
    host = lab.namespace("short")
    process = host.spawn("sleep", "600")
    path = lab.write("note", "text")
    with pytest.raises(LabError), lab:
        lab.namespace("short")

    assert process.poll() is not None
    assert not path.exists()
    assert not (NETNS_FOLDER / host.netns).exists()


def test_sweep_removes_what_a_killed_run_left() -> None:
    """Namespaces of a process that is gone are removed by the next lab; those of others stay."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    with Lab() as lab:
        mine = lab.namespace("mine")
        stale = Namespace("stale", f"np-{gone.pid}-1-left")
        subprocess.run(["ip", "netns", "add", stale.netns], check=True)
        sweep()

        assert not (NETNS_FOLDER / stale.netns).exists()
        assert Path(NETNS_FOLDER / mine.netns).exists()
    assert os.getpid() != gone.pid
