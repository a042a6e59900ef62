"""One machine that an inventory lists under two names."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from netprobe.agent.host.hello import sees_owners
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


def test_a_machine_behind_two_addresses_is_probed_once_at_a_time(lab: Lab) -> None:
    """The second name is that of a translation: its listeners are on all addresses of the server.

    Neither finds the other's listeners, and calls them another run or a holder.
    """
    outer = "10.95.1.99"
    client, server = (lab.namespaces[name] for name in ("client", "server"))
    client.nft(
        "table ip nat {\n chain out {\n  type nat hook output priority -100\n"
        f"  ip daddr {outer} dnat to {ADDRESS}\n }}\n}}"
    )
    way = {"command": server.enter}
    hosts = {
        "client": {
            "addresses": ["10.95.1.1"], "roles": ["client"], "vantage": {"command": client.enter}
        },
        "inner": {"addresses": [ADDRESS], "roles": ["server"], "vantage": way},
        "outer": {"addresses": [outer], "roles": ["server"], "vantage": way},
    }  # fmt: skip
    done = netprobe(
        "run", "-o", "json",
        "-m", str(lab.write("matrix.yaml", json.dumps(MATRIX))),
        "-i", str(lab.write("inventory.yaml", yaml.safe_dump(
            {"schema": "netprobe.inventory/1", "hosts": hosts}, sort_keys=False
        ))),
    )  # fmt: skip

    costs = {host["name"]: host["cost"] for host in done.document["hosts"]}
    assert f"does not have {outer}: is the way onto it right" in costs["outer"][-1]
    unseen = [] if sees_owners() else ["the owners of held ports stay unknown"]
    assert costs["inner"] == costs["client"] == unseen
    found = {(r["destination"], r["verdict"], r["proof"], r["end_port"]) for r in done.results}
    assert found == {("inner", "pass", "nonce", 3999), ("outer", "pass", "nonce", 3999)}
    assert done.status == 0, done.stderr
    assert not [one for one in done.results if "held" in str(one["warnings"])]
