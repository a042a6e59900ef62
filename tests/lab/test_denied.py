"""Ports that must not answer, and a service that never does: syslog takes what comes."""

from __future__ import annotations

import json
import sys

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab

pytestmark = pytest.mark.lab

SYSLOG = 514
INPUT = "type filter hook input priority 0"
QUIET = f"""
import socket
syslog = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
syslog.bind(("0.0.0.0", {SYSLOG}))
while True:
    syslog.recv(99)
"""
DROP = f"table inet f {{ chain in {{ {INPUT}; udp dport {SYSLOG} drop; }}; }}"


# On a busy machine counters may tell nothing.
@pytest.mark.alone
@pytest.mark.parametrize(
    ("is_dropped", "verdict"),
    [(False, "exposed"), pytest.param(True, "pass", marks=pytest.mark.full)],
)
def test_a_quiet_service_is_exposed_unless_a_firewall_drops_what_comes(
    is_dropped: bool, verdict: str
) -> None:
    """The recorder sees it come; that TCP is answered beside it shows nothing."""
    with Lab() as lab:
        client, server = lab.namespace("client"), lab.namespace("server")
        lab.cable(client, "eth0", server, "eth0")
        client.ip("address add 10.1.0.1/24 dev eth0")
        server.ip("address add 10.1.0.2/24 dev eth0")
        if is_dropped:
            server.nft(DROP)
        server.spawn(sys.executable, "-c", QUIET)
        server.wait_until_listening(f"udp 0.0.0.0:{SYSLOG}")
        lab.wait_until_ready()
        line = {"from": "client", "to": "server", "purpose": "p", "row": "r"}
        matrix = {
            "schema": "netprobe.matrix/1", "name": "t", "title": "T",
            "roles": {"client": {}, "server": {}},
            "requirements": [
                {"id": "shut", **line, "udp": [SYSLOG], "expect": "denied"},
                {"id": "api", **line, "tcp": [6443]},
            ],
        }  # fmt: skip
        ends = ((client, "10.1.0.1"), (server, "10.1.0.2"))
        hosts = {
            space.name: {
                "addresses": [address], "roles": [space.name], "vantage": {"command": space.enter}
            }
            for space, address in ends
        }  # fmt: skip
        inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}

        done = netprobe(
            "run", "-o", "json", "--timeout", "0.3",
            "-m", str(lab.write("m.yaml", json.dumps(matrix))),
            "-i", str(lab.write("i.yaml", yaml.safe_dump(inventory))),
        )  # fmt: skip

    verdicts = {one["requirement"]: one["verdict"] for one in done.results}
    assert verdicts == {"shut": verdict, "api": "pass"}
