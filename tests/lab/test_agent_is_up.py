"""A host whose agent runs is not down, whatever its network says of it."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab

pytestmark = pytest.mark.lab

HERE = ["10.96.1.1", "fd96:1::1"]
THERE = ["10.96.1.2", "fd96:1::2"]
FLOW = {"from": "client", "to": "server", "purpose": "p", "row": "r"}
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "up",
    "title": "Up",
    "roles": {"client": {}, "server": {}},
    "requirements": [
        {"id": "open", "tcp": [7000], "icmp": "echo", **FLOW},
        {"id": "shut", "tcp": [7001], "expect": "denied", **FLOW},
    ],
}


def test_no_answer_to_arp_is_no_host_that_is_down() -> None:
    """Its listeners and its routing table say that it has the address."""
    with Lab() as lab:
        client, server = lab.namespace("client"), lab.namespace("server")
        lab.cable(client, "eth0", server, "eth0")
        for part, addresses in ((client, HERE), (server, THERE)):
            part.ip(*(
                f"address add {one}/{'64 nodad' if ':' in one else '24'} dev eth0"
                for one in addresses
            ))  # fmt: skip
        lab.wait_until_ready()
        server.ip("link set eth0 arp off")
        hosts = {
            "client": {
                "addresses": HERE, "roles": ["client"], "vantage": {"command": client.enter}
            },
            "server": {
                "addresses": THERE, "roles": ["server"], "vantage": {"command": server.enter}
            },
        }  # fmt: skip
        done = netprobe(
            "run", "-o", "json",
            "-m", str(lab.write("matrix.yaml", json.dumps(MATRIX))),
            "-i", str(lab.write("inventory.yaml", yaml.safe_dump(
                {"schema": "netprobe.inventory/1", "hosts": hosts}
            ))),
        )  # fmt: skip

    said = {(one["requirement"], one["protocol"], one["address"]): one for one in done.results}
    assert len(said) == 6, done.stderr
    for (requirement, _, _), one in said.items():
        assert "host" not in one["where"], one
        assert requirement == "shut" or one["reason"] == "host-unreach", one
