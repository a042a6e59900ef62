"""A rule names the address under which its firewall sees the source, whatever the inventory says.

A source has a management address, which the inventory knows, and sends by another card; and the
router translates what it sends to a second server.
"""

from __future__ import annotations

from collections.abc import Iterator
from errno import EAGAIN, ECONNREFUSED

import pytest
import yaml

from tests.lab.cli import netprobe
from tests.lab.netlab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.slow]

FIREWALL = """
table inet lab {{
    chain forward {{
        type filter hook forward priority 0
        ct state established accept
        {}
        ip daddr 10.3.0.5 tcp dport 443 drop
    }}
}}
"""
TRANSLATION = """
table ip translation {
    chain out {
        type nat hook postrouting priority 100
        oifname "e3" masquerade
    }
}
"""
OWN = "table inet own { chain in { type filter hook input priority 0; %s tcp dport 443 drop; }; }"
CONNECT = "import socket as s; c = s.socket(); c.settimeout(1); print(c.connect_ex(({!r}, 443)))"
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "sources",
    "title": "Sources",
    "roles": {"client": {}, "server": {}},
    "requirements": [
        {"id": "api", "from": "client", "to": "server", "tcp": [80, 443], "purpose": "API"}
    ],
}
ADDRESSES = {"c": "10.9.0.2", "s": "10.3.0.5", "t": "10.4.0.5"}


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A client with two cards, a router, and a server on either side of its translation."""
    with Lab() as made:
        r = made.namespace("r", router=True)
        c, s, t = (made.namespace(name) for name in "cst")
        for at, (host, card) in enumerate(((c, "mgmt"), (c, "data"), (s, "eth0"), (t, "eth0"))):
            made.cable(host, card, r, f"e{at}")
        c.ip(
            "address add 10.9.0.2/24 dev mgmt",
            "address add 10.1.0.2/24 dev data",
            "route add default via 10.9.0.1",
            "route add 10.3.0.0/24 via 10.1.0.1",
            "route add 10.4.0.0/24 via 10.1.0.1",
        )
        r.ip(*(f"address add 10.{net}.0.1/24 dev e{at}" for at, net in enumerate((9, 1, 3, 4))))
        s.ip("address add 10.3.0.5/24 dev eth0", "route add default via 10.3.0.1")
        t.ip("address add 10.4.0.5/24 dev eth0", "route add default via 10.4.0.1")
        r.nft(FIREWALL.format("") + TRANSLATION)
        t.nft(OWN % "")
        made.wait_until_ready()
        yield made


def connect(lab: Lab, address: str) -> int:
    """The errno of a plain connect."""
    return int(lab["c"].run("python3", "-c", CONNECT.format(address)))


def test_rules_name_the_address_that_their_firewall_sees(lab: Lab) -> None:
    """And whoever applies them opens the way."""
    matrix = lab.write("m.yaml", yaml.safe_dump(MATRIX))
    hosts = {
        name: {
            "addresses": [address],
            "roles": ["client" if name == "c" else "server"],
            "vantage": {"command": lab[name].enter},
        }
        for name, address in ADDRESSES.items()
    }
    inventory = lab.write(
        "i.yaml", yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": hosts})
    )
    run = ("run", "-o", "json", "-m", str(matrix), "-i", str(inventory))
    assert connect(lab, "10.3.0.5") == connect(lab, "10.4.0.5") == EAGAIN
    done = netprobe(*run)
    assert {
        (one["destination"], one["port"], one.get("sent_from"), one.get("came_from"))
        for one in done.results
        if one["verdict"] != "pass"
    } == {("s", 443, "10.1.0.2", None), ("t", 443, "10.1.0.2", "10.4.0.1")}
    warnings = {text.partition(",")[0] for one in done.results for text in one["warnings"]}
    assert warnings == {
        "c sends from 10.1.0.2",
        "the source address is translated: t saw it come from 10.4.0.1",
    }

    report = lab.write("run.json", done.stdout)
    asked = netprobe("request", str(report), "-o", "json").document
    rules = {
        rule["destinations"][0]["address"]: [end["address"] for end in rule["sources"]]
        for rule in asked["rules"]
    }
    assert rules == {"10.3.0.5": ["10.1.0.2"], "10.4.0.5": ["10.4.0.1"]}

    lab["r"].nft(
        "flush ruleset\n"
        + FIREWALL.format("ip saddr 10.1.0.2 ip daddr 10.3.0.5 tcp dport 443 accept")
        + TRANSLATION
    )
    lab["t"].nft("flush ruleset\n" + OWN % "ip saddr 10.4.0.1 tcp dport 443 accept;")
    assert [connect(lab, address) for address in ("10.3.0.5", "10.4.0.5")] == [ECONNREFUSED] * 2
    assert {one["verdict"] for one in netprobe(*run).results} == {"pass"}
