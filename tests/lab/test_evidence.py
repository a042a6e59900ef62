"""``--evidence``: packets of what failed, as tshark and tcpdump read them, and nobody else's."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, run, without_root

pytestmark = pytest.mark.needs("tshark", "tcpdump")

MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "evidence",
    "title": "Flows that fail in different places",
    "roles": {"src": {}, "dst": {}},
    "requirements": [
        {"id": "api", "from": "src", "to": "dst", "tcp": [6443, 6444, 6445], "purpose": "x"},
        {"id": "dns", "from": "src", "to": "dst", "udp": [53], "purpose": "x"},
        {"id": "ping", "from": "src", "to": "dst", "icmp": "echo", "purpose": "x"},
    ],
}
WORKER, MASTER, ROUTER = "10.98.1.2", "10.98.2.2", "10.98.0.1"
RULES = """table inet f { chain forward {
type filter hook forward priority 0;
tcp dport 6443 drop
tcp sport 6444 drop
udp dport 53 reject with icmpx admin-prohibited
}
}"""
# Somebody else on the same host uses the same ports, from these, and pings: all the time.
OTHERS_PORT, SECRET = 5555, "SECRET"
OTHERS = f"""
import socket, subprocess
while True:
    for port in (6443, 6444, 6445):
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.settimeout(0.05)
            try:
                sock.bind(("", {OTHERS_PORT}))
                sock.connect(("{MASTER}", port))
            except OSError:
                pass
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("", {OTHERS_PORT}))
        for port in (53, 6443):
            sock.sendto(b"{SECRET}" * 9, ("{MASTER}", port))
    subprocess.run(["ping", "-c1", "-W1", "-p", "{SECRET.encode().hex()}", "{MASTER}"],
                   stdout=subprocess.DEVNULL)
"""


class Packet(NamedTuple):
    """One packet, as tshark tells of it."""

    interface: str
    time: str
    encapsulation: str
    info: str
    comment: str


class Ran(NamedTuple):
    """A run with ``--evidence``, and its folder."""

    finished: Finished
    folder: Path
    text: str

    def packets(self, port: int) -> list[Packet]:
        """The packets of the finding about a port."""
        (found,) = [
            one["evidence"]
            for one in self.finished.document["findings"]
            if port in {member["port"] for member in one["members"]}
        ]
        fields = ("frame.interface_name", "frame.time_epoch", "frame.encap_type", "_ws.col.Info",
                  "frame.comment")  # fmt: skip
        words = [word for name in fields for word in ("-e", name)]
        done = subprocess.run(
            ["tshark", "-r", found, "-T", "fields", *words],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return [Packet(*line.split("\t")) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One run, beside other traffic."""
    folder = tmp_path_factory.mktemp("evidence") / "new"
    with Lab() as lab:
        router = lab.router("router", ROUTER)
        worker = lab.host("worker-0", router, WORKER)
        lab.host("master-0", router, MASTER)
        lab.wait_until_ready()
        router.nft(RULES)
        # Others must not use up the router's errors.
        router.run("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0")
        worker.spawn("python3", "-c", OTHERS, stderr=subprocess.DEVNULL)
        matrix = str(lab.write("matrix.yaml", json.dumps(MATRIX)))
        inventory = str(lab.inventory({"worker-0": ["src"], "master-0": ["dst"]}))
        text = folder.parent / "text"
        words = ("-m", matrix, "-i", inventory, "-o", "json", "-o", f"text={text}")
        yield Ran(netprobe("run", *words, "--evidence", str(folder)), folder, text.read_text())


def test_each_finding_has_a_file_that_the_report_names(ran: Ran) -> None:
    """Text and JSON name it, and only the user may read it."""
    findings = ran.finished.document["findings"]
    files = sorted(ran.folder.iterdir())

    assert [one["evidence"] for one in findings] == [str(path) for path in files]
    assert [path.name for path in files] == [f"finding-0{number}.pcapng" for number in (1, 2, 3)]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert ran.folder.stat().st_mode & 0o777 == 0o700
    assert all(f"   packets   {path}" in ran.text for path in files)


def test_packets_of_both_ends_say_what_became_of_them(ran: Ran) -> None:
    """Dropped on the way there: they left, and never came."""
    packets = ran.packets(6443)

    assert {one.interface for one in packets} == {"worker-0/eth0"}
    assert [one for one in packets if "6443 [SYN]" not in one.info] == []
    assert {one.comment for one in packets} == {"left worker-0; never seen by master-0"}
    # Raw IP, and nanoseconds.
    assert {one.encapsulation for one in packets} == {"7"}
    assert {len(one.time.partition(".")[2]) for one in packets} == {9}
    assert any(not one.time.endswith("000") for one in packets)


def test_a_lost_answer_is_seen_at_both_ends(ran: Ran) -> None:
    """Two interfaces, and the answer that left."""
    fates = {(one.interface, ", ACK]" in one.info, one.comment) for one in ran.packets(6444)}

    assert fates == {
        ("worker-0/eth0", False, "left worker-0; came to master-0"),
        ("master-0/eth0", False, "came to master-0; left worker-0"),
        ("master-0/eth0", True, "left master-0; never seen by worker-0"),
    }


def test_an_error_of_a_router_names_it(ran: Ran) -> None:
    """With the datagram that it quotes, whose payload is our own."""
    fates = {one.comment for one in ran.packets(53)}

    assert fates == {"left worker-0; never seen by master-0", f"came to worker-0 from {ROUTER}"}


def test_nobody_elses_packets_are_kept(ran: Ran) -> None:
    """Though somebody else spoke to the same ports of the same host all the time."""
    for path in ran.folder.iterdir():
        assert SECRET.encode() not in path.read_bytes()
        done = run(*without_root(), "tcpdump", "-nr", str(path))
        assert done.stdout
        assert not re.search(rf"\.{OTHERS_PORT}\b", done.stdout)
        assert "link-type RAW" in done.stderr
