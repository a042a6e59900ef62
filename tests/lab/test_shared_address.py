"""One machine that an inventory lists under two names."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab

pytestmark = pytest.mark.lab

ADDRESS = "10.95.1.2"
PORTS = "3000-3999"
FLOW = {"from": "client", "tcp": [PORTS], "purpose": "p", "row": "r"}
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "twice",
    "title": "Twice",
    "roles": {"client": {}, "server": {}, "closed": {}},
    "requirements": [
        {"id": "open", "to": "server", **FLOW},
        {"id": "shut", "to": "closed", "expect": "denied", **FLOW},
    ],
}


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A client and a server on one wire."""
    with Lab() as lab:
        client, server = lab.namespace("client"), lab.namespace("server")
        lab.cable(client, "eth0", server, "eth0")
        client.ip("address add 10.95.1.1/24 dev eth0")
        server.ip(f"address add {ADDRESS}/24 dev eth0")
        lab.wait_until_ready()
        yield lab


def test_a_second_name_sees_no_listener_of_the_first(lab: Lab) -> None:
    # Both agents run on the server: what one of them opens must not look "exposed" to the other's
    # denied ports, nor "held" to the other's listeners.
    client, server = (lab.namespaces[name] for name in ("client", "server"))
    there = {"addresses": [ADDRESS], "vantage": {"command": server.enter}}
    hosts = {
        "client": {
            "addresses": ["10.95.1.1"], "roles": ["client"], "vantage": {"command": client.enter}
        },
        "first": there | {"roles": ["server"]},
        "second": there | {"roles": ["closed", "server"]},
    }  # fmt: skip
    done = netprobe(
        "run", "-o", "json",
        "-m", str(lab.write("matrix.yaml", json.dumps(MATRIX))),
        "-i", str(lab.write("inventory.yaml", yaml.safe_dump(
            {"schema": "netprobe.inventory/1", "hosts": hosts}, sort_keys=False
        ))),
    )  # fmt: skip
    found = {
        (one["requirement"], one["destination"]): (one["verdict"], one["proof"], one["end_port"])
        for one in done.results
    }
    assert found == {
        ("open", "first"): ("pass", "nonce", 3999),
        ("open", "second"): ("pass", "nonce", 3999),
        ("shut", "second"): ("pass", "refusal", 3999),
    }, done.stderr
